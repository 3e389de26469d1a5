"""The audit of everything that is kept twice: it finds each kind of difference, by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcad.core import invariants
from mcad.core.cluster import Cluster
from mcad.core.state.entry import Hold
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import HoldReason
from mcad.core.state.timers import Timer
from mcad.core.state.violations import InvariantViolated
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
    assert len(found.queue) == 3
    return found


def _places(found: Cluster) -> dict:
    return found.queue._places


def _bucket(found: Cluster, name: str = "waits"):
    eqclass = found.queue.eqclass_of(found.entries[f"uid-{name}"])
    assert eqclass is not None
    return eqclass


def _shift(found: Cluster) -> None:
    eqclass = _bucket(found)
    listed_in = eqclass.listed_in
    at = listed_in.line.index((eqclass.listed_by, eqclass))
    eqclass.listed_by = (eqclass.listed_by[0], eqclass.listed_by[1], "zzz")
    listed_in.line[at] = (eqclass.listed_by, eqclass)


def _becomes(found: Cluster, milli: int) -> None:
    found.entries["uid-waits"].workload = workload("waits", milli, quota=((GOLD, "blue"),))


FAULTS: dict[str, Callable[[Cluster], object]] = {
    "place-is-known": lambda w: _places(w).update({"uid-waits": _places(w)["uid-too"]}),
    "each-stands-once": lambda w: _places(w).update({"uid-x": _places(w)["uid-too"]}),
    "in-line-or-on-hold": lambda w: setattr(
        w.entries["uid-waits"], "hold", Hold(HoldReason.SUSPENDED, "")
    ),
    "only-those-that-wait-wait": lambda w: setattr(
        w.entries["uid-waits"], "phase", Phase.COMPLETED
    ),
    "awake-or-at-rest": lambda w: w.inadmissible._active.update({_bucket(w): None}),
    "lies-in-its-bed": lambda w: _bucket(w).listed_in.line.clear(),
    "lies-by-its-head": _shift,
    "demand-in-line-is-the-sum": lambda w: w.forest.waiting.join(_bucket(w).path, _bucket(w).shape),
    "timers-have-lines": lambda w: w.entries["uid-runs"].timers.update({Timer.LIMIT: 7}),
    "wishes-have-lines": lambda w: w.timers._wishes.add(7),
    "names-are-of-objects": lambda w: w.names._observed.update({("", "pods", "a", "b"): "x"}),
    "objects-have-names": lambda w: w.names._observed.clear(),
    "reservations-are-known": lambda w: w.reservations.update(
        {"uid-waits": w.entries["uid-waits"]}
    ),
    "only-reservations-wait-for-others": lambda w: w.entries["uid-waits"].waits_for.update(
        {"uid-runs": 1}
    ),
    "waits-for-a-kind-if-on-hold-for-it": lambda w: w.waiting_for_kind.update({"uid-held": None}),
    "only-what-exists-is-remembered": lambda w: w.waiting_for_kind.update({"uid-gone": None}),
    "each-child-has-one-parent": lambda w: w.children_of.clear(),
    "charged-as-long-as-reserved": lambda w: w.forest.release("uid-runs"),
    "free-is-what-is-left": lambda w: w.capacity._ledger.rows["n1"].free.update(cpu=7),
    "stands-with-its-shape": lambda w: _becomes(w, 150),
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
