"""The pods that an attempt has yet to bind: an allotment per pod set (protocol C2, C4).

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

    ``given_up`` counts the declared pods that the gang waits for no more. ``wanted`` is the number
    of pods in the live object, None if the object does not report it. ``have`` counts the set's
    pods that cover the allotment, by node in ``bound``; ``live`` counts also the pods that may yet
    come to cover it, ``on_nodes`` the live pods with a node, ready or not. ``finished`` holds the
    uids of succeeded pods, gone pods included, for sets whose finished pods are known in no other
    way. ``placed`` is the largest number of pods whose turn had come and that all had nodes
    together.
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
        """The pods of the manifest; a DaemonSet has one per node that admits its pods now."""
        return self.pods.count if self.pod_set.per_node else self.pod_set.replicas

    @property
    def declared(self) -> int:
        """The number of pods to reserve room for."""
        return max(0, self.manifested - self.given_up)

    @property
    def expected(self) -> int:
        """The pods that should exist in the end, with or without a reservation: at most the number
        in the manifest, and at most the number that the live object wants, now or later."""
        wanted = self.wanted
        return (
            self.manifested if wanted is None else min(self.manifested, wanted.now + wanted.later)
        )

    @property
    def size(self) -> int:
        """The slots that the allotment holds now, with or without a node."""
        return self.assumed + self.unplaced

    @property
    def goal(self) -> int:
        """The number of pods to cover, including bound and later pods."""
        left, wanted = self.declared - len(self.finished), self.wanted
        return max(0, left if wanted is None else min(left, wanted.now + wanted.later))

    @property
    def turn(self) -> int:
        """The number of pods that should exist now."""
        return self.goal if self.wanted is None else min(self.goal, self.wanted.now)

    @property
    def uncovered(self) -> int:
        """The pods that are neither bound nor done: C2 reserves room for these pods."""
        return max(0, self.goal - self.have)

    @property
    def target(self) -> int:
        """The slots to hold: one per uncovered pod, or no change while the gang is frozen."""
        return self.size if self.gang.frozen else self.uncovered

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: older dispatches first."""
        return (self.gang.order, self.position)

    def crowd(self, node: str) -> int:
        """Pods of the set and of equal sets on the node, bound or assumed: a cap per node counts
        them."""
        return sum(one.on(node) for one in self.gang.allotments if one.is_like(self))

    def is_like(self, other: Allotment) -> bool:
        """Whether pods of the two are interchangeable."""
        return self.pods is other.pods and self.neighbours == other.neighbours

    def is_kept_off(self, node: str) -> bool:
        """Whether the node has pods of another set that must share no node with this set."""
        return any(
            one.on(node) and one.pod_set.excludes(self.pod_set) for one in self.gang.allotments
        )

    def on(self, node: str) -> int:
        """The set's pods on the node, bound or assumed."""
        return self.at.get(node, 0) + self.bound.get(node, 0)

    @property
    def unseen(self) -> int:
        """The number of pods that should exist now and are not live."""
        return max(0, self.turn - self.live)

    @property
    def lacking(self) -> int:
        """The unseen pods, given up or not. A kind that does not report its pods may have fewer
        than declared, so after a give-up only a gang without any pod lacks some."""
        turn = self.manifested - len(self.finished)
        if self.wanted is not None:
            turn = min(turn, self.wanted.now)
        elif self.given_up and any(one.live or one.finished for one in self.gang.allotments):
            return self.unseen
        return max(0, turn - self.live)

    @property
    def never_placed(self) -> int:
        """The pods whose turn has come and that have not had nodes together with the others yet. A
        pod that had a node and lost it is not counted, nor is its successor."""
        return max(0, self.turn - max(self.on_nodes, self.placed))

    def note_placement(self) -> None:
        """Record it if all pods whose turn has come have nodes now."""
        if self.turn <= self.on_nodes:
            self.placed = max(self.placed, self.turn)

    def give_up(self, pods: int) -> None:
        """Stop waiting for this many pods (C4)."""
        if pods:
            self.given_up += self.declared - len(self.finished) - self.goal + pods

    def give_up_all(self) -> None:
        """Keep no room for any pod that is not bound now."""
        self.given_up = self.manifested


@dataclass(slots=True, eq=False)
class AssumedGang:
    """The allotments of one attempt. ``order`` numbers gangs in order of creation.

    ``frozen`` allotments keep their size: while the gang is being placed, and again during teardown
    until no pod is left (protocol C2, P4 c). ``leaving``: the gang was found in a teardown, so its
    terminating pods still cover their room. ``placed``: all declared pods have had nodes; from then
    on no pod without a node ends the attempt. ``reserved``: the gang is a reservation, for an
    attempt that has not begun, on room that others may still use. ``apart``: the nodes that its
    sets leave to each other, by position.
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
        """Set ``placed`` if all declared pods, later stages included, have had nodes."""
        if all(one.goal <= max(one.on_nodes, one.placed) for one in self.allotments):
            self.placed = True

    def allotment_for(self, pod: Pod) -> Allotment | None:
        """The allotment of this pod (C3): by the pod's label, as the only set of the item, or by an
        equal request. A pod of another attempt has none."""
        if pod.attempt not in (0, self.attempt):
            return None
        of_item = [one for one in self.allotments if one.pod_set.item == pod.item]
        labelled = [one for one in of_item if one.pod_set.index == pod.index]
        if labelled or len(of_item) == 1:
            return (labelled or of_item)[0]
        return _equal_request(of_item or list(self.allotments), pod)


def _equal_request(allotments: list[Allotment], pod: Pod) -> Allotment | None:
    """The first set, by item and index, that has this request and still misses a pod."""
    request = with_pod_slot(pod.request)
    equal = [one for one in allotments if with_pod_slot(one.pod_set.request) == request]
    equal.sort(key=lambda one: (one.pod_set.item, one.pod_set.index))
    missing = [one for one in equal if one.live < one.goal]
    return next(iter(missing or equal), None)
