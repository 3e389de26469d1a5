"""Which nodes the assumed pods take: placed, released, moved (core rule R3, protocol C6).

For every allotment: size = assumed (on nodes) + unplaced. Observations only release slots or
unplace them. ``place_unplaced``, the first step of each pass, takes slots off overcommitted nodes
and finds nodes for unplaced slots.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple, Protocol

from mcad.core.assumed.allotments import Allotment, AssumedGang
from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.nodes.columns import UNBOUNDED, take_slots
from mcad.core.nodes.ledger import Ledger, Plan, Row
from mcad.core.nodes.pod_class import PodClass
from mcad.core.nodes.shape import ClassKey
from mcad.core.state.model import PodSet, Resources
from mcad.core.state.records import replace
from mcad.core.state.violations import check

Held = tuple[tuple[str, Resources], ...]
"""(node, amounts) of each pod, and of the slots of each allotment on each node."""


class RemovedGang(NamedTuple):
    """A gang removed by a dry run, with its slots on nodes and unplaced slots, by allotment."""

    gang: AssumedGang
    slots: tuple[tuple[Allotment, dict[str, int], int], ...]


class PodClasses(Protocol):
    """The store of pod classes: pods that are equal for kube-scheduler share one class."""

    def hold_class(self, key: ClassKey) -> PodClass:
        """The class of the key, kept until each ``hold_class`` has its ``let_go_class``."""
        ...

    def let_go_class(self, pods: PodClass) -> None:
        """Drop one holder."""
        ...


class Assumed:
    """Every assumed gang by uid, and which allotments hold slots on which node (``slots_on``).

    ``held`` caches for dry runs what each AppWrapper has on nodes, by uid. ``reserved`` holds the
    gangs of reservations, the oldest first.
    """

    def __init__(
        self, ledger: Ledger, unplaced_pods: UnplacedPods, classes: PodClasses, *, on_nodes: bool
    ) -> None:
        self._ledger = ledger
        self._on_nodes = on_nodes
        self._unplaced_pods = unplaced_pods
        self._classes = classes
        self._made = 0
        self._unplaced: dict[Allotment, None] = {}
        self._per_node: dict[Allotment, None] = {}
        self._unnoted: dict[Allotment, None] = {}
        self.by_uid: dict[str, AssumedGang] = {}
        self.reserved: dict[str, AssumedGang] = {}
        self.slots_on: dict[str, dict[Allotment, None]] = {}
        self.held: dict[str, Held] = {}

    # -- making and ending ---------------------------------------------------------------------

    def make(
        self, uid: str, attempt: int, sets: tuple[PodSet, ...], *, leaving: bool = False
    ) -> AssumedGang:
        """Create a gang that holds nothing until it is placed."""
        check(uid not in self.by_uid, "reserved-once", f"{uid} has a reservation already")
        self._made += 1
        gang = AssumedGang(uid, attempt, self._made, leaving=leaving)
        allotments = []
        for position, pod_set in enumerate(sets):
            pods = self._classes.hold_class(ClassKey.of(pod_set))
            allotments.append(Allotment(gang, position, pod_set, pods))
        gang.allotments = tuple(allotments)
        self._per_node.update(dict.fromkeys(one for one in allotments if one.pod_set.per_node))
        self.by_uid[uid] = gang
        return gang

    def allotments(self, uid: str) -> tuple[Allotment, ...]:
        """The allotments of the AppWrapper, in the order of its pod sets; () if it has none."""
        gang = self.by_uid.get(uid)
        return gang.allotments if gang is not None else ()

    def nodes_of(self, uid: str) -> list[str]:
        """The sorted names of the nodes on which its pods are assumed or reserved."""
        return sorted({name for one in self.allotments(uid) for name in one.at})

    def reserve(self, gang: AssumedGang, plan: Plan) -> None:
        """Reserve the slots of the plan; they stay as they are until the reservation ends. Where
        only sums count, the slots have no nodes and reduce the sum for all others."""
        gang.reserved = True
        self.reserved[gang.uid] = gang
        self.place(gang, plan if self._on_nodes else [])
        gang.frozen = True

    def place(self, gang: AssumedGang, plan: Plan) -> None:
        """Assume the slots where the plan puts them; the other pods are unplaced."""
        gang.frozen = False
        for positions, row, times in plan:
            name, left = row.node.name, times
            for position in positions:
                allotment = gang.allotments[position]
                part = min(left, allotment.target - allotment.size)
                if part > 0 and not (allotment.pod_set.per_node and allotment.crowd(name)):
                    self._assume(allotment, name, part)
                    left -= part
        for allotment in gang.allotments:
            self.settle(allotment)

    def end(self, uid: str) -> None:
        """End the gang: it holds nothing any more."""
        gang = self.by_uid.pop(uid)
        self.reserved.pop(uid, None)
        for allotment in gang.allotments:
            self._per_node.pop(allotment, None)
            self._unnoted.pop(allotment, None)
            self._add_unplaced(allotment, -allotment.unplaced)
            for name, held in list(allotment.at.items()):
                self._release(allotment, name, held)
            self._classes.let_go_class(allotment.pods)
        gang.allotments = ()  # breaks the reference cycle, which only the collector would free

    # -- dry runs ------------------------------------------------------------------------------

    def remove(self, uid: str) -> RemovedGang:
        """Take the gang's slots off the nodes for a dry run, until ``restore``; its counts stay."""
        gang = self.by_uid.pop(uid)
        slots = tuple((one, one.at.copy(), one.unplaced) for one in gang.allotments)
        for allotment, at, unplaced in slots:
            self._add_unplaced(allotment, -unplaced)
            for name, held in at.items():
                self._release(allotment, name, held)
        return RemovedGang(gang, slots)

    def restore(self, removed: RemovedGang) -> None:
        """Put the slots back where they were; the nodes must not have changed."""
        self.by_uid[removed.gang.uid] = removed.gang
        for allotment, at, unplaced in removed.slots:
            for name, held in at.items():
                self._assume(allotment, name, held)
            self._add_unplaced(allotment, unplaced)

    # -- size ----------------------------------------------------------------------------------

    def settle(self, allotment: Allotment, near: str = "") -> None:
        """Bring the allotment to its target size. Missing slots are unplaced until the next pass. A
        surplus is taken from the node that a pod was just bound to (``near``), else from unplaced
        slots, else from the node assumed last (R3)."""
        self._unnoted[allotment] = None
        if near and not allotment.gang.frozen:
            self._yield_node(allotment, near)
        surplus = allotment.size - allotment.target
        if surplus < 0:
            self._add_unplaced(allotment, -surplus)
        if surplus <= 0:
            return
        here = min(surplus, allotment.at.get(near, 0))
        if here:
            self._release(allotment, near, here)
        unplaced = min(surplus - here, allotment.unplaced)
        self._add_unplaced(allotment, -unplaced)
        surplus -= here + unplaced
        while surplus:
            last = next(reversed(allotment.at))
            part = min(surplus, allotment.at[last])
            self._release(allotment, last, part)
            surplus -= part

    def _yield_node(self, allotment: Allotment, name: str) -> None:
        """Unplace, on a node with a bound pod of this set, sets that share no node with it."""
        for other in allotment.gang.allotments if allotment.bound.get(name) else ():
            held = other.at.get(name, 0)
            if held and other is not allotment and other.pod_set.excludes(allotment.pod_set):
                self._unplace(other, name, held)

    def settle_daemons(self) -> None:
        """Settle DaemonSets after a node came or went: each has a pod more or less to create."""
        for allotment in self._per_node:
            self.settle(allotment)

    def counts_in_sums(self, gang: AssumedGang) -> bool:
        """Whether the unplaced pods of the gang reduce the sum for other gangs."""
        return not (gang.reserved and self._on_nodes)

    def take_changed(self, most: int) -> list[str]:
        """Take the uids of gangs with changed pods or wanted counts, from at most ``most`` changed
        sets, and note their placement."""
        changed: dict[str, AssumedGang] = {}
        for allotment in list(islice(self._unnoted, most)):
            del self._unnoted[allotment]
            gang = allotment.gang
            if not gang.frozen:
                allotment.note_placement()
                changed[gang.uid] = gang
        for gang in changed.values():
            gang.note_placement()
        return list(changed)

    @property
    def is_noted(self) -> bool:
        """Whether ``take_changed`` has taken all changes."""
        return not self._unnoted

    def leave(self, name: str, *, unless_admitted_by: Row | None = None) -> None:
        """Unplace the slots on the node: all slots, or only slots that the node no longer
        admits."""
        row = unless_admitted_by
        for allotment in list(self.slots_on.get(name, {})):
            if row is None or not allotment.pods.admitted_by(row):
                self._unplace(allotment, name, allotment.at[name])

    # -- homes ---------------------------------------------------------------------------------

    def place_unplaced(self) -> None:
        """The first step of each pass: gangs come before the queue, older gangs first."""
        for name in list(self._ledger.overcommitted):
            self._shed(name)
        for allotment in sorted(self._unplaced, key=lambda allotment: allotment.order):
            self._find_nodes(allotment)

    def _shed(self, name: str) -> None:
        """Unplace slots of an overcommitted node, latest first, while they take missing amounts.
        Reserved slots stay: a reservation waits for the node, and takes nothing from pods there."""
        row = self._ledger.rows[name]
        holders = [one for one in self.slots_on.get(name, {}) if not one.gang.reserved]
        for allotment in sorted(holders, key=lambda one: one.order, reverse=True):
            request = allotment.pods.request
            over = max((-(row.unreserved(r) // n) for r, n in request), default=0)
            if over > 0:
                self._unplace(allotment, name, min(over, allotment.at[name]))
                self._ledger.post()

    def _find_nodes(self, allotment: Allotment) -> None:
        pods, left_alone = allotment.pods, allotment.gang.apart.get(allotment.position, ())
        slots = pods.slots(self._ledger.free)
        for at, fit in take_slots(slots, slots.total, most_first=False).pairs():
            name = self._ledger.row(at).node.name
            if name in left_alone:
                continue
            part = min(fit, allotment.unplaced)
            if part and pods.cap < UNBOUNDED:
                part = min(part, max(0, pods.cap - allotment.crowd(name)))
            if part and allotment.is_kept_off(name):
                continue
            if part:
                self._add_unplaced(allotment, -part)
                self._assume(allotment, name, part)
                self._ledger.post()
                if not allotment.unplaced:
                    break

    # -- slots ---------------------------------------------------------------------------------

    def _assume(self, allotment: Allotment, name: str, part: int) -> None:
        allotment.at[name] = allotment.at.get(name, 0) + part
        allotment.assumed += part
        self.slots_on.setdefault(name, {})[allotment] = None
        self._take(allotment, name, part)

    def _release(self, allotment: Allotment, name: str, part: int) -> None:
        allotment.at[name] -= part
        allotment.assumed -= part
        if not allotment.at[name]:
            del allotment.at[name]
            del self.slots_on[name][allotment]
            if not self.slots_on[name]:
                del self.slots_on[name]
        self._take(allotment, name, -part)

    def _take(self, allotment: Allotment, name: str, part: int) -> None:
        owner, request = allotment.gang, allotment.pods.request
        self.held.pop(owner.uid, None)
        if owner.reserved:
            self._ledger.reserve(name, owner.uid, request, part)
        else:
            self._ledger.note(name, request, part)

    def _unplace(self, allotment: Allotment, name: str, part: int) -> None:
        self._release(allotment, name, part)
        self._add_unplaced(allotment, part)

    def _add_unplaced(self, allotment: Allotment, more: int) -> None:
        if not more:
            return
        allotment.unplaced += more
        if self.counts_in_sums(allotment.gang):
            self._unplaced_pods.add(allotment.pods, more)
        if allotment.gang.reserved:
            return  # a reservation needs no node, or has lost it and is planned anew, or ends
        if allotment.unplaced:
            self._unplaced[allotment] = None
        else:
            del self._unplaced[allotment]


def shrunk_to(sets: tuple[PodSet, ...], gang: AssumedGang) -> tuple[PodSet, ...]:
    """The pod sets, each with only as many replicas as the gang still misses."""
    return tuple(
        pod_set
        if pod_set.per_node or allotment.uncovered == pod_set.replicas
        else replace(pod_set, replicas=allotment.uncovered)
        for pod_set, allotment in zip(sets, gang.allotments, strict=True)
    )
