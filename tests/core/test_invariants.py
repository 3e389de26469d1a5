"""The audit of everything that is kept twice: it finds each kind of difference, by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcad.core import invariants
from mcad.core.cluster import Cluster
from mcad.core.queue.active import ActiveClasses
from mcad.core.queue.equivalence import EquivalenceClass, Key
from mcad.core.state.lifecycle import Phase
from mcad.core.state.timers import Timer
from mcad.core.state.violations import InvariantViolated
from mcad.core.state.waiting_reason import Hold, WaitingReason
from mcad.core.state.waiting_state import ClassState, WaitingState
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


def _shift(found: Cluster) -> None:
    eqclass = _class_of(found)
    listed_in = eqclass.of_list
    at = listed_in.line.index((eqclass.listed_by, eqclass))
    eqclass.listed_by = (eqclass.listed_by[0], eqclass.listed_by[1], "zzz")
    listed_in.line[at] = (eqclass.listed_by, eqclass)


def _becomes(found: Cluster, milli: int) -> None:
    found.entries["uid-waits"].workload = workload("waits", milli, quota=((GOLD, "blue"),))


def _claims_to_represent(found: Cluster) -> None:
    eqclass = _class_of(found)
    found.waiting.inadmissible.requeue(eqclass)
    eqclass.state, eqclass.of_list = ClassState.REPRESENTATIVE, eqclass.of_shape


def _active(found: Cluster) -> tuple[ActiveClasses, EquivalenceClass]:
    """The active classes, one of which needs a verdict."""
    eqclass = _class_of(found)
    found.waiting.inadmissible.requeue(eqclass)
    return found.waiting.inadmissible.active, eqclass


def _is_active_by(found: Cluster, key: Key) -> None:
    active, eqclass = _active(found)
    active._places[eqclass] = (active.part_of(eqclass), key)


def _is_active_elsewhere(found: Cluster) -> None:
    active, eqclass = _active(found)
    active._parts[active.part_of(eqclass)].clear()


def _is_found_no_more(found: Cluster) -> None:
    active, eqclass = _active(found)
    del active._at[eqclass.key]


def _lists_another(found: Cluster) -> None:
    active, eqclass = _active(found)
    active._parts[active.part_of(eqclass)].add((*eqclass.key[:2], "zzz"))


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
    "represents-its-list": _claims_to_represent,
    "active-or-inadmissible": lambda w: w.waiting.inadmissible.active.add(_class_of(w)),
    "active-at-its-place": lambda w: _is_active_by(w, (0, 0, "zzz")),
    "active-classes-are-found": _is_found_no_more,
    "active-in-its-series": _is_active_elsewhere,
    "only-active-classes-are-listed": _lists_another,
    "contested-lists": lambda w: w.waiting.inadmissible._contested.update(
        {_class_of(w).of_list: None}
    ),
    "listed-in-its-list": lambda w: _class_of(w).of_list.line.clear(),
    "listed-by-its-head": _shift,
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
