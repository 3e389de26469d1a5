"""Nodes, assumed pods and verdicts as one: what is there, what is taken, what fits.

Observations change the books and never decide. A pass begins with ``place_unplaced``; then shapes
are tested, and gangs that fit are assumed, all of a gang or nothing (protocol C1-C6, core R1-R4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from mcad.core.assumed import apart
from mcad.core.assumed.allotments import AssumedGang
from mcad.core.assumed.assumed import Assumed, Held, RemovedGang, shrunk_to
from mcad.core.assumed.in_flight import InFlight
from mcad.core.assumed.node_report import NodeReport, Report
from mcad.core.assumed.pod_index import PodIndex
from mcad.core.assumed.reserved_room import ReservedRoom
from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.assumed.workload_pods import WorkloadPods
from mcad.core.fit.audit import audit
from mcad.core.fit.domains import LEFT_OFF, Domains, confined, domains_of
from mcad.core.fit.fit import Judge
from mcad.core.fit.memory import Memory
from mcad.core.fit.own_nodes import unbound_of
from mcad.core.fit.prospect import Prospect
from mcad.core.fit.questions import Questions
from mcad.core.fit.topology_levels import common_domain, domain_levels, put_together, widened
from mcad.core.nodes.constraints import NodeSet
from mcad.core.nodes.ledger import Ledger, Plan
from mcad.core.nodes.reserved_free import Spare
from mcad.core.nodes.resources import book, total, with_pod_slot
from mcad.core.nodes.shape import Shape
from mcad.core.snapshot.quota import Shares
from mcad.core.snapshot.snapshot import Snapshot, Variants, View
from mcad.core.state.model import (
    ChosenDomain,
    Constraint,
    Domain,
    KeptApart,
    Node,
    Pod,
    PodSet,
    Resources,
    Wanted,
)
from mcad.core.state.records import replace
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Fit, Settings
from mcad.core.state.violations import check

__all__ = [
    "LEFT_OFF",
    "NOTHING_REPORTED",
    "Capacity",
    "NodeReport",
    "Questions",
    "Shape",
    "Wants",
]

Wants = Mapping[tuple[int, int], Wanted | None]
"""The pods that live objects want, by (item, index) of the set; None where one does not tell."""

NOTHING_REPORTED: Wants = {}


class Capacity:
    """The ledger of the nodes, the pod index, the assumed gangs and the verdicts, kept in step.

    ``pods`` answers about the pods of an AppWrapper, ``reserved`` about the room of reservations,
    and ``report`` has the books of the nodes.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._levels = settings.topology_levels
        self._on_nodes = settings.fit is Fit.NODES
        self._ledger = Ledger(with_ports=self._on_nodes)
        self._memory = Memory(self._ledger, on_nodes=self._on_nodes)
        self._unplaced_pods = UnplacedPods(self._ledger, on_nodes=self._on_nodes)
        self._assumed = Assumed(
            self._ledger, self._unplaced_pods, self._memory, on_nodes=self._on_nodes
        )
        self._pod_index = PodIndex(self._ledger, self._assumed)
        self._judge = Judge(
            settings, self._ledger, self._unplaced_pods, self._memory.bounds, remembers=True
        )
        self._domains = Domains(self._ledger, self._judge, self._memory)
        self._view = View(self._ledger, self._unplaced_pods, self._pod_index, self._assumed)
        self.pods = WorkloadPods(self._ledger, self._pod_index, self._assumed)
        self.report = Report(self._ledger, self._pod_index, self._assumed, self._unplaced_pods)
        self.reserved = ReservedRoom(self._ledger, self._pod_index, self._assumed)

    # -- observations --------------------------------------------------------------------------

    @property
    def counts_nodes(self) -> bool:
        """Whether gangs are fitted on nodes; if not, only sums count."""
        return self._on_nodes

    def nodes(self) -> Iterator[Node]:
        """Every node that exists."""
        return (row.node for row in self._ledger.rows.values())

    def node_seen(self, node: Node) -> None:
        """A node appeared or changed."""
        row = self._ledger.rows.get(node.name)
        if row is None:
            self._ledger.add(node)
            self._pod_index.node_added(node.name)
            self._assumed.settle_daemons()
        elif row.node == node:
            return
        elif _same_for_placement(row.node, node):
            self._ledger.resize(node)
        else:
            row = self._ledger.replace(node)
            self._assumed.leave(node.name, unless_admitted_by=row)
            self._pod_index.node_changed(node.name)
            self._assumed.settle_daemons()
        self._ledger.post()

    def node_gone(self, name: str) -> None:
        """A node is gone: own pods on it are assumed again, and slots there lose their node."""
        if name not in self._ledger.rows:
            return
        self._assumed.leave(name)
        self._ledger.remove(name)
        self._pod_index.node_changed(name)
        self._assumed.settle_daemons()
        self._ledger.post()

    def pod_seen(self, pod: Pod) -> None:
        """A pod appeared or changed. Binding turns one assumed pod into use (C2)."""
        self._pod_index.seen(pod)
        self._ledger.post()

    def pod_gone(self, uid: str) -> str:
        """A pod no longer exists; returns the uid of its AppWrapper, "" if it had none."""
        owner = self._pod_index.gone(uid)
        self._ledger.post()
        return owner

    def place_unplaced(self) -> None:
        """The first step of each pass: take slots off overcommitted nodes, find nodes for unplaced
        pods, and set nodes aside for those that find none."""
        self._memory.end_questions()
        if self._ledger.has_many_columns():
            self._forget_unused_columns()
        self._assumed.place_unplaced()
        self._unplaced_pods.new_pass()
        put_off = self._judge.new_pass()
        for prospect in (*put_off, *self._domains.take_put_off(put_off)):
            self._memory.queueing_hints.requeue(prospect)

    def _forget_unused_columns(self) -> None:
        taken = (use.request for use in self._pod_index.uses.values())
        asked_for = (pods.request for pods in self._memory.classes())
        self._ledger.keep_columns({name for load in (*taken, *asked_for) for name, _ in load})

    # -- verdicts ------------------------------------------------------------------------------

    def shape(self, sets: tuple[PodSet, ...]) -> Shape:
        """The shape of these sets; equal sets (but for their paths) have an equal one. Where only
        sums count no topology does."""
        if (self._levels or not self._on_nodes) and any(one.topology for one in sets):
            levels = self._levels
            sets = tuple(
                replace(one, topology=widened(one.topology, levels) if self._on_nodes else None)
                for one in sets
            )
        return Shape.of(sets)

    def remember(self, shape: Shape) -> None:
        """An AppWrapper waits with this shape: remember what verdicts on it found out, as long as
        one does."""
        self._memory.hold(shape)

    def forget(self, shape: Shape) -> None:
        """No AppWrapper waits with this shape any more, if as many have left as came."""
        self._memory.let_go(shape)

    def refusal(self, shape: Shape) -> Refusal | None:
        """Why a gang of this shape does not fit now; None if it does. A refused shape is registered
        for the changes that may let it in. For deciding only: the answer spends the budget of the
        pass. People ask ``questions``. With ``LEFT_OFF`` the verdict goes on in the next pass."""
        with self._memory.held(shape) as prospect:
            found = self._domains.find(prospect)
            if isinstance(found, Refusal):
                is_impossible = found.reason.is_impossible
                self._memory.queueing_hints.register(prospect, is_impossible=is_impossible)
                return found
            self._memory.queueing_hints.requeue(prospect)
            return None

    def would_fit_emptied(self, shape: Shape) -> bool | None:
        """Whether it would fit on an empty cluster: without the pods and assumed pods of all
        AppWrappers (R6); None if that goes on in the next pass."""
        with self._memory.held(shape) as prospect:
            return self._domains.fits_emptied(prospect)

    def knows_emptied(self, shape: Shape) -> bool:
        """Whether ``would_fit_emptied`` is known of the shape, which is remembered."""
        return self._judge.knows_emptied(self._memory.remembered(shape))

    @property
    def steps(self) -> int:
        """The work of all verdicts so far, and of setting nodes aside, in steps of about a
        microsecond; never timed."""
        return self._judge.steps + self._unplaced_pods.steps

    def take_requeued(self) -> list[Shape]:
        """The refused shapes that something may have let in since the last call (R4). All others
        are refused as before, although the figures of their refusal grow old."""
        return [prospect.shape for prospect in self._memory.queueing_hints.take_requeued()]

    @property
    def has_news(self) -> bool:
        """Whether ``take_requeued`` has anything to look at."""
        return self._memory.queueing_hints.has_news

    def compete(self, one: Shape, other: Shape) -> bool:
        """Whether pods of both could go to the same node; both must be remembered."""
        return bool(self.nodes_for(one) & self.nodes_for(other))

    def nodes_for(self, shape: Shape) -> NodeSet:
        """The nodes that pods of the shape, which is remembered, may go to now."""
        return self._memory.remembered(shape).nodes

    def questions(self) -> Questions:
        """The same questions for people: no answer changes anything. Good until the next event."""
        return Questions(
            self._settings, self._ledger, self._memory, self._unplaced_pods, self._domains
        )

    def what_if(
        self,
        shape: Shape,
        lifted: Collection[str] = (),
        shares: Shares | None = None,
        only: Collection[str] = (),
    ) -> Snapshot:
        """Where a gang of this shape, which is charged to these shares, would go if others left.
        The reservations of ``lifted`` count as free room. ``only`` names the nodes that it may use
        (none: all). Good until the next event."""
        shares = shares or Shares({}, {}, (), (), ())
        prospect = self._memory.hold_for_questions(shape)
        begun = self._judge.steps
        prefers, may = self._domains.variants(prospect) if shape.groups else ([], [prospect])
        gang = Variants(prospect, prefers, may)
        snapshot = Snapshot(self._view, gang, lifted, shares, only)
        snapshot.spend(self._judge.steps - begun)
        return snapshot

    # -- assumed gangs -------------------------------------------------------------------------

    def assume(
        self,
        uid: str,
        attempt: int,
        shape: Shape,
        sets: tuple[PodSet, ...],
        wants: Wants = NOTHING_REPORTED,
    ) -> Refusal | None:
        """Place the whole gang, less its pods that are bound already. Returns None if that is done,
        else why not, and nothing is changed."""
        if shape.groups:
            return self._assume_in_domains(uid, attempt, shape, sets)
        gang = self._begin(uid, attempt, sets)
        for allotment in gang.allotments:
            allotment.wanted = wants.get((allotment.pod_set.item, allotment.pod_set.index))
        left = shrunk_to(sets, gang)
        with self._memory.held(shape if left == sets else Shape.of(left)) as prospect:
            refused = self._judge.refusal(prospect)
            if refused is not None:
                self._end(uid)
                known = self._memory.prospect(shape)
                if known is not None:
                    self._memory.queueing_hints.register(known)
                return refused
            together = self._put_together(prospect) if left == sets else None
            self._place(gang, self._judge.plan(together or prospect))
        return None

    def _assume_in_domains(
        self, uid: str, attempt: int, shape: Shape, sets: tuple[PodSet, ...]
    ) -> Refusal | None:
        """The same for a gang whose topology domains are not chosen yet; so none of its pods is
        bound."""
        with self._memory.held(shape) as prospect:
            found = self._domains.find(prospect)
            if isinstance(found, Refusal):
                self._memory.queueing_hints.register(prospect)
                return found
            self.assume_at(uid, attempt, shape, sets, self._judge.plan(found))
        return None

    def _put_together(self, prospect: Prospect) -> Prospect | None:
        """A gang without topology in the domain that it should prefer; None if there is none."""
        sets = prospect.shape.sets
        if not (self._on_nodes and domain_levels(self._levels)) or any(s.topology for s in sets):
            return None
        return self._domains.together(prospect, Shape.of(put_together(sets, self._levels)))

    def adopt(
        self,
        uid: str,
        attempt: int,
        sets: tuple[PodSet, ...],
        *,
        leaving: bool = False,
    ) -> None:
        """Assume a gang that exists already, whether it fits or not: its pods are unplaced until
        the next ``place_unplaced``.

        ``leaving``: its attempt is being taken back. A terminating pod then stands for its own
        room, as it did before a restart; otherwise the room would be held twice.
        """
        self._assumed.place(self._begin(uid, attempt, sets, leaving=leaving), [])
        self._ledger.post()

    def assume_at(
        self, uid: str, attempt: int, shape: Shape, sets: tuple[PodSet, ...], plan: Plan
    ) -> None:
        """Assume the gang where the plan puts it, even on nodes that are reserved for others."""
        chosen = confined(sets, domains_of(shape, plan))
        self._place(self._begin(uid, attempt, chosen), plan)

    def _place(self, gang: AssumedGang, plan: Plan) -> None:
        """Assume the whole gang where the plan puts it, each required group in one domain."""
        self._assumed.place(gang, plan)
        self._ledger.post()
        if not self._on_nodes:
            return
        left = [one.position for one in gang.allotments if one.unplaced]
        check(not left, "gang-not-split", f"sets {left} of {gang.uid} have no place")
        sets = [one.pod_set for one in gang.allotments if one.assumed]
        free = [
            one.path for one in sets if one.topology and one.topology.required and not one.domain
        ]
        check(not free, "group-in-one-domain", f"sets {free} of {gang.uid} have no domain")

    def want(self, uid: str, item: int, index: int, wanted: Wanted | None) -> None:
        """The pods that the live object wants of a set; None if it does not tell (C2)."""
        for one in self._assumed.allotments(uid):
            if (one.pod_set.item, one.pod_set.index) == (item, index) and one.wanted != wanted:
                one.wanted = wanted
                self._assumed.settle(one)
        self._ledger.post()

    def take_changed(self, most: int) -> list[str]:
        """The AppWrappers (uids) whose pods or wanted counts changed since they were taken, as far
        as they are found in so many pod sets."""
        return self._assumed.take_changed(most)

    @property
    def is_noted(self) -> bool:
        """Whether ``take_changed`` has taken all changes."""
        return self._assumed.is_noted

    def note_placed(self, uid: str) -> None:
        """It is on record that all of its declared pods have had nodes."""
        gang = self._assumed.by_uid.get(uid)
        if gang is not None:
            gang.placed = True

    def is_ready(self, node: str) -> bool:
        """Whether the node exists and is ready."""
        row = self._ledger.rows.get(node)
        return row is not None and row.node.ready

    def give_up(self, uid: str) -> int:
        """Free the room of declared pods that do not exist though they should: they are not waited
        for any more. Returns how many."""
        given_up = 0
        for one in self._assumed.allotments(uid):
            if not one.gang.frozen:
                given_up += (pods := one.unseen)
                one.give_up(pods)
                self._assumed.settle(one)
        self._ledger.post()
        return given_up

    def give_up_sets(self, uid: str, sets: Collection[int]) -> None:
        """Free the room of all pods of these sets, by position, that are not bound."""
        for one in self._assumed.allotments(uid):
            if one.position in sets and not one.gang.frozen:
                one.give_up_all()
                self._assumed.settle(one)
        self._ledger.post()

    def freeze(self, uid: str) -> None:
        """A teardown begins: the gang keeps its size until ``release``."""
        gang = self._assumed.by_uid.get(uid)
        if gang is not None:
            gang.frozen = True

    def release(self, uid: str) -> None:
        """The gang holds nothing any more."""
        if uid in self._assumed.by_uid:
            self._end(uid)
            self._ledger.post()

    # -- dry runs ------------------------------------------------------------------------------

    def remove(self, uid: str) -> RemovedGang:
        """As if the AppWrapper and its pods were gone, until ``restore``; no event may come in
        between that concerns them or their nodes."""
        self._pod_index.weigh(uid, -1)
        removed = self._assumed.remove(uid)
        self._ledger.post()
        return removed

    def restore(self, removed: RemovedGang) -> None:
        """The AppWrapper is there again, exactly where it was."""
        self._assumed.restore(removed)
        self._pod_index.weigh(removed.gang.uid, 1)
        self._ledger.post()

    # -- reservations --------------------------------------------------------------------------

    def reserve(
        self, uid: str, attempt: int, shape: Shape, sets: tuple[PodSet, ...], plan: Plan
    ) -> None:
        """Reserve the places of the plan although others may still be there: no newcomer gets that
        room. The plan, made by ``what_if``, has a place for every pod."""
        self.remember(shape)
        chosen = confined(sets, domains_of(shape, plan))
        self._assumed.reserve(self._begin(uid, attempt, chosen), plan)
        self._ledger.post()

    def unreserve(self, uid: str, shape: Shape) -> None:
        """The reservation ends, and its room is free for all."""
        self.release(uid)
        self.forget(shape)

    def is_free(self, uid: str) -> bool:
        """Whether the reserved room is free of others and all of it has nodes; where only sums
        count, whether they suffice."""
        if not self._on_nodes:
            return self._is_free_by_sum(self._assumed.by_uid[uid])
        rows = self._ledger.rows
        return all(
            not allotment.unplaced and not any(rows[name].owes_reservation for name in allotment.at)
            for allotment in self._assumed.allotments(uid)
        )

    def _is_free_by_sum(self, gang: AssumedGang) -> bool:
        """Younger reservations count for nothing: they get what is left."""
        ledger = self._ledger
        left = {
            name: ledger.free.to_lend(name, ledger.facts.in_service) for name, _ in gang.request
        }
        book(left, self._unplaced_pods.demand(), -1)
        for other in self._assumed.reserved.values():
            if other.order > gang.order:
                book(left, other.request)
        return all(left.get(name, 0) >= 0 for name, _ in gang.request)

    def has_place(self, shape: Shape, spare: Spare) -> bool:
        """Whether any pod of this shape, which is remembered, fits there."""
        return any(spare.slots(part.pods) for part in self._memory.remembered(shape).parts)

    def may_fit(self, shape: Shape, spare: Spare) -> bool:
        """Whether there are enough slots for each part of the gang by itself, there and on free
        nodes, and enough in sum; the shape is remembered. A cheap test before ``what_if``."""
        return self._judge.may_fit(self._memory.remembered(shape), spare)

    # -- questions -----------------------------------------------------------------------------

    def demand(self, shape: Shape) -> Resources:
        """What the whole gang declares now, with the ``pods`` slots and without host ports: a
        DaemonSet's pods are counted on the nodes of now."""
        if not shape.per_node:
            return shape.fixed
        count = self._count_nodes
        return total(
            (
                with_pod_slot(one.key.request),
                count(one.key.constraint) if one.per_node else one.declared,
            )
            for one in shape.alike
        )

    def _count_nodes(self, constraint: Constraint) -> int:
        return int(self._ledger.facts.admitting(constraint).sum())

    def assumed_uids(self) -> Collection[str]:
        """The uids of all assumed gangs, also of those that hold nothing."""
        return self._assumed.by_uid.keys()

    def holds(self, uid: str) -> bool:
        """Whether the AppWrapper has an assumed gang, even an empty one."""
        return uid in self._assumed.by_uid

    def outstanding(self, uid: str) -> tuple[int, ...]:
        """Assumed pods per set, in the order of the sets; () without a gang."""
        return tuple(allotment.size for allotment in self._assumed.allotments(uid))

    def assumed(self, uid: str) -> Resources:
        """The sum of the requests of its assumed pods."""
        gang = self._assumed.by_uid.get(uid)
        return gang.request if gang is not None else ()

    def held(self, uid: str) -> Held:
        """What the AppWrapper has on each node: its pods, and its assumed pods."""
        return self._pod_index.held(uid)

    def nodes_of(self, uid: str) -> list[str]:
        """The names of the nodes on which its pods are assumed or reserved, sorted."""
        return self._assumed.nodes_of(uid)

    def places_of(self, uid: str) -> dict[str, tuple[int, ...]]:
        """How many pods of each set are assumed or reserved on each node, sorted by name."""
        allotments = self._assumed.allotments(uid)
        return {
            name: tuple(one.at.get(name, 0) for one in allotments) for name in self.nodes_of(uid)
        }

    def plan_at(self, shape: Shape, places: Mapping[str, Sequence[int]]) -> Plan:
        """The plan that puts so many pods of each set on each node, as ``places_of`` returns it."""
        rows = self._ledger.rows
        return [
            ((position,), rows[name], pods)
            for name, counts in places.items()
            if name in rows
            for position, pods in enumerate(counts[: len(shape.sets)])
            if pods
        ]

    def plan_on(self, shape: Shape, names: Iterable[str]) -> Plan:
        """A plan on these nodes where only their names are known: each part by itself, as if no
        AppWrapper were there. It may hold fewer pods than the gang has."""
        rows = [self._ledger.rows[name] for name in names if name in self._ledger.rows]
        with self._memory.held(shape) as prospect:
            return [
                (part.positions, row, pods)
                for part in prospect.parts
                for row, pods in part.spread(rows)
            ]

    def keep_apart(self, uid: str, lasting: Collection[int] = ()) -> tuple[KeptApart, ...]:
        """Decide which nodes the templates of a gang, which was assumed just now, leave to its
        other pods; none where only sums count, because no pod has a planned node there. Templates
        of ``lasting`` items outlive the reason, so their pods only prefer other nodes."""
        allotments = self._assumed.allotments(uid)
        if not self._on_nodes or len(allotments) < 2:
            return ()
        found = apart.kept_apart(allotments)
        sets = ((one.pod_set, found.get(one.position, ())) for one in allotments)
        kept = tuple(
            KeptApart(each.item, each.path, nodes, each.item in lasting)
            for each, nodes in sets
            if nodes
        )
        self.note_apart(uid, kept)
        return kept

    def note_apart(self, uid: str, recorded: Iterable[KeptApart]) -> None:
        """It is on record which nodes the templates of a gang leave to its other pods. Where they
        only prefer other nodes, nothing keeps its pods off these."""
        known = {(one.item, one.path): one.nodes for one in recorded if not one.preferred}
        for one in self._assumed.allotments(uid) if known else ():
            nodes = known.get((one.pod_set.item, one.pod_set.path))
            if nodes is not None:
                one.gang.apart[one.position] = nodes

    def left_with_room(self, uid: str) -> list[str]:
        """The nodes with room for pods that have none elsewhere: they are excluded from the
        templates of these pods, and were left to others of their gang."""
        rows = self._ledger.rows
        return sorted(
            name
            for one in self._assumed.allotments(uid)
            if one.unplaced
            for name in one.gang.apart.get(one.position, ())
            if name in rows and one.pods.admitted_by(rows[name]) and one.pods.slots_on(rows[name])
        )

    def in_flight(self, uids: Iterable[str]) -> InFlight:
        """The pods without a node of these AppWrappers, until the next event."""
        return InFlight(self._assumed.by_uid, uids)

    def may_strand(self, in_flight: InFlight, shape: Shape) -> bool:
        """Whether a gang of this shape, which is remembered and fits, and those in flight could
        keep each other from nodes, in the topology domains that it would get."""
        prospect = self._memory.remembered(shape)
        found = self._domains.find(prospect) if shape.groups else prospect
        return in_flight.may_strand([] if isinstance(found, Refusal) else unbound_of(found))

    def domains(self, uid: str) -> tuple[ChosenDomain, ...]:
        """The topology domains that its pod sets are in."""
        sets = (one.pod_set for one in self._assumed.allotments(uid))
        return tuple(
            ChosenDomain(one.item, one.index, one.path, one.domain) for one in sets if one.domain
        )

    def preferred_domain(self, uid: str) -> Domain | None:
        """The domain that has all of its assumed pods, if it has no topology and the cluster has
        levels."""
        allotments = [one for one in self._assumed.allotments(uid) if not one.pod_set.per_node]
        if not (self._on_nodes and self._levels) or any(one.pod_set.topology for one in allotments):
            return None
        names = {name for one in allotments for name in one.at}
        rows = self._ledger.rows
        return common_domain([dict(rows[name].node.labels) for name in names], self._levels)

    def unplaced(self, uid: str) -> int:
        """Assumed pods that no node has room for, as of the last ``place_unplaced``; 0 for a
        reservation where only sums count."""
        if uid in self._assumed.reserved and not self._on_nodes:
            return 0
        return sum(allotment.unplaced for allotment in self._assumed.allotments(uid))

    @property
    def allocatable(self) -> Mapping[str, int]:
        """What all nodes have, by resource; the books themselves, to be looked at."""
        return self._ledger.allocatable

    def check(self) -> None:
        """Recompute everything from pods and allotments; raises ``InvariantViolated``. O(all)."""
        audit(self._ledger, self._memory, self._pod_index, self._assumed, self._unplaced_pods)

    # -- in common -----------------------------------------------------------------------------

    def _begin(
        self, uid: str, attempt: int, sets: tuple[PodSet, ...], *, leaving: bool = False
    ) -> AssumedGang:
        gang = self._assumed.make(uid, attempt, sets, leaving=leaving)
        self._pod_index.join(gang)
        return gang

    def _end(self, uid: str) -> None:
        self._pod_index.part(uid)
        self._assumed.end(uid)


def _same_for_placement(one: Node, other: Node) -> bool:
    """Whether nothing but allocatable differs."""
    return replace(one, allocatable=()) == replace(other, allocatable=())
