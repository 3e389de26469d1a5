"""Callers of one namespace: commands show what they may see, and one warning."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcad.client.figures.of_namespace import NOTE, _figures
from mcad.core.state.refusal import Refusal, Shortage
from mcad.core.state.waiting_reason import WaitingReason
from tests.cli.cluster import condition, dispatched, tutorial, waiting
from tests.cli.conftest import Type
from tests.cli.test_watch import typed_at
from tests.fakeapi import FakeApi, forbidden

Json = dict[str, Any]

FIRST, SECOND = "0001-aw-generic-deployment-1", "0002-aw-generic-deployment-2"
REFUSED = (
    "Insufficient resources to dispatch AppWrapper. cpu: 150m requested, 50m available, 100m "
    "missing."
)
OTHERS = r"^(?!.*/namespaces/default/|.*/leases|/version$|/apis?$)"  # the rest of the cluster
WARNING = f"warning: {NOTE}\n"


@pytest.fixture
def api() -> FakeApi:
    found = tutorial()
    found.fail_always("*", OTHERS, forbidden)

    def refuse(obj: Json) -> None:
        obj["status"]["conditions"][-1]["message"] = REFUSED

    found.change("appwrappers", SECOND, refuse)
    return found


@pytest.mark.parametrize("args", [("queue",), ("get",), ("top",), ("describe", FIRST, SECOND)])
def test_no_command_is_refused(
    args: tuple[str, ...], mcad: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = mcad(*args)
    assert (said.exit_code, said.stderr) == (0, WARNING)
    assert SECOND in said.stdout


def test_a_row_is_what_was_written_and_what_the_manifest_demands(mcad: Type) -> None:
    row = json.loads(mcad("queue", "-o", "json").stdout)["items"][0]
    assert row["position"] is None
    assert row["headOfLine"] is None
    assert row["demand"] == {"cpu": "150m", "memory": "512Mi", "pods": "2"}
    assert (row["waitsFor"], row["why"]) == ("cpu", REFUSED)
    assert (row["state"], row["queuejobstate"]) == ("Pending", "Backoff")


def test_the_state_is_the_dispatchers_whatever_would_be_counted(api: FakeApi, mcad: Type) -> None:
    def change(obj: Json) -> None:
        obj["status"] |= {"state": "RunningHoldCompletion", "queuejobstate": "Odd"}

    api.change("appwrappers", FIRST, change)
    row = json.loads(mcad("get", FIRST, "-o", "json").stdout)["items"][0]
    assert (row["state"], row["queuejobstate"]) == ("RunningHoldCompletion", "Odd")


def test_one_page_has_the_figures_of_the_last_refusal_and_no_invented_ones(mcad: Type) -> None:
    said = mcad("describe", SECOND).stdout
    assert "Position:     <unknown>\nWaits for:    cpu\n" in said
    assert "  cpu        150m        50m         100m\n" in said
    assert "Ahead:" not in said
    said = mcad("describe", FIRST).stdout
    assert "Pods:         0 pending, 2 running" in said
    assert "cpu=100m,memory=256Mi,pods=1   <unknown>\n" in said  # reserved: only the cluster tells


def test_an_appwrapper_that_was_not_judged_yet_has_no_known_reason(
    api: FakeApi, mcad: Type
) -> None:
    api.change("appwrappers", SECOND, lambda obj: obj.update(status={}))
    row = json.loads(mcad("queue", "-o", "json").stdout)["items"][0]
    told = (row["position"], row["waitsFor"], row["why"])
    assert told == (None, "", "Not judged by the dispatcher yet.")


def test_what_keeps_one_out_of_the_line_is_in_the_manifest(api: FakeApi, mcad: Type) -> None:
    suspended = waiting()
    suspended["metadata"] |= {"name": "suspended", "uid": "cccc-3"}
    suspended["spec"]["suspend"] = True
    suspended["status"]["conditions"] = [condition("Init", "07:59:00")]
    api.put("appwrappers", suspended)
    rows = {row["name"]: row for row in json.loads(mcad("queue", "-o", "json").stdout)["items"]}
    assert (rows["suspended"]["position"], rows["suspended"]["waitsFor"]) == (0, "Suspended")


def test_an_appwrapper_with_a_reservation_has_no_position(api: FakeApi, mcad: Type) -> None:
    since = "2027-01-15T07:59:00.000000Z"
    reservation = {"reason": "Starved", "since": since, "nodeCount": 1, "nodes": ["minikube"]}
    api.change("appwrappers", SECOND, lambda obj: obj["status"].update(reservation=reservation))
    row = json.loads(mcad("queue", "-o", "json").stdout)["items"][0]
    assert (row["position"], row["headOfLine"], row["waitsFor"]) == (0, False, "RoomReserved")
    assert "  Room:         1 node: minikube\n" in mcad("describe", SECOND).stdout


def test_the_whole_cluster_and_other_namespaces_stay_closed(mcad: Type) -> None:
    for args in (("queue", "-A"), ("get", "-A"), ("top", "-A"), ("capacity",)):
        said = mcad(*args)
        assert (said.exit_code, said.stdout) == (1, "")
        assert "in the whole cluster; ask an administrator for this right" in said.stderr
    said = mcad("get", "-n", "team-a")
    assert "in namespace team-a; choose one of yours with -n" in said.stderr


def test_a_watch_follows_one_namespace(api: FakeApi, tmp_path: Path) -> None:
    with typed_at(api, tmp_path, "queue", "-w") as mcad:
        mcad.wait_for(lambda: len(mcad.lines) == 2)
        api.change("appwrappers", SECOND, _dispatch)
        mcad.wait_for(lambda: len(mcad.lines) == 3)
        assert mcad.end() == 130
        assert mcad.errors.strip() == WARNING.strip()
    assert [line.split()[1:3] for line in mcad.lines[1:]] == [
        ["<unknown>", "Pending"],
        ["<none>", "Running"],
    ]


def _dispatch(obj: Json) -> None:
    record = dispatched(SECOND, "08:00:00Z", "08:00:00Z")
    obj["status"] |= {"state": "Running", "dispatch": record}


@pytest.mark.parametrize("resource", ["cpu", "nvidia.com/gpu", "hugepages-2Mi"])
def test_figures_are_read_back_from_the_words_that_tell_them(resource: str) -> None:
    shortages = (Shortage(resource, 4096, 1024), Shortage("memory", 10, 3))
    message = Refusal(WaitingReason.FRAGMENTED, shortages).message
    assert [one["resource"] for one in _figures(message)] == [resource, "memory"]
    assert all(one["missing"] != "0" for one in _figures(message))
