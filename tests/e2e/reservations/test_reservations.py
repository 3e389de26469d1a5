"""Shares given back, priorities, ``kill -9`` at each write, a gang against a stream of small
AppWrappers, and a journal of such a life."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from mcad.journal.header import files_of
from tests import budget
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import Bystander, ours, wait_until_quiet, writes
from tests.e2e.gate import Gate
from tests.e2e.process import mcad
from tests.e2e.reservations.slots import (
    PATIENCE_S,
    PREEMPTION,
    SLOTS,
    check_room,
    cpus_of,
    dispatching,
    eviction,
    slots_of,
    submit,
    told,
    until,
    until_told,
)
from tests.e2e.support import appwrappers_path, delete, phases, pods, states, status_of
from tests.manifests import subtree

pytestmark = pytest.mark.controlplane

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/mcad-dispatcher"


def test_three_teams_get_their_shares_back(
    plane: ControlPlane, account: Path, bystander: Bystander
) -> None:
    seen = len(bystander.sights())
    trees = (
        subtree("root", "teams", root=6),
        subtree("teams", "teams", "root", red=2, blue=2, green=2),
    )
    with dispatching(plane, account) as dispatcher:
        plane.apply(trees)
        # Red has its share, and borrows those of the others.
        for name in ("red-1", "red-2", "red-3"):
            submit(plane, name, "2", team="red")
            plane.wait_for(lambda name=name: states(plane).get(name) == "Running", PATIENCE_S, name)

        # A team that asks for its own share gets it, of the latest borrower.
        submit(plane, "blue-1", "2", team="blue")
        until(plane, red_1="Running", red_2="Running", red_3="Pending", blue_1="Running")
        assert eviction(plane, "red-3") == (1, "Reclaiming", "default/blue-1")
        status, reason, message = told(plane, "red-3", "Preempted")
        assert (status, reason) == ("True", "Reclaimed")
        assert "default/blue-1" in message
        submit(plane, "green-1", "2", team="green")
        until(
            plane,
            red_1="Running",
            red_2="Pending",
            red_3="Pending",
            blue_1="Running",
            green_1="Running",
        )

        # No priority takes another team's share, and none is evicted for a borrower.
        submit(plane, "blue-2", "2", team="blue", priority=10)
        wait_until_quiet(plane)
        assert states(plane)["red-1"] == "Running"
        assert states(plane)["blue-2"] == "Pending"
        delete(plane, "blue-2")

        # What becomes idle goes to the evicted in their old order.
        delete(plane, "blue-1")
        until(plane, red_1="Running", red_2="Running", red_3="Pending", green_1="Running")
        assert told(plane, "red-2", "Preempted")[0] == "False"
        assert eviction(plane, "red-2") == (1, "Reclaiming", "default/green-1")
        text = dispatcher.get("/metrics")[1]
        assert 'mcad_attempts_ended_total{next="queued",reason="Reclaimed"} 2.0' in text
        assert 'mcad_reservations_made_total{reason="Reclaiming"} 2.0' in text
        check_room(bystander.sights()[seen:], cpus_of, 6)


# -- priorities ----------------------------------------------------------------------------------


def test_a_higher_priority_gets_room_of_lower_ones(
    plane: ControlPlane, account: Path, bystander: Bystander
) -> None:
    seen = len(bystander.sights())
    with dispatching(plane, account, PREEMPTION) as dispatcher:
        submit(plane, "small", priority=-1)  # which has nothing that is wanted
        submit(plane, "equal", slots=1, priority=5)
        submit(plane, "low-1", slots=1)
        submit(plane, "low-2", slots=2)
        until(plane, small="Running", equal="Running", low_1="Running", low_2="Running")
        submit(plane, "urgent", slots=2, priority=5)
        until(
            plane,
            small="Running",
            equal="Running",
            low_1="Running",
            low_2="Pending",
            urgent="Running",
        )
        assert eviction(plane, "low-2") == (1, "Preempting", "default/urgent")
        until_told(plane, "low-2", "PreemptCandidate", "TakenBack")
        until_told(plane, "urgent", "RoomReserved", "Dispatched")
        assert "reservation" not in status_of(plane, "urgent"), "it has what it reserved"
        assert status_of(plane, "low-2")["dispatch"]["preemptor"]
        assert told(plane, "low-2", "PreemptCandidate")[0] == "False"
        log = dispatcher.log()
        assert "msg=room reserved" in log or 'msg="room reserved"' in log
        assert "reason=Preempted" in log
        wait_until_quiet(plane)
        mark = plane.audit_mark()
        plane.wait_for(
            lambda: len(ours(plane.audit(mark))) >= 5, what="its lease was renewed often"
        )
        assert writes(plane.audit(mark)) == [], "at rest nothing is written"
        check_room(bystander.sights()[seen:], slots_of, SLOTS)


def test_never_preempting_and_never_preempted(plane: ControlPlane, account: Path) -> None:
    gentle = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "gentle"},
        "value": 7,
        "preemptionPolicy": "Never",
    }
    plane.apply(gentle)
    keep = {"workload.codeflare.dev/never-preempt": "true"}
    with dispatching(plane, account, PREEMPTION, "neverPreempt=[default]"):
        submit(plane, "kept", slots=1, priority=-5, annotations=keep)
        submit(plane, "low", slots=3)
        until(plane, kept="Running", low="Running")
        submit(plane, "polite", slots=1, priority=9, rank="gentle")
        wait_until_quiet(plane)
        assert states(plane) == {"kept": "Running", "low": "Running", "polite": "Pending"}
        submit(plane, "rude", slots=3, priority=8)
        until(plane, kept="Running", low="Pending", polite="Pending", rude="Running")
        assert eviction(plane, "low") == (1, "Preempting", "default/rude")


# -- kill -9 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", budget.draw([False, True], 1, "killed at an eviction"))
def test_killed_at_every_write_of_an_eviction(
    plane: ControlPlane, account: Path, bystander: Bystander, committed: bool
) -> None:
    """Before each write is sent, or when it is committed and its answer is not heard: the next
    leader finishes it, and no other AppWrapper is evicted."""
    seen = len(bystander.sights())
    settings = PREEMPTION, "preemptionGracePeriod=0.5"
    with Gate(plane) as gate, dispatching(plane, gate.kubeconfig(account), *settings) as dispatcher:
        begin(plane, gate, 0)
        written = [one for one in finish(plane, gate, 0) if "/low-" not in one]
        assert len(set(written)) == 4, "the statuses of both, a pod that goes, and one that comes"
        hit = []
        for run, one in enumerate(written, 1):
            number = written[:run].count(one)
            begin(plane, gate, run, one, number, committed=committed)
            plane.wait_for(lambda n=run: gate.shut.is_set() or is_over(plane, n), PATIENCE_S, one)
            if not gate.shut.is_set():
                wait_until_quiet(plane, 0.3)
            if is_killed := gate.shut.is_set():
                dispatcher.kill()
                hit.append(one)
                plane.request("DELETE", LEASE)  # the next one need not wait for its end
            gate.open()
            if is_killed:
                dispatcher.start()
            finish(plane, gate, run)
        print(f"killed at {hit} of {written}")
        assert set(hit) == set(written)  # two statuses may be one another time
        check_room(bystander.sights()[seen:], slots_of, SLOTS)


def begin(
    plane: ControlPlane,
    gate: Gate,
    run: int,
    write: str = "",
    number: int = 0,
    *,
    committed: bool = False,
) -> None:
    """Two run, and one of them is evicted; the gate shuts when there is so often what was this
    write in run 0. Names are new in every run: a create of a killed process may come for a while
    (ADR 7)."""
    submit(plane, f"low-{run}", slots=2)
    submit(plane, f"lower-{run}", slots=2, priority=-1)
    until(plane, **{f"low-{run}": "Running", f"lower-{run}": "Running"})
    wait_until_quiet(plane, 0.3)
    gate.shut_at(write.replace("-0", f"-{run}"), number, committed=committed)
    submit(plane, f"urgent-{run}", slots=2, priority=5)


def is_over(plane: ControlPlane, run: int) -> bool:
    """Whether one of the three was evicted, and the others run."""
    ends = {"low": "Running", "lower": "Pending", "urgent": "Running"}
    return states(plane) == {f"{name}-{run}": state for name, state in ends.items()}


def finish(plane: ControlPlane, gate: Gate, run: int) -> list[str]:
    """One of the three was evicted once, and the others were dispatched once; what was written."""
    low, lower, urgent = (f"{name}-{run}" for name in ("low", "lower", "urgent"))
    plane.wait_for(lambda: is_over(plane, run), PATIENCE_S, f"the end of it after {gate.writes}")
    wait_until_quiet(plane, 0.3)
    assert eviction(plane, low) == (0, "", "")
    assert eviction(plane, lower) == (1, "Preempting", f"default/{urgent}")
    assert told(plane, lower, "Preempted")[:2] == ("True", "Preempted")
    for name in (low, lower, urgent):
        assert status_of(plane, name)["dispatch"]["attempt"] == 1
    assert "reservation" not in status_of(plane, urgent)
    there = {low: "Running", urgent: "Running"}
    plane.wait_for(lambda: phases(plane) == there, PATIENCE_S, f"these pods and no others: {there}")
    written = list(gate.writes)
    delete(plane)
    return written


# -- a stream of small AppWrappers ---------------------------------------------------------------


def test_a_gang_starts_in_spite_of_a_stream_of_small_ones(
    plane: ControlPlane, account: Path
) -> None:
    bystander = Bystander(plane, appwrappers_path())
    with dispatching(plane, account, "protectAfter=2"):
        numbers = count()

        def feed() -> None:
            """There are always some that would take whatever becomes free."""
            waiting = [name for name, state in states(plane).items() if state == "Pending"]
            for _ in range(3 - len([name for name in waiting if name != "gang"])):
                submit(plane, f"small-{next(numbers):03}", slots=1, seconds=2)

        for _ in range(4):
            feed()
            plane.wait_for(lambda: len(pods(plane)) >= 2, PATIENCE_S, "some run")
        submit(plane, "gang", slots=SLOTS)

        def starts() -> bool:
            feed()
            return states(plane)["gang"] == "Running"

        plane.wait_for(starts, PATIENCE_S, "the gang runs")
        until_told(plane, "gang", "RoomReserved")
        waiting = [name for name, state in states(plane).items() if state == "Pending"]
        assert waiting, "the stream has not dried up"
    seen = [one.object for one in bystander.sights()]
    reservations = [
        one["status"]["reservation"] for one in seen if one.get("status", {}).get("reservation")
    ]
    assert {one["reason"] for one in reservations} == {"Starved"}
    intents = {
        one["metadata"]["name"]: one["status"]["dispatch"]["intentTime"]
        for one in seen
        if one.get("status", {}).get("dispatch")
    }
    since = reservations[-1]["since"]
    assert [name for name, at in intents.items() if since < at < intents["gang"]] == []


# -- the journal ---------------------------------------------------------------------------------


def test_what_was_decided_is_decided_again_after_kills(
    plane: ControlPlane, account: Path, tmp_path: Path
) -> None:
    """Preemption, a refusal, an end, a deletion, and a kill in the middle of it all."""
    folder = tmp_path / "journal"
    submit(plane, "low-1", slots=1)
    submit(plane, "low-2", slots=SLOTS - 1)
    with dispatching(plane, account, "preemption=true", flags=("--journal", str(folder))) as it:
        plane.wait_for(lambda: set(states(plane).values()) == {"Running"}, PATIENCE_S, "both run")
        submit(plane, "large", slots=10 * SLOTS)
        submit(plane, "high", slots=2, priority=5, seconds=3)
        plane.wait_for(lambda: states(plane)["high"] == "Running", PATIENCE_S, "high runs")
        written = files_of(folder)[0].stat().st_size
        plane.wait_for(lambda: files_of(folder)[0].stat().st_size > written, what="another frame")
        it.kill()
        it.start()
        done = {"Completed", "Succeeded"}
        plane.wait_for(lambda: states(plane)["high"] in done, PATIENCE_S, "high ends")
        delete(plane, "large")
        wait_until_quiet(plane)
    out = mcad("replay", str(folder), "--diff")
    assert len(files_of(folder)) == 2, out
    assert out.count("  no difference") == 2, out
    story = mcad("replay", str(folder), "--aw", "high")
    assert "seen, priority 5" in story
    assert "event Dispatched: " in story
    assert "create Pod default/high (attempt 1)" in story
