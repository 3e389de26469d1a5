"""The audit of everything that is kept twice: it finds each kind of difference, by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcad.core import invariants
from mcad.core.cluster import Cluster
from mcad.core.nodes.shape import Shape
from mcad.core.queue.equivalence import AwaitedShare, EquivalenceClass
from mcad.core.state.lifecycle import Phase
from mcad.core.state.timers import Timer
from mcad.core.state.violations import InvariantViolated
from mcad.core.state.waiting_reason import Hold, WaitingReason
from mcad.core.state.waiting_state import WaitingState
from tests.core.bench import Bench, node, workload
from tests.core.quotas import GOLD, teams


def cluster() -> Cluster:
    """One runs, two wait for nodes, one for a share, one is suspended."""
    bench = Bench(nodes=[node("n1", 300)])
    bench.share(*teams(500, red=250, blue=250))
    bench.submit(workload("runs", 250, quota=((GOLD, "red"),)))
    bench.settle()
    bench.submit(
        workload("waits", 200, quota=((GOLD, "blue"),)),
        workload("too", 100, quota=((GOLD, "blue"),)),
        workload("share", 400, quota=((GOLD, "red"),)),
        workload("held", 100, suspended=True),
    )
    bench.settle()
    found = bench.dispatcher.cluster
    assert len(found.waiting.queue) == 3
    return found


def _places(found: Cluster) -> dict:
    return found.waiting.queue._places


def _class_of(found: Cluster, name: str = "waits"):
    eqclass = found.waiting.queue.eqclass_of(found.entries[f"uid-{name}"])
    assert eqclass is not None
    return eqclass


def _becomes(found: Cluster, milli: int) -> None:
    found.entries["uid-waits"].workload = workload("waits", milli, quota=((GOLD, "blue"),))


def _is_kept_elsewhere(found: Cluster) -> None:
    kept, eqclass = found.waiting.queue._eqclasses, _class_of(found)
    kept[_another().alike] = kept.pop(eqclass.alike)


def _another() -> EquivalenceClass:
    return EquivalenceClass(Shape.of(()), 0, (), "")


FAULTS: dict[str, Callable[[Cluster], object]] = {
    "place-in-line-is-known": lambda w: _places(w).update({"uid-waits": _places(w)["uid-too"]}),
    "each-is-in-line-once": lambda w: _places(w).update({"uid-x": _places(w)["uid-too"]}),
    "held-by-its-state": lambda w: setattr(
        w.entries["uid-waits"].wait, "hold", Hold(WaitingReason.SUSPENDED, "")
    ),
    "in-line-by-its-state": lambda w: setattr(
        w.entries["uid-held"].wait, "state", WaitingState.IN_LINE
    ),
    "reserved-by-its-state": lambda w: setattr(
        w.entries["uid-held"].wait, "state", WaitingState.RESERVED
    ),
    "waits-in-its-phase": lambda w: setattr(w.entries["uid-waits"], "phase", Phase.COMPLETED),
    "classes-are-found": _is_kept_elsewhere,
    "active-or-inadmissible": lambda w: w.waiting.verdicts.active.update({_class_of(w): None}),
    "found-by-what-it-awaits": lambda w: w.waiting.verdicts._inadmissible.clear(),
    "found-by-its-last-test": lambda w: w.waiting.verdicts._tested.clear(),
    "waits-for-one-thing": lambda w: w.waiting.verdicts._inadmissible.update(
        {AwaitedShare("gold", "other", "cpu", 1): {_class_of(w): None}}
    ),
    "shares-are-found-by-node": lambda w: w.waiting.verdicts._shares.clear(),
    "shares-are-awaited": lambda w: w.waiting.verdicts._shares.update(
        {("gold", "other"): {AwaitedShare("gold", "other", "cpu", 1): None}}
    ),
    "only-classes-in-line": lambda w: w.waiting.verdicts.active.update({_another(): None}),
    "demand-in-line-is-the-sum": lambda w: w.forest.in_line.join(
        _class_of(w).path, _class_of(w).shape
    ),
    "timers-have-lines": lambda w: w.entries["uid-runs"].timers.update({Timer.HEALTH: 7}),
    "wishes-have-lines": lambda w: w.agenda.timers._wishes.add(7),
    "names-are-of-objects": lambda w: w.objects.names._observed.update(
        {("", "pods", "a", "b"): "x"}
    ),
    "objects-have-names": lambda w: w.objects.names._observed.clear(),
    "reservations-are-known": lambda w: w.reservations._owners.update(
        {"uid-waits": w.entries["uid-waits"]}
    ),
    "only-reservations-wait-for-others": lambda w: w.entries["uid-waits"].waits_for.update(
        {"uid-runs": 1}
    ),
    "waits-for-a-kind-by-its-hold": lambda w: w.waiting.for_kind.update({"uid-held": None}),
    "only-known-appwrappers-are-remembered": lambda w: w.waiting.for_kind.update(
        {"uid-gone": None}
    ),
    "each-object-has-one-appwrapper": lambda w: w.objects.by_workload.clear(),
    "charged-while-assumed": lambda w: w.forest.release("uid-runs"),
    "free-is-what-is-left": lambda w: w.capacity._ledger.free.fill(
        "cpu", 7, w.capacity._ledger.facts.ready
    ),
    "in-line-with-its-shape": lambda w: _becomes(w, 150),
}


def test_a_world_in_order_passes() -> None:
    invariants.everything(cluster())


@pytest.mark.parametrize("name", FAULTS)
def test_each_difference_is_found(name: str) -> None:
    found = cluster()
    FAULTS[name](found)
    with pytest.raises(InvariantViolated) as raised:
        invariants.everything(found)
    assert raised.value.name == name
