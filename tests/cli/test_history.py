"""``mcad history`` of what is stored: times, reasons, filters, sums and forms."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.cli.pages.history import hours
from mcad.client.history.ended import Run, read_ended
from tests.cli.cluster import appwrapper, condition, crowd, deployment
from tests.cli.conftest import Type
from tests.cli.dispatcher import PREFIX
from tests.cli.embedded import Embedded, wait_for
from tests.cli.test_run import running
from tests.e2e.support import appwrapper as later
from tests.e2e.support import pod
from tests.fakeapi import FakeApi, refuse

Json = dict[str, Any]

HOUR_S = 3600


def at(time: str) -> str:
    return f"2027-01-15T{time}.000000Z"


def put(
    api: FakeApi,
    name: str,
    end: str,
    *,
    submitted: str = "01:00:00",
    begun: str = "02:00:00",
    ended: str = "04:00:00",
    attempt: int = 1,
    leaf: str = "",
    labels: Json | None = None,
    namespace: str = "default",
) -> Json:
    """An AppWrapper of two pods of 500m and 1Gi that has ended."""
    record = {
        "attempt": attempt,
        "epoch": 1,
        "phase": "released" if end == "Deleted" else "dispatched",
        "intentTime": at(begun),
        "phaseTime": at(ended),
        "reason": "TooFewPods" if end == "Deleted" else "",
        "message": "Requeued 3 times." if end == "Deleted" else "",
        "quota": [{"tree": "teams", "leaf": leaf}] if leaf else [],
    }
    reasons = {"Completed": ("PodsCompleted", ""), "Failed": ("FoundFailedPods", "1 pod failed.")}
    conditions = [condition(end, ended, *reasons[end])] if end in reasons else []
    status = {
        "state": end,
        "controllerfirsttimestamp": at(submitted),
        "controllerfirstdispatchtimestamp": at(begun),
        "conditions": conditions,
        "dispatch": record,
    }
    item = deployment(name, replicas=2, cpu="500m", memory="1Gi")
    obj = appwrapper(name, f"u-{name}", submitted, item, status=status, namespace=namespace)
    obj["metadata"]["labels"] = labels or {}
    api.put("appwrappers", obj)
    return obj


@pytest.fixture
def api() -> FakeApi:
    found = crowd()
    put(found, "done", "Completed", labels={"team": "a"}, leaf="red")
    put(found, "failed", "Failed", ended="03:00:00", attempt=3, leaf="blue")
    put(found, "given-up", "Deleted", ended="05:00:00")
    put(found, "elsewhere", "Completed", ended="06:00:00", namespace="team-a", leaf="red")
    return found


def told(mcad: Type, *args: str) -> list[Json]:
    result = mcad("history", *args, "-o", "json")
    assert result.exit_code == 0, result.output
    found: list[Json] = json.loads(result.stdout)["items"]
    return found


def test_the_table(mcad: Type) -> None:
    lines = mcad("history", "-A").stdout.splitlines()
    assert [line.split() for line in lines] == [
        [
            "NAMESPACE",
            "NAME",
            "STATE",
            "REASON",
            "ATTEMPTS",
            "WAITED",
            "RAN",
            "REQUESTED-HOURS",
            "ENDED",
        ],
        [
            "default",
            "failed",
            "Failed",
            "FoundFailedPods",
            "3",
            "60m",
            "60m",
            "cpu=1,memory=2Gi",
            "5h",
        ],
        [
            "default",
            "done",
            "Completed",
            "PodsCompleted",
            "1",
            "60m",
            "120m",
            "cpu=2,memory=4Gi",
            "4h",
        ],
        [
            "default",
            "given-up",
            "Deleted",
            "TooFewPods",
            "1",
            "60m",
            "3h",
            "cpu=3,memory=6Gi",
            "3h",
        ],
        [
            "team-a",
            "elsewhere",
            "Completed",
            "PodsCompleted",
            "1",
            "60m",
            "4h",
            "cpu=4,memory=8Gi",
            "120m",
        ],
    ]
    wide = mcad("history", "-o", "wide", "--state", "failed").stdout.splitlines()[1]
    assert "teams/blue   0          2027-01-15T01:00:00Z   2027-01-15T02:00:00Z" in wide
    assert wide.endswith("2027-01-15T03:00:00Z   1 pod failed.")


def test_json_has_exact_figures(mcad: Type) -> None:
    (one,) = told(mcad, "-l", "team=a")
    assert one == {
        "namespace": "default",
        "name": "done",
        "uid": "u-done",
        "state": "Completed",
        "reason": "PodsCompleted",
        "message": "",
        "priority": 0,
        "leaves": [{"tree": "teams", "leaf": "red"}],
        "labels": {"team": "a"},
        "submitted": at("01:00:00"),
        "started": at("02:00:00"),
        "ended": at("04:00:00"),
        "attempts": 1,
        "waitedSeconds": HOUR_S,
        "ranSeconds": 2 * HOUR_S,
        "demand": {"cpu": "1", "memory": "2Gi", "pods": "2"},
        "requestedSeconds": {
            "cpu": 2 * HOUR_S,
            "memory": 2 * 2**30 * 2 * HOUR_S,
            "pods": 2 * 2 * HOUR_S,
        },
    }
    found = yaml.safe_load(mcad("history", "-l", "team=a", "-o", "yaml").stdout)
    assert found == {"items": [one]}


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ((), ["failed", "done", "given-up"]),
        (("-n", "team-a"), ["elsewhere"]),
        (("-A", "--leaf", "red"), ["done", "elsewhere"]),
        (("-A", "--leaf", "teams/blue"), ["failed"]),
        (("-A", "--leaf", "green"), []),
        (("--since", "4h"), ["done", "given-up"]),
        (("--since", "2027-01-15T04:00:00Z"), ["done", "given-up"]),
        (("--since", "1d", "--until", "4h"), ["failed", "done"]),
        (("--state", "completed", "--state", "deleted"), ["done", "given-up"]),
        (("-l", "team in (a, b)"), ["done"]),
        (("-l", "!team"), ["failed", "given-up"]),
    ],
    ids=" ".join,
)
def test_filters(args: tuple[str, ...], names: list[str], mcad: Type) -> None:
    assert [one["name"] for one in told(mcad, *args)] == names
    if not names:
        assert mcad("history", *args).stderr == "No AppWrapper has ended.\n"


def test_names_can_be_piped(mcad: Type) -> None:
    assert mcad("history", "--leaf", "red", "-o", "name").stdout.endswith(".dev/done\n")
    named = mcad("history", "-A", "--leaf", "red", "-o", "name").stdout.split()
    assert named == ["default/done", "team-a/elsewhere"]
    templated = mcad("history", "-o", "jsonpath={.items[*].reason}").stdout
    assert templated == "FoundFailedPods PodsCompleted TooFewPods"
    columns = mcad("history", "--no-headers", "-o", "custom-columns=N:.name,A:.attempts").stdout
    assert columns.splitlines()[0].split() == ["failed", "3"]


def test_csv(mcad: Type) -> None:
    rows = list(csv.DictReader(io.StringIO(mcad("history", "-A", "-o", "csv").stdout)))
    assert [row["name"] for row in rows] == ["failed", "done", "given-up", "elsewhere"]
    assert rows[0]["leaf"] == "teams/blue"
    assert rows[0]["message"] == "1 pod failed."
    assert (rows[1]["ranSeconds"], rows[1]["requestedSeconds.cpu"]) == ("7200", "7200")
    assert mcad("history", "-A", "-o", "csv", "--no-headers").stdout.startswith("default,failed,")


def test_totals_by_namespace_and_leaf(mcad: Type) -> None:
    lines = [line.split() for line in mcad("history", "-A", "--totals").stdout.splitlines()]
    assert lines == [
        [
            "NAMESPACE",
            "LEAF",
            "APPWRAPPERS",
            "COMPLETED",
            "FAILED",
            "DELETED",
            "ATTEMPTS",
            "MEAN-WAIT",
            "RAN",
            "REQUESTED-HOURS",
        ],
        ["default", "<none>", "1", "0", "0", "1", "1", "60m", "3h", "cpu=3,memory=6Gi"],
        ["default", "teams/blue", "1", "0", "1", "0", "3", "60m", "60m", "cpu=1,memory=2Gi"],
        ["default", "teams/red", "1", "1", "0", "0", "1", "60m", "120m", "cpu=2,memory=4Gi"],
        ["team-a", "teams/red", "1", "1", "0", "0", "1", "60m", "4h", "cpu=4,memory=8Gi"],
        ["<total>", "<none>", "4", "2", "1", "1", "6", "60m", "10h", "cpu=10,memory=20Gi"],
    ]
    rows = list(csv.DictReader(io.StringIO(mcad("history", "--totals", "-o", "csv").stdout)))
    assert [(row["leaf"], row["requestedSeconds.cpu"]) for row in rows] == [
        ("", "10800"),
        ("teams/blue", "3600"),
        ("teams/red", "7200"),
    ]


def test_without_a_dispatcher_the_demand_is_unknown(api: FakeApi, mcad: Type) -> None:
    api.fail_always("*", PREFIX, refuse(503))
    result = mcad("history", "--leaf", "red")
    assert result.stderr.startswith("warning: the dispatcher does not answer")
    assert result.stdout.splitlines()[1].split()[-2:] == ["<unknown>", "4h"]
    assert mcad("history", "-o", "csv").stdout.splitlines()[0].endswith(",ranSeconds,leaf")


def test_what_has_not_ended_is_no_history(mcad: Type) -> None:
    names = {one["name"] for one in told(mcad, "-A")}
    assert names == {"done", "failed", "given-up", "elsewhere"}


def test_a_status_of_any_shape_is_read() -> None:
    """Nothing of a status is certain: users may write it, and other controllers did."""
    for status in ({}, {"state": "Failed"}, {"state": "Completed", "dispatch": "x"}):
        obj = {"metadata": {"name": "a", "namespace": "b", "uid": "c"}, "status": status}
        found = read_ended(obj)
        assert (found is None) is (not status)
        if found is not None:
            view = found.view()
            assert (view["ended"], view["waitedSeconds"], view["ranSeconds"]) == (None, None, 0)


def test_earlier_attempts_count_where_they_are_known() -> None:
    obj = put(FakeApi(), "x", "Completed", attempt=2)
    first = Run(1_800_000_000_000_000, 1_800_000_090_000_000)
    found = read_ended(obj, {"cpu": "2"}, [first])
    assert found is not None
    assert found.ran_s == 2 * HOUR_S + 90
    assert found.requested_s == {"cpu": 2 * (2 * HOUR_S + 90)}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "<unknown>"),
        ({}, "<none>"),
        ({"pods": 7200.0}, "<none>"),
        ({"cpu": 1.0}, "cpu=<0.001"),
        ({"cpu": 9000.0, "nvidia.com/gpu": 3600.0 * 1234}, "cpu=2.5,nvidia.com/gpu=1234"),
        ({"memory": 3600.0 * 2**40}, "memory=1Ti"),
    ],
)
def test_amounts_are_in_hours(seconds: dict[str, float] | None, text: str) -> None:
    assert hours(seconds) == text


# -- beside a journal, on the simulator ------------------------------------------------------


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Embedded, Path]]:
    """A cluster whose dispatcher keeps a journal: one AppWrapper completes, one fails, one runs."""
    folder = tmp_path_factory.mktemp("kept")
    journal, cluster = folder / "journal", Embedded(folder)
    with cluster.running(dispatches=False):
        url = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        with running(folder, url, "--journal", str(journal)) as process:
            process.wait_for("synced")
            limit = {"dispatchDuration": {"limit": 1}}
            cluster.create(
                later("done", pod("done", command=("sleep", "0"))),
                later("failed", pod("failed"), schedulingSpec=limit),
                later("runs", pod("runs")),
            )
            for name, state in {"done": "Completed", "failed": "Failed", "runs": "Running"}.items():
                cluster.until(name, state)
            assert cluster.mcad("cancel", "runs").exit_code == 0
            wait_for(lambda: cluster.get("runs") is None, "it is gone")
            process.end()
        yield cluster, journal


def test_the_journal_says_what_is_stored_and_more(kept: tuple[Embedded, Path]) -> None:
    cluster, journal = kept
    stored, then = (
        {one["name"]: one for one in json.loads(result.stdout)["items"]}
        for result in (
            cluster.mcad("history", "-o", "json"),
            cluster.mcad("history", "--journal", str(journal), "-o", "json"),
        )
    )
    assert stored.keys() == {"done", "failed"}
    unknown = {"labels": None, "demand": None, "requestedSeconds": None}
    for name, one in stored.items():
        assert then[name] | unknown == one | unknown
        assert then[name]["demand"] == {"cpu": "100m", "pods": "1"}
    cancelled = then["runs"]
    assert (cancelled["state"], cancelled["reason"]) == ("Deleted", "AppWrapperDeleted")
    assert cancelled["message"] == "It was deleted while it was Running."
    assert cancelled["ranSeconds"] > 0
