"""The assumed gangs by the uid of their AppWrapper: what each holds, and what becomes of it
(protocol C2, C4, C6).

Every change is posted at once, so the books of the nodes are right after every call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from mcad.core.assumed import apart
from mcad.core.assumed.allotments import AssumedGang
from mcad.core.assumed.assumed import Assumed, Held, RemovedGang
from mcad.core.assumed.in_flight import InFlight
from mcad.core.assumed.pod_index import PodIndex
from mcad.core.nodes.ledger import Ledger, Plan
from mcad.core.state.model import ChosenDomain, KeptApart, PodSet, Resources, Wanted
from mcad.core.state.violations import check

Wants = Mapping[tuple[int, int], Wanted | None]
"""The pods that live objects want, by (item, index) of the set; None if not reported."""

NOTHING_REPORTED: Wants = {}


class Gangs:
    """Every assumed gang, including gangs that hold nothing."""

    def __init__(
        self, ledger: Ledger, pod_index: PodIndex, assumed: Assumed, *, on_nodes: bool
    ) -> None:
        self._ledger = ledger
        self._pod_index = pod_index
        self._assumed = assumed
        self._on_nodes = on_nodes

    # -- making and ending ---------------------------------------------------------------------

    def begin(
        self,
        uid: str,
        attempt: int,
        sets: tuple[PodSet, ...],
        wants: Wants = NOTHING_REPORTED,
        *,
        leaving: bool = False,
    ) -> AssumedGang:
        """Create a gang with its pods that already exist; it holds nothing until it is placed."""
        gang = self._assumed.make(uid, attempt, sets, leaving=leaving)
        self._pod_index.join(gang)
        for one in gang.allotments:
            one.wanted = wants.get((one.pod_set.item, one.pod_set.index))
        return gang

    def place(self, gang: AssumedGang, plan: Plan) -> None:
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

    def adopt(
        self,
        uid: str,
        attempt: int,
        sets: tuple[PodSet, ...],
        *,
        leaving: bool = False,
    ) -> None:
        """Assume a gang that was dispatched earlier, fitting or not; pods without a place are
        unplaced.

        ``leaving``: the attempt is in teardown. A terminating pod then covers its own room, as
        before a restart; otherwise the room would be held twice.
        """
        self._assumed.place(self.begin(uid, attempt, sets, leaving=leaving), [])
        self._ledger.post()

    def reserve(self, gang: AssumedGang, plan: Plan) -> None:
        """Reserve the places of the plan, even where other pods still are."""
        self._assumed.reserve(gang, plan)
        self._ledger.post()

    def freeze(self, uid: str) -> None:
        """Freeze the gang's size until ``release``: a teardown begins."""
        gang = self._assumed.by_uid.get(uid)
        if gang is not None:
            gang.frozen = True

    def release(self, uid: str) -> None:
        """Release all that the gang holds."""
        if uid in self._assumed.by_uid:
            self.end(uid)
            self._ledger.post()

    def end(self, uid: str) -> None:
        """Drop a gang that was begun and not placed: no node has anything to post."""
        self._pod_index.part(uid)
        self._assumed.end(uid)

    # -- dry runs ------------------------------------------------------------------------------

    def remove(self, uid: str) -> RemovedGang:
        """Take the AppWrapper and its pods off the books until ``restore``; until then no event may
        concern them or their nodes."""
        self._pod_index.weigh(uid, -1)
        removed = self._assumed.remove(uid)
        self._ledger.post()
        return removed

    def restore(self, removed: RemovedGang) -> None:
        """Put the AppWrapper back exactly where it was."""
        self._assumed.restore(removed)
        self._pod_index.weigh(removed.gang.uid, 1)
        self._ledger.post()

    # -- observations of its pods --------------------------------------------------------------

    def want(self, uid: str, item: int, index: int, wanted: Wanted | None) -> None:
        """Set the pods that the live object wants of a set; None if not reported (C2)."""
        for one in self._assumed.allotments(uid):
            if (one.pod_set.item, one.pod_set.index) == (item, index) and one.wanted != wanted:
                one.wanted = wanted
                self._assumed.settle(one)
        self._ledger.post()

    def give_up(self, uid: str) -> int:
        """Free the room of declared pods that should exist and do not, and wait for them no more.
        Returns how many."""
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

    def take_changed(self, most: int) -> list[str]:
        """Take the uids of the AppWrappers with changed pods or wanted counts, from at most
        ``most`` changed pod sets."""
        return self._assumed.take_changed(most)

    @property
    def is_noted(self) -> bool:
        """Whether ``take_changed`` has taken all changes."""
        return self._assumed.is_noted

    def note_placed(self, uid: str) -> None:
        """Restore from the record that all declared pods have had nodes."""
        gang = self._assumed.by_uid.get(uid)
        if gang is not None:
            gang.placed = True

    # -- room and nodes ------------------------------------------------------------------------

    def uids(self) -> Collection[str]:
        """The uids of all AppWrappers with a gang."""
        return self._assumed.by_uid.keys()

    def exists(self, uid: str) -> bool:
        """Whether the AppWrapper has a gang."""
        return uid in self._assumed.by_uid

    def is_leaving(self, uid: str) -> bool:
        """Whether the teardown of its attempt has begun."""
        gang = self._assumed.by_uid[uid]
        return gang.frozen and not gang.reserved

    def is_reserved(self, uid: str) -> bool:
        """Whether its room is reserved, for an attempt that has not begun."""
        return uid in self._assumed.reserved

    def outstanding(self, uid: str) -> tuple[int, ...]:
        """Assumed pods per set, in the order of the sets; () without a gang."""
        return tuple(allotment.size for allotment in self._assumed.allotments(uid))

    def request(self, uid: str) -> Resources:
        """The sum of the requests of the AppWrapper's assumed pods."""
        gang = self._assumed.by_uid.get(uid)
        return gang.request if gang is not None else ()

    def held(self, uid: str) -> Held:
        """What the AppWrapper has on each node: its pods, and its assumed pods."""
        return self._pod_index.held(uid)

    def unplaced(self, uid: str) -> int:
        """The assumed pods without a node as of the last ``place_unplaced``; 0 for a reservation
        where only sums count."""
        if uid in self._assumed.reserved and not self._on_nodes:
            return 0
        return sum(allotment.unplaced for allotment in self._assumed.allotments(uid))

    def unplaced_pods(self, uid: str) -> tuple[tuple[int, int, int], ...]:
        """(item, index, pods) of the pod sets with pods without a node, DaemonSets aside."""
        return tuple(
            (one.pod_set.item, one.pod_set.index, one.unplaced)
            for one in self._assumed.allotments(uid)
            if one.unplaced and not one.pod_set.per_node
        )

    def nodes_of(self, uid: str) -> list[str]:
        """The sorted names of the nodes on which its pods are assumed or reserved."""
        return self._assumed.nodes_of(uid)

    def places_of(self, uid: str) -> dict[str, tuple[int, ...]]:
        """How many pods of each set are assumed or reserved on each node, sorted by name."""
        allotments = self._assumed.allotments(uid)
        return {
            name: tuple(one.at.get(name, 0) for one in allotments) for name in self.nodes_of(uid)
        }

    def domains(self, uid: str) -> tuple[ChosenDomain, ...]:
        """The topology domains that its pod sets are in."""
        sets = (one.pod_set for one in self._assumed.allotments(uid))
        return tuple(
            ChosenDomain(one.item, one.index, one.path, one.domain) for one in sets if one.domain
        )

    def in_flight(self, uids: Iterable[str]) -> InFlight:
        """The pods without a node of these AppWrappers, until the next event."""
        return InFlight(self._assumed.by_uid, uids)

    # -- which nodes its sets leave to each other ----------------------------------------------

    def keep_apart(self, uid: str, lasting: Collection[int] = ()) -> tuple[KeptApart, ...]:
        """Decide which nodes the templates of a gang that was just assumed leave to its other pods;
        none where only sums count, because no pod has a planned node then. Templates of ``lasting``
        items outlive the reason, so their pods only prefer other nodes."""
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
        """Restore from the record which nodes the templates of a gang leave to its other pods. A
        template that only prefers other nodes does not keep its pods off these nodes."""
        known = {(one.item, one.path): one.nodes for one in recorded if not one.preferred}
        for one in self._assumed.allotments(uid) if known else ():
            nodes = known.get((one.pod_set.item, one.pod_set.path))
            if nodes is not None:
                one.gang.apart[one.position] = nodes

    def left_with_room(self, uid: str) -> list[str]:
        """The nodes with room for unplaced pods that the templates of these pods exclude, because
        the nodes were left to other pods of the gang."""
        rows = self._ledger.rows
        return sorted(
            name
            for one in self._assumed.allotments(uid)
            if one.unplaced
            for name in one.gang.apart.get(one.position, ())
            if name in rows and one.pods.admitted_by(rows[name]) and one.pods.slots_on(rows[name])
        )
