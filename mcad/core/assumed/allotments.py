"""What one attempt of an AppWrapper has to bind: an allotment per pod set (protocol C2, C4).

An allotment says how many slots it should hold; ``Assumed`` decides on which nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcad.core.nodes.host_ports import without_ports
from mcad.core.nodes.pod_signature import PodClass
from mcad.core.nodes.resources import total, with_pod_slot
from mcad.core.state.model import Pod, PodSet, Resources
from mcad.core.state.units import Instant


@dataclass(slots=True, eq=False)
class Allotment:
    """The reservation of one pod set: ``assumed`` slots on nodes (``at``) and ``unplaced`` ones.

    ``given_up`` is what of the declared pods is not waited for any more, and ``needs`` since when
    how many are wanted and do not exist, latest last. ``want`` is the live child's figure, None if
    it does not tell. ``have`` counts the own pods that cover the allotment, ``bound`` says on which
    nodes, ``live`` counts those that may come to cover it too, ``came`` those that ever had a node,
    and ``finished`` holds the uids of succeeded pods, gone ones included, for sets whose want is
    known in no other way.
    """

    gang: AssumedGang
    position: int
    pod_set: PodSet
    pods: PodClass
    given_up: int = 0
    want: int | None = None
    have: int = 0
    live: int = 0
    came: int = 0
    bound: dict[str, int] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    at: dict[str, int] = field(default_factory=dict)
    assumed: int = 0
    unplaced: int = 0
    needs: list[tuple[Instant, int]] = field(default_factory=list)

    @property
    def manifested(self) -> int:
        """The pods of the manifest; a DaemonSet's are one per node that admits them, now."""
        return len(self.pods.pool.rows) if self.pod_set.per_node else self.pod_set.replicas

    @property
    def declared(self) -> int:
        """The pods to reserve for."""
        return max(0, self.manifested - self.given_up)

    @property
    def expected(self) -> int:
        """The pods that should be there, reserved for or not: as many as the live child wants of
        those in the manifest."""
        return self.manifested if self.want is None else min(self.manifested, self.want)

    @property
    def size(self) -> int:
        """The slots it holds now, with or without a node."""
        return self.assumed + self.unplaced

    @property
    def goal(self) -> int:
        """How many pods it has to cover, bound ones included."""
        left = self.declared - len(self.finished)
        return max(0, left if self.want is None else min(left, self.want))

    @property
    def uncovered(self) -> int:
        """Pods that are neither bound nor done: what C2 reserves."""
        return max(0, self.goal - self.have)

    @property
    def target(self) -> int:
        """The slots it should hold: what is uncovered, unless it is frozen."""
        return self.size if self.gang.frozen else self.uncovered

    @property
    def order(self) -> tuple[int, int]:
        """Older dispatches first."""
        return (self.gang.order, self.position)

    def crowd(self, node: str) -> int:
        """Own pods of the class, bound or assumed, on the node: a cap per node counts them.

        Each DaemonSet has its own pod on a node, so it counts for itself alone.
        """
        alike = [one for one in self.gang.allotments if one.pods is self.pods]
        counted = [self] if self.pod_set.per_node else alike
        return sum(one.at.get(node, 0) + one.bound.get(node, 0) for one in counted)

    @property
    def unseen(self) -> int:
        """Pods that are wanted and of which no live one exists."""
        return max(0, self.uncovered - max(0, self.live - self.have))

    def note_needs(self, now: Instant) -> None:
        """What has come to be unseen is so from now on; what was seen ends the latest needs."""
        more = self.unseen - sum(n for _, n in self.needs)
        while more < 0:
            since, n = self.needs.pop()
            more += n
            if more > 0:
                self.needs.append((since, more))
                return
        if more:
            self.needs.append((now, more))

    def give_up(self, until: Instant) -> int:
        """Wait no more for pods that have been unseen since ``until``; returns how many (C4)."""
        old = sum(n for since, n in self.needs if since <= until)
        if old:
            self.given_up += self.declared - len(self.finished) - self.goal + old
            self.needs = [(since, n) for since, n in self.needs if since > until]
        return old


@dataclass(slots=True, eq=False)
class AssumedGang:
    """The allotments of one attempt. ``order`` numbers gangs as they were made.

    ``frozen`` allotments keep their size whatever happens: while the gang is being placed, and
    again during teardown until nothing is left (protocol C2, P4 c). ``leaving``: it was found in a
    teardown, so terminating pods still stand for the room that they have. ``awaited``: its items
    exist, so its pods are waited for, up to a time-out (C4). ``placed``: all of its pods had nodes
    once, or the time for that is over. ``reserved``: it is a reservation, for an attempt that has
    not begun, on room that others may still use. ``apart``: the nodes that its sets leave to each
    other by position, None as long as no item was created.
    """

    uid: str
    attempt: int
    order: int
    allotments: tuple[Allotment, ...] = ()
    frozen: bool = True
    leaving: bool = False
    awaited: bool = False
    placed: bool = False
    reserved: bool = False
    apart: dict[int, tuple[str, ...]] | None = None

    @property
    def request(self) -> Resources:
        """The sum of the requests of its assumed pods, without host ports."""
        return without_ports(total((one.pods.request, one.size) for one in self.allotments))

    def allotment_for(self, pod: Pod) -> Allotment | None:
        """The allotment of this pod (C3): by its label, as the only set of its item, or by an equal
        request. A pod of another attempt has none."""
        if pod.attempt not in (0, self.attempt):
            return None
        of_item = [one for one in self.allotments if one.pod_set.item == pod.item]
        labelled = [one for one in of_item if one.pod_set.index == pod.index]
        if labelled or len(of_item) == 1:
            return (labelled or of_item)[0]
        return _equal_request(of_item or list(self.allotments), pod)


def _equal_request(allotments: list[Allotment], pod: Pod) -> Allotment | None:
    """Among the sets with this request the first that still misses a pod, by item and index."""
    request = with_pod_slot(pod.request)
    equal = [one for one in allotments if with_pod_slot(one.pod_set.request) == request]
    equal.sort(key=lambda one: (one.pod_set.item, one.pod_set.index))
    missing = [one for one in equal if one.live < one.goal]
    return next(iter(missing or equal), None)
