"""A cached reading of a template is the same as a fresh one."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcad.api import template_cache
from mcad.api.podcheck import check_template
from mcad.api.podspec import effective_request, placement
from mcad.api.template_cache import Reading, read_template
from mcad.api.wire import as_map
from tests import budget
from tests.api.builders import Map, container, template
from tests.api.strategies import JSON, mutated

FULL = template(
    container(
        "1",
        "1Gi",
        env=[{"name": "A", "value": "b"}],
        ports=[{"hostPort": 80}, {"containerPort": 81}],
    ),
    labels={"app": "x"},
    affinity={
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "x"}},
                }
            ]
        },
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
            }
        },
    },
    hostNetwork=True,
    initContainers=[container("2", restartPolicy="Always"), container("3")],
    nodeName="n",
    nodeSelector={"a": "b"},
    overhead={"cpu": "10m"},
    resourceClaims=[{"name": "gpu"}],
    resources={"requests": {"memory": "2Gi"}, "limits": {"cpu": "8"}},
    terminationGracePeriodSeconds=45,
    tolerations=[{"key": "k", "operator": "Exists"}],
    topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}],
    volumes=[{"persistentVolumeClaim": {"claimName": "c"}}],
    serviceAccountName="unread",
)
PLAIN = template(container("1", env=[{"name": "A", "value": "b"}]), labels={"app": "x"})


def from_scratch(one: Map) -> Reading:
    """All of the template, and nothing that is remembered."""
    spec = as_map(one.get("spec"))
    grace, faults = read_template({"spec": spec}).grace, tuple(check_template(one, ""))
    return Reading(effective_request(spec), placement(one), grace, faults)


@given(st.lists(mutated([FULL, PLAIN]), min_size=1, max_size=3))
@settings(max_examples=budget.examples(300))
@example([template(container(1)), template(container(True)), template(container("1"))])
@example([template(container(date(2026, 1, 1))), template(container("2026-01-01"))])
@example([template(labels={"app": "x"}, affinity=FULL["spec"]["affinity"]), FULL])
def test_it_is_read_as_if_all_of_it_were_there(templates: list[Any]) -> None:
    for one in (*templates, *templates):
        if isinstance(one, dict):
            assert read_template(one) == from_scratch(one)


@given(st.dictionaries(st.sampled_from(template_cache._OF_SPEC), JSON))
def test_whatever_is_in_the_fields_that_count(spec: Map) -> None:
    one = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
    assert read_template(one) == from_scratch(one)


@pytest.mark.parametrize("key", sorted(FULL["spec"]))
def test_every_field_that_counts_makes_a_difference(key: str) -> None:
    less = {name: value for name, value in FULL["spec"].items() if name != key}
    found = read_template(FULL | {"spec": less})
    assert (found == read_template(FULL)) == (key == "serviceAccountName")


def test_pods_that_differ_in_nothing_that_counts_are_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(template_cache, "_known", {})
    read: list[Map] = []
    whole = template_cache._read
    monkeypatch.setattr(template_cache, "_read", lambda one: read.append(one) or whole(one))
    for number in range(3):
        more = {"name": f"c{number}", "env": [{"name": "N", "value": str(number)}]}
        read_template(template(container("1", **more), labels={"job": f"job-{number}"}))
    assert len(read) == 1


def test_no_more_is_remembered_than_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_cache, "_known", {})
    monkeypatch.setattr(template_cache, "_KNOWN_MAX", 3)
    for number in range(10):
        read_template(template(container(f"{number}m")))
        assert len(template_cache._known) <= 3
    read_template(template(container("1"), nodeSelector={"a": "b" * template_cache._TEXT_MAX}))
    assert not any("bbb" in text for text in template_cache._known)
