"""Nodes, assumed pods and verdicts as one: what the nodes have, what is taken, what fits.

Observations change the books and never decide. A pass begins with ``place_unplaced``; then shapes
are tested, and gangs that fit are assumed, all of a gang or nothing (protocol C1-C6, core R1-R4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mcad.core.assumed.assumed import Assumed, shrunk_to
from mcad.core.assumed.gangs import NOTHING_REPORTED, Gangs, Wants
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
from mcad.core.nodes.closing import marked
from mcad.core.nodes.constraints import NodeSet
from mcad.core.nodes.ledger import Ledger, Plan
from mcad.core.nodes.reserved_free import Spare
from mcad.core.nodes.resources import total, with_pod_slot
from mcad.core.nodes.shape import Shape
from mcad.core.snapshot.quota import Shares
from mcad.core.snapshot.snapshot import ANYWHERE, Snapshot, Variants, View, Where
from mcad.core.state.model import (
    Constraint,
    Domain,
    Node,
    Pod,
    PodSet,
    Resources,
)
from mcad.core.state.records import replace
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Fit, Settings

__all__ = [
    "LEFT_OFF",
    "Capacity",
    "NodeReport",
    "Questions",
    "Shape",
]


class Capacity:
    """The ledger of the nodes, the pod index, the assumed gangs and the verdicts, kept in step.

    ``gangs`` has the assumed pods of each AppWrapper, ``pods`` answers about its pods, ``reserved``
    about the room of reservations, and ``report`` has the books of the nodes.
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
        self.gangs = Gangs(self._ledger, self._pod_index, self._assumed, on_nodes=self._on_nodes)
        self.pods = WorkloadPods(self._ledger, self._pod_index, self._assumed)
        self.report = Report(self._ledger, self._pod_index, self._assumed, self._unplaced_pods)
        self.reserved = ReservedRoom(
            self._ledger,
            self._pod_index,
            self._assumed,
            self._unplaced_pods,
            on_nodes=self._on_nodes,
        )

    # -- observations --------------------------------------------------------------------------

    @property
    def counts_nodes(self) -> bool:
        """Whether gangs are fitted on nodes; if not, only sums count."""
        return self._on_nodes

    def nodes(self) -> Iterator[Node]:
        """Every node that exists."""
        return (row.node for row in self._ledger.rows.values())

    def is_ready(self, name: str) -> bool:
        """Whether the node exists and is ready."""
        row = self._ledger.rows.get(name)
        return row is not None and row.node.ready

    @property
    def changes(self) -> int:
        """The number of the last change of the books."""
        return self._ledger.now

    @property
    def moved(self) -> int:
        """The number of the last change at which a node came, went or changed."""
        return self._ledger.moved

    def node_seen(self, node: Node) -> None:
        """Enter a node that appeared or changed."""
        if self._settings.asks_for_nodes:
            node = marked(node, self._settings.startup_taints)
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
        """Remove a node: own pods on it are assumed again, and slots there lose their node."""
        if name not in self._ledger.rows:
            return
        self._assumed.leave(name)
        self._ledger.remove(name)
        self._pod_index.node_changed(name)
        self._assumed.settle_daemons()
        self._ledger.post()

    def pod_seen(self, pod: Pod) -> None:
        """Enter a pod that appeared or changed. Binding turns one assumed pod into use (C2)."""
        self._pod_index.seen(pod)
        self._ledger.post()

    def pod_gone(self, uid: str) -> str:
        """Remove a pod; returns the uid of its AppWrapper, "" if it had none."""
        owner = self._pod_index.gone(uid)
        self._ledger.post()
        return owner

    def place_unplaced(self) -> None:
        """The first step of each pass: take slots off overcommitted nodes, find nodes for unplaced
        pods, and set nodes aside for pods that find none."""
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
        """The shape of these sets; sets that are equal except for their paths have equal shapes.
        Where only sums count topology is ignored."""
        if (self._levels or not self._on_nodes) and any(one.topology for one in sets):
            levels = self._levels
            sets = tuple(
                replace(one, topology=widened(one.topology, levels) if self._on_nodes else None)
                for one in sets
            )
        return Shape.of(sets)

    def remember(self, shape: Shape) -> None:
        """Remember the findings of verdicts on the shape while an AppWrapper waits with it."""
        self._memory.hold(shape)

    def forget(self, shape: Shape) -> None:
        """Forget the shape when as many AppWrappers have left as came."""
        self._memory.let_go(shape)

    def refusal(self, shape: Shape) -> Refusal | None:
        """Why a gang of this shape does not fit now; None if it fits. A refused shape is registered
        for the changes that may let it in. For decisions only: the answer spends the budget of the
        pass. Users ask ``questions``. With ``LEFT_OFF`` the verdict goes on in the next pass."""
        with self._memory.held(shape) as prospect:
            found = self._domains.find(prospect)
            if isinstance(found, Refusal):
                is_impossible = found.reason.is_impossible
                self._memory.queueing_hints.register(prospect, is_impossible=is_impossible)
                return found
            self._memory.queueing_hints.requeue(prospect)
            return None

    def would_fit_emptied(self, shape: Shape) -> bool | None:
        """Whether the shape would fit on an empty cluster: without the pods and assumed pods of all
        AppWrappers (R6); None if the verdict goes on in the next pass."""
        with self._memory.held(shape) as prospect:
            return self._domains.fits_emptied(prospect)

    def knows_emptied(self, shape: Shape) -> bool:
        """Whether ``would_fit_emptied`` is known for this remembered shape."""
        return self._judge.knows_emptied(self._memory.remembered(shape))

    @property
    def steps(self) -> int:
        """The work of all verdicts so far, and of setting nodes aside, in steps of about a
        microsecond; never timed."""
        return self._judge.steps + self._unplaced_pods.steps

    def take_requeued(self) -> list[Shape]:
        """Take the refused shapes that may fit after changes since the last call (R4). All other
        shapes are refused as before, although the figures of their refusal grow old."""
        return [prospect.shape for prospect in self._memory.queueing_hints.take_requeued()]

    @property
    def has_news(self) -> bool:
        """Whether ``take_requeued`` has anything to look at."""
        return self._memory.queueing_hints.has_news

    def compete(self, one: Shape, other: Shape) -> bool:
        """Whether pods of both shapes could go to the same node; both must be remembered."""
        return bool(self.nodes_for(one) & self.nodes_for(other))

    def nodes_for(self, shape: Shape) -> NodeSet:
        """The nodes where pods of this remembered shape may go now."""
        return self._memory.remembered(shape).nodes

    def questions(self) -> Questions:
        """The verdicts for users: no answer changes anything. Good until the next event."""
        return Questions(
            self._settings, self._ledger, self._memory, self._unplaced_pods, self._domains
        )

    def what_if(
        self,
        shape: Shape,
        lifted: Collection[str] = (),
        shares: Shares | None = None,
        where: Where = ANYWHERE,
    ) -> Snapshot:
        """Where a gang of this shape, charged to these shares, would go if others left. The
        reservations of ``lifted`` count as free room. Good until the next event."""
        shares = shares or Shares({}, {}, (), (), ())
        prospect = self._memory.hold_for_questions(shape)
        begun = self._judge.steps
        prefers, may = self._domains.variants(prospect) if shape.groups else ([], [prospect])
        gang = Variants(prospect, prefers, may)
        snapshot = Snapshot(self._view, gang, lifted, shares, where)
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
        """Place the whole gang, less its bound pods. Returns None on success, else the reason; then
        nothing is changed."""
        if shape.groups:
            return self._assume_in_domains(uid, attempt, shape, sets)
        gang = self.gangs.begin(uid, attempt, sets, wants)
        left = shrunk_to(sets, gang)
        with self._memory.held(shape if left == sets else Shape.of(left)) as prospect:
            refused = self._judge.refusal(prospect)
            if refused is not None:
                self.gangs.end(uid)
                known = self._memory.prospect(shape)
                if known is not None:
                    self._memory.queueing_hints.register(known)
                return refused
            together = self._put_together(prospect) if left == sets else None
            self.gangs.place(gang, self._judge.plan(together or prospect))
        return None

    def _assume_in_domains(
        self, uid: str, attempt: int, shape: Shape, sets: tuple[PodSet, ...]
    ) -> Refusal | None:
        """``assume`` for a gang whose topology domains are not chosen yet; so none of its pods is
        bound."""
        with self._memory.held(shape) as prospect:
            found = self._domains.find(prospect)
            if isinstance(found, Refusal):
                self._memory.queueing_hints.register(prospect)
                return found
            self.assume_at(uid, attempt, shape, sets, self._judge.plan(found))
        return None

    def _put_together(self, prospect: Prospect) -> Prospect | None:
        """A gang without topology in the domain that it should prefer; None without one."""
        sets = prospect.shape.sets
        if not (self._on_nodes and domain_levels(self._levels)) or any(s.topology for s in sets):
            return None
        return self._domains.together(prospect, Shape.of(put_together(sets, self._levels)))

    def assume_at(
        self, uid: str, attempt: int, shape: Shape, sets: tuple[PodSet, ...], plan: Plan
    ) -> None:
        """Assume the gang where the plan puts it, even on nodes that are reserved for others."""
        chosen = confined(sets, domains_of(shape, plan))
        self.gangs.place(self.gangs.begin(uid, attempt, chosen), plan)

    def reserve(
        self, uid: str, attempt: int, shape: Shape, sets: tuple[PodSet, ...], plan: Plan
    ) -> None:
        """Reserve the places of the plan although other pods may still be there: no other
        AppWrapper gets that room. The plan, made by ``what_if``, has a place for every pod. The
        shape is remembered while the reservation exists: the caller forgets it."""
        self.remember(shape)
        chosen = confined(sets, domains_of(shape, plan))
        self.gangs.reserve(self.gangs.begin(uid, attempt, chosen), plan)

    def has_place(self, shape: Shape, spare: Spare) -> bool:
        """Whether any pod of this remembered shape fits there."""
        return any(spare.slots(part.pods) for part in self._memory.remembered(shape).parts)

    def may_fit(self, shape: Shape, spare: Spare) -> bool:
        """Whether the spare nodes and the free nodes have slots enough for each part of the gang by
        itself, and enough in sum; the shape is remembered. A cheap test before ``what_if``."""
        return self._judge.may_fit(self._memory.remembered(shape), spare)

    # -- questions -----------------------------------------------------------------------------

    def demand(self, shape: Shape) -> Resources:
        """The declared demand of the whole gang now, with the ``pods`` slots and without host
        ports: a DaemonSet's pods are counted on the present nodes."""
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

    def may_strand(self, in_flight: InFlight, shape: Shape) -> bool:
        """Whether a gang of this remembered shape, which fits, and the gangs in flight could keep
        each other from nodes, in the topology domains that it would get."""
        prospect = self._memory.remembered(shape)
        found = self._domains.find(prospect) if shape.groups else prospect
        return in_flight.may_strand([] if isinstance(found, Refusal) else unbound_of(found))

    def preferred_domain(self, uid: str) -> Domain | None:
        """The domain that has all of its assumed pods, if it has no topology and the cluster has
        levels."""
        allotments = [one for one in self._assumed.allotments(uid) if not one.pod_set.per_node]
        if not (self._on_nodes and self._levels) or any(one.pod_set.topology for one in allotments):
            return None
        names = {name for one in allotments for name in one.at}
        rows = self._ledger.rows
        return common_domain([dict(rows[name].node.labels) for name in names], self._levels)

    @property
    def allocatable(self) -> Mapping[str, int]:
        """The sums of all nodes, by resource; the books themselves, for reading."""
        return self._ledger.allocatable

    def check(self) -> None:
        """Recompute everything from pods and allotments; raises ``InvariantViolated``. O(all)."""
        audit(self._ledger, self._memory, self._pod_index, self._assumed, self._unplaced_pods)


def _same_for_placement(one: Node, other: Node) -> bool:
    """Whether only allocatable differs."""
    return replace(one, allocatable=()) == replace(other, allocatable=())
