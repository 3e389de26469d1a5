"""The wait for bindings: a gang that fits starts only if no order of binding could strand it, or a
recently dispatched gang (core R2).

kube-scheduler binds pods one by one. Where room is scarce, pods of two gangs may take each other's
nodes, and both gangs wait until ``placementTimeout`` takes them back. So the second gang waits
until the pods of the first are bound, mostly for less than a second, and never for longer than
``BINDING_WAIT``. No gang behind it that could take its room starts meanwhile.
"""

from __future__ import annotations

from mcad.core.assumed.in_flight import InFlight
from mcad.core.cluster import Cluster
from mcad.core.nodes.constraints import NodeSet
from mcad.core.nodes.shape import Shape
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.state.bounds import BINDING_WAITS_MAX
from mcad.core.state.entry import Entry
from mcad.core.state.units import Duration, Instant


def note_dispatch(cluster: Cluster, entry: Entry, since: Instant) -> None:
    """Note a dispatch at ``since``: until the pods are bound, other gangs may have to wait.
    Attempts are noted in the order of their dispatch, those of an earlier leader first."""
    flying, limit = cluster.walk.in_flight, _limit(cluster)
    _forget_old(cluster)
    if since + limit > cluster.now:
        flying.pop(entry.uid, None)  # of an earlier attempt: the latest dispatch comes last
        flying[entry.uid] = since


def owner_waits(cluster: Cluster, entry: Entry) -> bool:
    """Whether the owner of a reservation, which fits, has to wait as AppWrappers in line have to;
    asks for a pass at the end."""
    _forget_old(cluster)
    shape, flying = cluster.capacity.shape(entry.workload.sets), cluster.walk.in_flight
    in_flight = cluster.capacity.gangs.in_flight(flying)
    since = entry.wait.binding_since or cluster.now
    until = since + _limit(cluster)
    waits = cluster.now < until and bool(flying) and cluster.capacity.may_strand(in_flight, shape)
    entry.wait.binding_since = since if waits else 0
    if waits:
        cluster.agenda.wake_at(until)
    return waits


class BindingWait:
    """The gangs in flight in one pass, looked up when the first gang is about to start."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._limit = _limit(cluster)
        self._in_flight: InFlight | None = None
        self._ahead: NodeSet = 0  # the nodes of the classes that wait
        self._waiting = 0  # how many classes wait

    def waits(self, eqclass: EquivalenceClass) -> bool:
        """Whether the head of the class, which fits, has to wait; asks for a pass at the end."""
        cluster, entry = self._cluster, eqclass.first()
        if not cluster.walk.in_flight:
            return False
        if not (self._is_behind(eqclass) or self._may_strand(eqclass.shape)):
            return False
        entry.wait.binding_since = entry.wait.binding_since or cluster.now
        return self.still_waits(eqclass)

    def still_waits(self, eqclass: EquivalenceClass) -> bool:
        """Whether the head of the class, which had to wait when it was judged, goes on waiting. If
        so, classes behind do not get its nodes, and a pass at the end is requested."""
        cluster, since = self._cluster, eqclass.first().wait.binding_since
        until = since + self._limit
        if not since or cluster.now >= until or not cluster.walk.in_flight:
            return False
        cluster.agenda.wake_at(until)
        self._waiting += 1
        if self._waiting < BINDING_WAITS_MAX:
            self._ahead |= cluster.capacity.nodes_for(eqclass.shape)
        return True

    @staticmethod
    def refused(eqclass: EquivalenceClass) -> None:
        """End the wait of the head, which does not fit any more; the next wait begins anew."""
        eqclass.first().wait.binding_since = 0

    def starts(self, entry: Entry) -> None:
        """Count the pods of an AppWrapper that starts now as in flight."""
        entry.wait.binding_since = 0
        if self._in_flight is not None:
            self._in_flight.add(entry.uid)

    def _is_behind(self, eqclass: EquivalenceClass) -> bool:
        nodes = self._cluster.capacity.nodes_for(eqclass.shape)
        return self._waiting >= BINDING_WAITS_MAX or bool(self._ahead & nodes)

    def _may_strand(self, shape: Shape) -> bool:
        cluster = self._cluster
        if self._in_flight is None:
            _forget_old(cluster)
            self._in_flight = cluster.capacity.gangs.in_flight(cluster.walk.in_flight)
        return cluster.capacity.may_strand(self._in_flight, shape)


def _limit(cluster: Cluster) -> Duration:
    """The longest wait of an AppWrapper; 0 where no pod has a planned node."""
    return cluster.settings.binding_wait if cluster.capacity.counts_nodes else 0


def _forget_old(cluster: Cluster) -> None:
    """Forget the dispatches that are older than the limit; the oldest comes first."""
    flying, since = cluster.walk.in_flight, cluster.now - _limit(cluster)
    while flying and flying[first := next(iter(flying))] <= since:
        del flying[first]
