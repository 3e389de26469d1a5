"""Where the dispatcher cannot be asked commands show what is stored, say so once, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcad.kube.errors import RequestTimeout
from mcad.kube.port import Request
from tests.cli.cluster import condition, crowd, reserved, tutorial
from tests.cli.conftest import Type
from tests.cli.dispatcher import PREFIX
from tests.fakeapi import FakeApi, Fault, forbidden, refuse

Json = dict[str, Any]

FIRST, SECOND = "0001-aw-generic-deployment-1", "0002-aw-generic-deployment-2"
SHOWN = "; what is stored is shown, without positions, demands, start times and capacity\n"


def unled(api: FakeApi) -> FakeApi:
    api.objects["leases"].clear()
    return api


@pytest.fixture
def api() -> FakeApi:
    return unled(tutorial())


async def no_answer(_: Request) -> None:
    raise RequestTimeout("no answer within 2.5 s")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (refuse(503), "the dispatcher does not answer at its visibility API (503 Service Unavai"),
        (no_answer, "the dispatcher does not answer at its visibility API (no answer within 2.5 s"),
        (refuse(404), "the dispatcher cannot be asked: this cluster has no visibility API; enable"),
        (forbidden, "the dispatcher cannot be asked: you may not list appwrapperreports in namesp"),
    ],
    ids=["unavailable", "silent", "not installed", "denied"],
)
@pytest.mark.parametrize(
    "args",
    [("queue",), ("get",), ("describe", FIRST, SECOND), ("why", FIRST, SECOND)],
    ids=" ".join,
)
def test_why_is_said_once_and_what_is_stored_is_shown(
    fault: Fault, said: str, args: tuple[str, ...], api: FakeApi, mcad: Type
) -> None:
    api.fail_always("*", PREFIX, fault)
    result = mcad(*args)
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith(f"warning: {said}")
    assert result.stderr.endswith(SHOWN)
    assert len(result.stderr.splitlines()) == 1
    assert SECOND in result.stdout
    assert "dispatched next" not in result.stdout


def test_rows_are_those_of_the_statuses(api: FakeApi, mcad: Type) -> None:
    rows = {row["name"]: row for row in json.loads(mcad("get", "-o", "json").stdout)["items"]}
    waits, runs = rows[SECOND], rows[FIRST]
    assert (waits["position"], waits["demand"], waits["starts"]) == (None, None, None)
    assert (waits["state"], waits["waitsFor"]) == ("Pending", "")
    assert waits["why"] == "Insufficient resources to dispatch AppWrapper."
    assert (runs["position"], runs["state"], runs["attempt"], runs["why"]) == (0, "Running", 1, "")
    assert [row["name"] for row in json.loads(mcad("queue", "-o", "json").stdout)["items"]] == [
        SECOND
    ]


def test_a_table_marks_what_is_unknown(mcad: Type) -> None:
    (line,) = mcad("queue", "--no-headers").stdout.splitlines()
    assert line.split() == [SECOND, "<unknown>", "Pending", "0", "<unknown>", "<none>", "60s"]


def test_one_in_full_has_its_conditions_and_no_sections_that_only_the_dispatcher_knows(
    mcad: Type,
) -> None:
    lines = mcad("describe", SECOND).stdout.splitlines()
    assert "Position:     <unknown>" in lines
    assert "Why:          Insufficient resources to dispatch AppWrapper." in lines
    assert "Conditions:" in lines
    assert not [one for one in lines if one.startswith(("Items", "Pod sets", "Starts"))]


def test_reservations_are_those_of_the_status(api: FakeApi, mcad: Type) -> None:
    api.put("appwrappers", *reserved().objects["appwrappers"].values())
    assert "Reservation:" in mcad("describe", "big").stdout
    assert "Evicted:      " in mcad("describe", "small").stdout


def test_pods_that_do_not_run_have_the_stored_reason(api: FakeApi, mcad: Type) -> None:
    stalled = condition("Stalled", "07:59:30", "NoNode", "1 pod has no node.")
    api.change("appwrappers", FIRST, lambda obj: obj["status"]["conditions"].append(stalled))
    (row, *_) = json.loads(mcad("get", FIRST, "-o", "json").stdout)["items"]
    assert (row["stalled"], row["why"]) == ("NoNode", "1 pod has no node.")


def test_what_an_autoscaler_is_asked_is_that_of_the_status(api: FakeApi, mcad: Type) -> None:
    assert "Scale-up:" not in mcad("describe", SECOND).stdout
    asked = condition("ScaleUp", "07:59:30", "Accepted", "Asked for nodes for 1 pod.")
    api.change("appwrappers", SECOND, lambda obj: obj["status"]["conditions"].append(asked))
    assert "Scale-up:     Asked for nodes for 1 pod." in mcad("describe", SECOND).stdout


def test_a_reason_that_is_not_stored_is_an_error(api: FakeApi, mcad: Type) -> None:
    api.change("appwrappers", SECOND, lambda obj: obj["status"].update(conditions=[]))
    result = mcad("why", SECOND)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith(f"error: why default/{SECOND} waits is not stored: the disp")
    assert len(result.stderr.splitlines()) == 1


def test_what_is_on_hold_says_so(api: FakeApi, mcad: Type) -> None:
    api.put("appwrappers", *crowd().objects["appwrappers"].values())
    assert "Why:          It is on hold (spec.suspend)." in mcad("why", "suspended").stdout


def test_labels_are_those_of_the_objects(api: FakeApi, mcad: Type) -> None:
    api.change("appwrappers", SECOND, lambda obj: obj["metadata"].update(labels={"team": "a"}))
    assert mcad("get", "-l", "team=a", "--no-headers").stdout.split()[0] == SECOND
    assert mcad("get", "-l", "team=b").stdout == ""


def test_a_caller_of_one_namespace_is_shown_that_one(api: FakeApi, mcad: Type) -> None:
    api.fail_always("*", r"^/apis/[^/]+/[^/]+/appwrappers$", forbidden)
    result = mcad("get")
    assert result.exit_code == 0, result.output
    assert SECOND in result.stdout
    assert mcad("get", "-A").exit_code == 1


def test_without_the_objects_and_without_an_answer_nothing_is_known(
    api: FakeApi, mcad: Type
) -> None:
    api.deny("appwrappers")
    result = mcad("queue")
    assert result.exit_code == 1
    assert "you may not list appwrappers.workload.codeflare.dev in namespace" in result.stderr


def test_nothing_is_computed_from_lists(api: FakeApi, mcad: Type) -> None:
    for args in (("queue", "-o", "wide"), ("describe", SECOND), ("why", SECOND)):
        mcad(*args)
    for args in (("capacity",), ("what-if", "--without", FIRST)):
        mcad(*args)
    kinds = {one.path.rpartition("/")[2] for one in api.seen("LIST") if PREFIX not in one.path}
    assert not kinds & {"nodes", "pods", "deployments", "limitranges", "quotasubtrees"}
