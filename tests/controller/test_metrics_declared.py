"""What a page shows is declared, bounded, and does not vanish."""

from __future__ import annotations

import re
from random import Random

import pytest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from mcad.api.config import Config
from mcad.controller.metrics.declared import ALL, LIBRARY, Declared, Kind, known_series
from mcad.controller.metrics.labels import Bounded, Remembered
from mcad.controller.metrics.leader import Metrics
from mcad.controller.metrics.replica import target
from mcad.controller.replica import Replica
from mcad.kube.client import Client
from mcad.kube.clock import RealClock
from mcad.kube.kinds import APPWRAPPERS, PODS
from mcad.kube.port import Request
from mcad.kube.recorder import Counts
from mcad.sim.clock import VirtualClock
from tests.core.bench import Bench, node, workload
from tests.core.quotas import teams


async def test_every_metric_of_a_page_is_declared_with_its_help_and_labels() -> None:
    bench = Bench(nodes=[node()]).share(*teams(1000, red=500, blue=500))
    metrics = Metrics(bench.dispatcher.cluster, {}, {}, RealClock(), Counts())
    bench.heard = metrics.count_step
    bench.start(workload("a", 600), workload("b", 600))
    client = Client(None, VirtualClock(), Random(1))  # type: ignore[arg-type]  # not used
    replica = Replica(client, Config(), identity="x")
    metrics.show_also(replica.metrics.registry)
    page = (await metrics.page()).decode()
    found = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            assert sample.name in known_series(), sample.name
            if sample.name in LIBRARY:
                continue
            one = ALL.get(sample.name) or ALL[re.sub("_(bucket|count|sum)$", "", sample.name)]
            assert family.documentation == one.help
            assert {*sample.labels} - {"le"} == {*one.labels}
            assert family.type == one.kind
            found[one.name] = one
    lasting = {"mcad_invariant_violations_total", "mcad_attempts_ended_total"}
    assert lasting.isdisjoint(found), "named by what happens first"
    labelled = {"mcad_stream_", "mcad_api_", "mcad_requests_in", "mcad_write_b", "mcad_held"}
    labelled.add("mcad_appwrappers_internal")
    for name, one in ALL.items():
        empty = one.labels and name.startswith(
            (*labelled, *lasting, "mcad_unknown", "mcad_invalid")
        )
        assert name in found or empty or one.kind is Kind.HISTOGRAM, name
    assert "_created" not in page


@pytest.mark.parametrize("one", ALL.values(), ids=lambda one: one.name)
def test_names_follow_the_conventions(one: Declared) -> None:
    assert one.name.endswith("_total") == (one.kind is Kind.COUNTER)
    assert not one.name.endswith(("_ms", "_milliseconds", "_us", "_minutes"))
    assert one.kind is not Kind.HISTOGRAM or one.name.endswith("_seconds")
    assert not {"name", "uid", "user", "pod"} & {*one.labels} or one.name.endswith(
        "violations_total"
    )
    assert one.help
    assert not one.help.endswith(".")


def test_values_beyond_the_limit_share_one_series_for_good() -> None:
    bounded = Bounded(2)
    assert [bounded.of(one) for one in "abca"] == [("a",), ("b",), ("other",), ("a",)]
    assert bounded.of("c") == ("other",), "a counter must not shrink"
    assert bounded.known == [("a",), ("b",)]


def test_a_gauge_becomes_zero_and_does_not_vanish() -> None:
    remembered = Remembered(("always",))

    def shown(values: dict[tuple[str, ...], float]) -> dict[str, float]:
        gauge = remembered.fill(GaugeMetricFamily("a", "a", labels=("x",)), values)
        return {one.labels["x"]: one.value for one in gauge.samples}

    assert shown({}) == {"always": 0}
    assert shown({("b",): 2}) == {"always": 0, "b": 2}
    assert shown({}) == {"always": 0, "b": 0}


def test_what_a_gauge_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcad.controller.metrics.labels.REMEMBERED_MAX", 2)
    remembered = Remembered()
    for name in "abcd":
        gauge = remembered.fill(GaugeMetricFamily("a", "a", labels=("x",)), {(name,): 1})
    assert {one.labels["x"] for one in gauge.samples} == {"c", "d"}


@pytest.mark.parametrize(
    ("method", "path", "params", "named"),
    [
        ("GET", PODS.path(), {}, ("list", "pods")),
        ("GET", PODS.path("ns"), {"watch": "true"}, ("watch", "pods")),
        ("GET", "/api/v1/namespaces/ns", {}, ("get", "namespaces")),
        ("GET", "/api/v1/namespaces", {}, ("list", "namespaces")),
        ("DELETE", PODS.path("ns", "a"), {}, ("delete", "pods")),
        (
            "PATCH",
            APPWRAPPERS.path("ns", "a", "status"),
            {},
            ("patch", "appwrappers.workload.codeflare.dev/status"),
        ),
        ("POST", APPWRAPPERS.path("ns"), {}, ("create", "appwrappers.workload.codeflare.dev")),
        ("GET", "/version", {}, ("get", "other")),
        ("GET", "/apis", {}, ("get", "other")),
        ("GET", "/apis/batch/v1", {}, ("get", "other")),
    ],
)
def test_a_request_is_named_as_in_an_audit_log(
    method: str, path: str, params: dict[str, str], named: tuple[str, str]
) -> None:
    assert target(Request(method, path, params)) == named
