"""What one attempt of an AppWrapper has to bind: an allotment per pod set (protocol C2, C4).

An allotment says how many slots it should hold; ``Assumed`` decides on which nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcad.core.nodes.host_ports import without_ports
from mcad.core.nodes.pod_class import PodClass
from mcad.core.nodes.resources import total, with_pod_slot
from mcad.core.nodes.shape import Neighbours, neighbours
from mcad.core.state.model import Pod, PodSet, Resources, Wanted


@dataclass(slots=True, eq=False)
class Allotment:
    """The reservation of one pod set: ``assumed`` slots on nodes (``at``) and ``unplaced`` ones.

    ``given_up`` is what of the declared pods is not waited for any more. ``wanted`` is what the
    live object says of its pods, None if it does not tell. ``have`` counts the own pods that cover
    the allotment, ``bound`` says on which nodes, ``live`` counts those that may come to cover it
    too, ``on_nodes`` those of the live ones with a node, be it ready or not, and ``finished`` holds
    the uids of succeeded pods, gone ones included, for sets whose pods are known in no other way.
    ``placed`` is how many pods had nodes at one time, when all of those had one whose turn had
    come.
    """

    gang: AssumedGang
    position: int
    pod_set: PodSet
    pods: PodClass
    given_up: int = 0
    wanted: Wanted | None = None
    have: int = 0
    live: int = 0
    on_nodes: int = 0
    placed: int = 0
    bound: dict[str, int] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    at: dict[str, int] = field(default_factory=dict)
    assumed: int = 0
    unplaced: int = 0
    neighbours: Neighbours = field(init=False)

    def __post_init__(self) -> None:
        self.neighbours = neighbours(self.pod_set)

    @property
    def manifested(self) -> int:
        """The pods of the manifest; a DaemonSet's are one per node that admits them, now."""
        return self.pods.count if self.pod_set.per_node else self.pod_set.replicas

    @property
    def declared(self) -> int:
        """The pods to reserve for."""
        return max(0, self.manifested - self.given_up)

    @property
    def expected(self) -> int:
        """The pods that should be there in the end, reserved for or not: as many of those in the
        manifest as the live object wants, now or later."""
        wanted = self.wanted
        return (
            self.manifested if wanted is None else min(self.manifested, wanted.now + wanted.later)
        )

    @property
    def size(self) -> int:
        """The slots it holds now, with or without a node."""
        return self.assumed + self.unplaced

    @property
    def goal(self) -> int:
        """How many pods it has to cover, bound ones and those that come later included."""
        left, wanted = self.declared - len(self.finished), self.wanted
        return max(0, left if wanted is None else min(left, wanted.now + wanted.later))

    @property
    def turn(self) -> int:
        """How many of these should exist now."""
        return self.goal if self.wanted is None else min(self.goal, self.wanted.now)

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
        """Pods of the set and of equal ones, bound or assumed, on the node: a cap per node counts
        them."""
        return sum(one.on(node) for one in self.gang.allotments if one.is_like(self))

    def is_like(self, other: Allotment) -> bool:
        """Whether pods of the two are interchangeable."""
        return self.pods is other.pods and self.neighbours == other.neighbours

    def is_kept_off(self, node: str) -> bool:
        """Whether another set of the gang that its pods share no node with has pods there."""
        return any(
            one.on(node) and one.pod_set.excludes(self.pod_set) for one in self.gang.allotments
        )

    def on(self, node: str) -> int:
        """Its pods on the node, bound or assumed."""
        return self.at.get(node, 0) + self.bound.get(node, 0)

    @property
    def unseen(self) -> int:
        """Pods that should exist now and of which no live one does."""
        return max(0, self.turn - self.live)

    @property
    def lacking(self) -> int:
        """Such pods, waited for or not. A kind that tells nothing may have fewer than declared, so
        once these are given up, only a gang without any pod lacks some."""
        turn = self.manifested - len(self.finished)
        if self.wanted is not None:
            turn = min(turn, self.wanted.now)
        elif self.given_up and any(one.live or one.finished for one in self.gang.allotments):
            return self.unseen
        return max(0, turn - self.live)

    @property
    def never_placed(self) -> int:
        """Pods whose turn has come, and that have not had nodes together with the others yet. One
        that had its node and lost it is not among them, nor is its successor."""
        return max(0, self.turn - max(self.on_nodes, self.placed))

    def note_placement(self) -> None:
        """If all pods whose turn has come have nodes now, they had them."""
        if self.turn <= self.on_nodes:
            self.placed = max(self.placed, self.turn)

    def give_up(self, pods: int) -> None:
        """Wait no more for so many of its pods (C4)."""
        if pods:
            self.given_up += self.declared - len(self.finished) - self.goal + pods

    def give_up_all(self) -> None:
        """Keep no room for any of its pods that is not bound now."""
        self.given_up = self.manifested


@dataclass(slots=True, eq=False)
class AssumedGang:
    """The allotments of one attempt. ``order`` numbers gangs as they were made.

    ``frozen`` allotments keep their size whatever happens: while the gang is being placed, and
    again during teardown until nothing is left (protocol C2, P4 c). ``leaving``: it was found in a
    teardown, so terminating pods still stand for the room that they have. ``placed``: all of its
    declared pods have had nodes; from then on no pod without one ends the attempt. ``reserved``: it
    is a reservation, for an attempt that has not begun, on room that others may still use.
    ``apart``: the nodes that its sets leave to each other, by position.
    """

    uid: str
    attempt: int
    order: int
    allotments: tuple[Allotment, ...] = ()
    frozen: bool = True
    leaving: bool = False
    placed: bool = False
    reserved: bool = False
    apart: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def request(self) -> Resources:
        """The sum of the requests of its assumed pods, without host ports."""
        return without_ports(total((one.pods.request, one.size) for one in self.allotments))

    def note_placement(self) -> None:
        """If all declared pods, those of later stages included, have had nodes, it is placed."""
        if all(one.goal <= max(one.on_nodes, one.placed) for one in self.allotments):
            self.placed = True

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
