"""The audit notices every kind of wrong entry: a check that cannot fail checks nothing."""

from collections.abc import Callable

import pytest

from mcad.core.capacity import Capacity
from mcad.core.cluster import Cluster
from mcad.core.nodes.shape import ClassKey
from mcad.core.state.model import Wanted
from mcad.core.state.violations import InvariantViolated
from tests.core.bench import Bench, workload
from tests.core.bench import node as worker
from tests.core.builders import cluster, node, on, pod, pods
from tests.core.quotas import teams


def lived_in() -> Capacity:
    """Two nodes, a gang that is half bound, one unplaced, a foreign pod."""
    capacity = cluster(node("a", "4", labels={"zone": "a"}), node("b", "4"))
    sets = (pods(3, where=on()), pods(1, item=1, where=on(zone="a")))
    capacity.pod_seen(pod("foreign", "b"))
    assert capacity.assume("one", 1, capacity.shape(sets), sets) is None
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0))
    lost = (pods(2, "9"),)
    capacity.gangs.adopt("two", 1, lost)
    capacity.place_unplaced()
    assert not capacity.take_requeued()
    capacity.check()
    return capacity


def _allotment(capacity: Capacity, position: int = 0) -> object:
    return capacity._assumed.by_uid["one"].allotments[position]


def _at(capacity: Capacity, name: str) -> int:
    return capacity._ledger.rows[name].at


SPOILT: dict[str, Callable[[Capacity], object]] = {
    "free-is-what-is-left": lambda c: c._ledger.free.add(_at(c, "a"), [("cpu", 1)], 1),
    "idle-is-what-foreign-pods-leave": lambda c: c._ledger.idle.add(_at(c, "b"), [("cpu", 1)], 1),
    "whole-is-what-the-node-has": lambda c: c._ledger.whole.add(_at(c, "a"), [("cpu", 1)], 1),
    "rows-without-a-node-are-empty": lambda c: c._ledger.idle.opened("cpu").__setitem__(-1, 1),
    "one-reservation-at-most": lambda c: setattr(c._ledger.rows["a"], "reserved_for", "x"),
    "reserved-is-what-is-reserved": lambda c: c._ledger.rows["b"].reserved.update(cpu=1),
    "overcommitted-is-known": lambda c: c._ledger.overcommitted.update(a=None),
    "constraints-hold-what-they-admit": lambda c: c._ledger.constraints.leave(_at(c, "a")),
    "bounds-are-bounds": lambda c: c._memory.bounds.__setitem__(_allotment(c).pods, 0),
    "slots-are-positive": lambda c: _allotment(c).at.update(gone=0),
    "slots-are-where-pods-may-go": lambda c: setattr(
        _allotment(c, 1), "pods", c._memory.hold_class(ClassKey((("cpu", 1000),), on(zone="b"), 0))
    ),
    "slots-are-known-by-node": lambda c: c._assumed.slots_on.update(gone={}),
    "assumed-is-the-sum-of-slots": lambda c: setattr(_allotment(c), "assumed", 7),
    "placed-and-unplaced-is-what-is-assumed": lambda c: setattr(_allotment(c), "wanted", Wanted(1)),
    "present-pods-are-counted": lambda c: (
        setattr(_allotment(c), "have", 0),
        setattr(_allotment(c), "given_up", 1),
    ),
    "live-pods-are-counted": lambda c: setattr(_allotment(c), "live", 0),
    "pods-with-nodes-are-counted": lambda c: setattr(_allotment(c), "on_nodes", 0),
    "bound-is-counted-by-node": lambda c: setattr(_allotment(c), "bound", {}),
    "allotments-are-of-known-gangs": lambda c: setattr(
        c._pod_index.uses["foreign"], "allotment", cluster_allotment()
    ),
    "unplaced-demand-is-the-sum": lambda c: c._unplaced_pods.by_class.popitem(),
    "held-is-what-is-there": lambda c: c._assumed.held.update(one=()),
    "unused-charges-are-dropped": lambda c: c._assumed.held.update(unknown=()),
}


def cluster_allotment() -> object:
    """An allotment of a reservation that this Capacity does not know."""
    return _allotment(lived_in())


def charged() -> Cluster:
    """A world in which one AppWrapper runs by its team's share."""
    bench = Bench(nodes=[worker()])
    bench.share(*teams(1000, red=500))
    bench.submit(workload("a", 300, quota=(("gold", "red"),)))
    bench.settle()
    bench.dispatcher.cluster.admission.check()
    return bench.dispatcher.cluster


SPOILT_SHARES: dict[str, Callable[[Cluster], object]] = {
    "usage-is-what-is-charged": lambda w: w.forest.trees["gold"].nodes["red"].usage.update(cpu=1),
    "path-is-current": lambda w: w.forest.charges.update(
        {"uid-a": w.forest.charges["uid-a"]._replace(path=())}
    ),
    "charged-while-assumed": lambda w: w.forest.release("uid-a"),
}


@pytest.mark.parametrize("name", SPOILT_SHARES)
def test_the_audit_notices_what_is_wrong_with_shares(name: str) -> None:
    cluster = charged()
    SPOILT_SHARES[name](cluster)
    with pytest.raises(InvariantViolated) as caught:
        cluster.admission.check()

    assert caught.value.name == name


@pytest.mark.parametrize("name", SPOILT)
def test_the_audit_notices(name: str) -> None:
    capacity = lived_in()
    SPOILT[name](capacity)
    with pytest.raises(InvariantViolated) as caught:
        capacity.check()

    assert caught.value.name == name
