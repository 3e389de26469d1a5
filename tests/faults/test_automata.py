"""Each automaton finds the fault that it is for, and nothing in a history without one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from mcad.api import labels
from mcad.core.state.units import SECOND
from mcad.kube.port import Request
from mcad.sim.store import Change
from tests.faults.automata import Write, counted, judge, miscounted, unfenced, untrue
from tests.faults.scenarios import COMPLETED
from tests.faults.world import World
from tests.faults.world import run as run_scenario

Json = dict[str, Any]
BEHIND = 100 * SECOND


class Story:
    """Writes about one AppWrapper with one ConfigMap, a second apart."""

    def __init__(self) -> None:
        self.history: list[Write] = []
        self._at = 1_800_000_000 * SECOND
        metadata = {"name": "a", "namespace": "default", "uid": "uid-a"}
        self._now: Json = {"kind": labels.KIND, "metadata": metadata, "spec": {}}
        self._put("ADDED", self._now, None)

    def says(self, phase: str, attempt: int = 1, epoch: int = 1, **status: Any) -> Story:
        """Its status is written."""
        inventory = [{"kind": "ConfigMap", "name": "a-0"}]
        record = {"phase": phase, "attempt": attempt, "epoch": epoch, "inventory": inventory}
        dispatch = {"dispatch": record} if phase else {}
        return self._edit({"status": {"state": "Pending", **dispatch, **status}})

    def shows(self, *conditions: tuple[str, str, int], phase: str = "creating") -> Story:
        """Its status has these conditions: type, status, and second of the transition."""
        shown = [
            {
                "type": kind,
                "status": status,
                "lastUpdateMicroTime": _time(len(self.history)),
                "lastTransitionMicroTime": _time(second),
            }
            for kind, status, second in conditions
        ]
        return self.says(phase, conditions=shown)

    def makes(self, attempt: int = 1, name: str = "a-0", after: int = 0) -> Story:
        """Its item is created."""
        self._at += after * SECOND
        owner = {"kind": labels.KIND, "name": "a", "uid": "uid-a", "controller": True}
        metadata = {
            "name": name,
            "namespace": "default",
            "labels": {labels.ATTEMPT: str(attempt)},
            "ownerReferences": [owner],
        }
        self._put("ADDED", {"kind": "ConfigMap", "metadata": metadata}, None)
        return self

    def deleted(self) -> Story:
        """It has a deletionTimestamp."""
        return self._edit({"metadata": {**self._now["metadata"], "deletionTimestamp": "now"}})

    def _edit(self, change: Json) -> Story:
        before, self._now = self._now, {**deepcopy(self._now), **change}
        self._put("MODIFIED", self._now, before)
        return self

    def _put(self, kind: Any, obj: Json, previous: Json | None) -> None:
        self._at += SECOND
        key = ("default", obj["metadata"]["name"])
        change = Change(len(self.history), kind, key, deepcopy(obj), previous)
        self.history.append(Write(self._at, change))


def _time(second: int) -> str:
    return f"2027-01-15T08:00:{second:02}.000000Z"


def begun() -> Story:
    return Story().says("creating").makes()


def run() -> Story:
    return begun().says("dispatched", state="Running")


GOOD = [
    run().says("dispatched", state="Completed"),
    run().says("dispatched", state="Completed").says("undeploying", state="Completed"),
    run().says("undeploying").says("released").says("creating", 2, 2).makes(2),
    run().says("undeploying").says("paused").says("creating", 2).makes(2).deleted(),
    begun().says("undeploying", state="Failed").says("released", state="Failed"),
    begun().deleted().makes(after=90),
    run().says("undeploying").says("released").says("undeploying").says("released"),
    Story().shows(("Queueing", "True", 1), phase="").shows(("Queueing", "True", 9)),
    Story().shows(("Backoff", "True", 1), phase="").shows(("Backoff", "False", 5), phase=""),
]

BAD = {
    "a child before its intent": (Story().makes(), "is stored before an intent of attempt 1"),
    "a child that no intent names": (begun().makes(name="b-0"), "ConfigMap/b-0 is stored before"),
    "a child of the next attempt": (begun().makes(2), "before an intent of attempt 2"),
    "no confirmation before a pause": (begun().says("paused"), "from creating to paused"),
    "no teardown": (run().says("released"), "from dispatched to released"),
    "a record that disappears": (run().says(""), "from dispatched to no record"),
    "a dispatch without an intent": (Story().says("dispatched"), "from no record to dispatched"),
    "made after deletion": (begun().deleted().makes(after=200), "after its AppWrapper was deleted"),
    "an attempt that falls": (begun().says("creating", 0), "attempt 1 is followed by 0"),
    "an attempt without an intent": (begun().says("creating", 2), "attempt 1 is followed by 2"),
    "an intent with an old number": (
        run().says("undeploying").says("released").says("creating", 1),
        "attempt 1 is followed by 1",
    ),
    "an epoch that falls": (
        Story().says("creating", epoch=3).says("dispatched", epoch=2),
        "epoch 3 is followed by 2",
    ),
    "a transition without a change": (
        Story().shows(("Backoff", "True", 1)).shows(("Backoff", "True", 5)),
        "Backoff was",
    ),
    "a change without a transition": (
        Story().shows(("Backoff", "True", 1)).shows(("Backoff", "False", 1)),
        "Backoff was",
    ),
    "a transition in the past": (
        Story().shows(("Backoff", "True", 5)).shows(("Backoff", "False", 1)),
        "Backoff was",
    ),
    "two conditions of a type": (
        Story().shows(("Backoff", "True", 1), ("Backoff", "True", 1)),
        "several conditions of a type",
    ),
    "what was Completed runs": (
        run().says("dispatched", state="Completed").says("dispatched", state="Running"),
        "is Running after Completed",
    ),
    "what had failed waits": (
        begun().says("undeploying").says("released", state="Failed").says("released"),
        "is Pending after Failed",
    ),
    "an attempt that is lost": (begun().says("creating").says(""), "1 begun, 0 ended"),
}


@pytest.mark.parametrize("story", GOOD, ids=range(len(GOOD)))
def test_what_the_protocol_allows_is_no_fault(story: Story) -> None:
    assert judge(story.history, behind=BEHIND) == []


@pytest.mark.parametrize("name", BAD)
def test_what_the_protocol_forbids_is_found(name: str) -> None:
    story, fault = BAD[name]
    found = judge(story.history, behind=BEHIND)
    assert any(fault in one for one in found), found


def test_a_status_patch_without_a_version_is_found() -> None:
    path = "/apis/workload.codeflare.dev/v1beta2/namespaces/default/appwrappers/a/status"
    fenced = Request("PATCH", path, body={"metadata": {"resourceVersion": "7"}, "status": {}})
    bare = Request("PATCH", path, body=b'{"status": {}}')
    assert list(unfenced([fenced])) == []
    assert list(unfenced([fenced, bare])) == [f"PATCH {path} is not fenced"]


@pytest.mark.parametrize(
    ("dispatched", "ended", "is_right"),
    [(1, 1, True), (0, 1, False), (1, 0, False), (2, 1, False), (1, 2, False)],
)
def test_metrics_that_miss_or_invent_an_attempt_are_found(
    dispatched: int, ended: int, *, is_right: bool
) -> None:
    history = run().says("undeploying").says("released").history
    found = list(miscounted({"dispatched": dispatched, "ended": ended}, history))
    assert bool(found) is not is_right


ABOUT = {"kind": labels.KIND, "name": "a", "uid": "uid-a"}


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([("Dispatched", ABOUT)], ""),
        ([("Dispatched", ABOUT), ("Dispatched", ABOUT)], "2 Events tell of dispatches, 1 were"),
        ([("Completed", ABOUT)], "says that a is Completed"),
        ([("Queued", ABOUT | {"name": ""})], "does not say what it is about"),
        ([("Queued", ABOUT | {"uid": ""})], "does not say what it is about"),
        ([("Queued", ABOUT | {"uid": "uid-b"})], "which never was"),
    ],
)
def test_an_event_that_is_not_true_is_found(events: list[tuple[str, Json]], fault: str) -> None:
    said = [{"reason": reason, "involvedObject": about} for reason, about in events]
    found = list(untrue(said, run().history))
    assert len(found) == bool(fault)
    assert all(fault in one for one in found)


@pytest.mark.parametrize(("confirmed", "is_right"), [(0, False), (1, True)])
def test_a_process_that_began_with_an_old_list_may_tell_of_a_dispatch_again(
    confirmed: int, *, is_right: bool
) -> None:
    said = [{"reason": "Dispatched", "involvedObject": ABOUT}] * 2
    story = run() if confirmed else begun()
    assert bool(list(untrue(said, story.history, was_stale=True))) is not is_right


def test_a_run_is_recorded_with_its_events() -> None:
    worlds: list[World] = []

    class Kept(World):
        def begin(self) -> None:
            worlds.append(self)
            super().begin()

    run_scenario(COMPLETED, build=Kept)
    reasons = [one["reason"] for one in worlds[0].stored.events]
    assert reasons.count("Dispatched") == counted(worlds[0].stored.history)["dispatched"] > 1
