"""The pods of an AppWrapper: how many exist and should exist, which failed, and where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from operator import itemgetter

from mcad.core.assumed.allotments import Allotment
from mcad.core.assumed.assumed import Assumed
from mcad.core.assumed.pod_index import PodIndex, Use, is_live
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.resources import Books, book
from mcad.core.state.model import (
    TERMINAL_PHASES,
    Pod,
    PodCounts,
    PodPhase,
    PodSet,
    Resources,
    Unscheduled,
)
from mcad.core.state.units import Duration

_AT_WORK = (PodPhase.RUNNING, PodPhase.UNKNOWN)  # as far as is known

_TOTALLED = ("cpu", "memory", "nvidia.com/gpu")
"""The resources for which MCAD's status has fields."""


class WorkloadPods:
    """Questions about pods by the uid of their AppWrapper. While the AppWrapper has an assumed
    gang, only pods of that attempt count."""

    def __init__(self, ledger: Ledger, pod_index: PodIndex, assumed: Assumed) -> None:
        self._ledger = ledger
        self._pod_index = pod_index
        self._assumed = assumed

    # -- existing pods -------------------------------------------------------------------------

    def all(self) -> Iterator[Pod]:
        """Every pod that exists, including pods of no AppWrapper."""
        return (use.pod for use in self._pod_index.uses.values())

    def exist(self, uid: str) -> bool:
        """Whether the AppWrapper has pods, of any attempt."""
        return bool(self._pod_index.uses_of(uid))

    def at_work(self, uid: str) -> bool:
        """Whether the AppWrapper has pods that have not ended, of any attempt."""
        phases = self._pod_index.phases_of(uid)
        return any(n and phase not in TERMINAL_PHASES for (_, phase, *_), n in phases.items())

    def are_ending(self, uid: str) -> bool:
        """Whether the AppWrapper has pods in deletion on a node that exists."""
        uses = (use for use in self._pod_index.uses_of(uid) if use.weighs and use.pod.terminating)
        return any(use.pod.node in self._ledger.rows for use in uses)

    def of(self, uid: str) -> list[Pod]:
        """All pods of the AppWrapper, of any attempt."""
        return [use.pod for use in self._pod_index.uses_of(uid)]

    def alive(self, uid: str) -> list[Pod]:
        """The pods that are neither terminal nor terminating, of any attempt."""
        return [pod for pod in self.of(uid) if is_live(pod)]

    def is_foreign(self, pod: str) -> bool:
        """Whether a pod is known, and belongs to no AppWrapper."""
        use = self._pod_index.uses.get(pod)
        return use is not None and not use.pod.workload

    def counts(self, uid: str) -> PodCounts:
        """How many pods the AppWrapper has by phase."""
        gang = self._assumed.by_uid.get(uid)
        sums, leaving, stuck = dict.fromkeys(PodPhase, 0), 0, 0
        for (attempt, phase, terminating, is_stuck), n in self._pod_index.phases_of(uid).items():
            if gang is None or attempt in (0, gang.attempt):
                sums[phase] += n
                leaving += n if terminating and phase in _AT_WORK else 0
                stuck += n if is_stuck and not terminating else 0
        return PodCounts(
            pending=sums[PodPhase.PENDING],
            running=sum(sums[phase] for phase in _AT_WORK),
            succeeded=sums[PodPhase.SUCCEEDED],
            failed=sums[PodPhase.FAILED],
            leaving=leaving,
            stuck=stuck,
        )

    def totals(self, uid: str) -> Resources:
        """The requests of running and succeeded pods, of the resources for which MCAD's status has
        fields."""
        sums: Books = {}
        for use in self._uses(uid):
            if use.pod.phase in (*_AT_WORK, PodPhase.SUCCEEDED):
                book(sums, use.pod.request)
        return tuple((name, sums[name]) for name in _TOTALLED if sums.get(name))

    def unscheduled(self, uid: str, at_most: int) -> tuple[tuple[str, Unscheduled], ...]:
        """The first pods without a node, by name, and what kube-scheduler reports of them."""
        pods = (use.pod for use in self._uses(uid))
        said = ((pod.name, pod.unscheduled) for pod in pods if pod.unscheduled is not None)
        return tuple(nsmallest(at_most, said, key=itemgetter(0)))

    def live(self, uid: str) -> list[Pod]:
        """The pods that are neither terminal nor terminating, as they were first seen."""
        return [use.pod for use in self._uses(uid) if is_live(use.pod)]

    def get(self, pod: str) -> Pod | None:
        """A pod as it was last seen, None if it is not known."""
        use = self._pod_index.uses.get(pod)
        return use.pod if use is not None else None

    def never_placed(self, uid: str) -> list[Pod]:
        """Declared pods whose turn has come and that have no node, of a gang that has not been
        placed; without surplus pods, successors of pods that had nodes, and gated pods."""
        counted = {one: one.never_placed for one in self._assumed.allotments(uid)}
        if not any(counted.values()) or self._assumed.by_uid[uid].placed:
            return []
        unbound = [use for use in self._uses(uid) if use.live and not use.pod.node]
        found = []
        for use in sorted(unbound, key=lambda use: (use.pod.created, use.pod.name)):
            allotment = use.allotment
            if allotment is not None and counted[allotment] and not use.pod.gated:
                counted[allotment] -= 1
                found.append(use.pod)
        return found

    def grace(self, uid: str) -> Duration:
        """The longest ``terminationGracePeriodSeconds`` of pods that have not ended, of any
        attempt; 0 without pods."""
        longest = 0
        for use in self._pod_index.uses_of(uid):  # called for ten thousand AppWrappers
            if use.pod.grace > longest and use.pod.phase not in TERMINAL_PHASES:
                longest = use.pod.grace
        return longest

    def failed(self, uid: str) -> list[Pod]:
        """The failed pods, as they were first seen."""
        return [use.pod for use in self._uses(uid) if use.pod.phase is PodPhase.FAILED]

    def replaced(self, uid: str) -> set[str]:
        """The uids of failed pods whose sets have as many other pods as they should. A pod in
        deletion counts as another pod: it has not failed, and its own successor is missing then."""
        well: dict[Allotment, int] = {}
        uses = [(use, use.allotment) for use in self._uses(uid) if use.allotment is not None]
        for use, allotment in uses:
            if use.pod.phase is not PodPhase.FAILED:
                well[allotment] = well.get(allotment, 0) + 1
        return {
            use.pod.uid
            for use, allotment in uses
            if use.pod.phase is PodPhase.FAILED and well.get(allotment, 0) >= allotment.expected
        }

    def nodes_to_leave(self, uid: str) -> list[str]:
        """The names of the nodes that evict live pods like those of the AppWrapper there
        (``Node.evicts``), of any attempt."""
        if not self._ledger.evicting:
            return []
        names = set()
        for use in self._pod_index.uses_of(uid):
            if use.pod.node in self._ledger.evicting and is_live(use.pod):
                evicts = self._ledger.rows[use.pod.node].node.evicts
                if any(name in evicts for name, _ in use.request):
                    names.add(use.pod.node)
        return sorted(names)

    # -- pods that should exist ----------------------------------------------------------------

    def missing(self, uid: str, *, known: bool = False) -> int:
        """The number of declared pods that should exist now and do not. ``known``: only the pods
        that a live object reports as wanted."""
        missing = self._unseen(uid, lambda one: one.unseen)
        return sum(n for one, n in missing.items() if one.wanted or not known)

    def lacking(self, uid: str) -> dict[int, int]:
        """The missing pods by number of their item, including pods that were given up."""
        found: dict[int, int] = {}
        for one, n in self._unseen(uid, lambda one: one.lacking).items():
            found[one.pod_set.item] = found.get(one.pod_set.item, 0) + n
        return dict(sorted(found.items()))

    def _unseen(self, uid: str, count: Callable[[Allotment], int]) -> dict[Allotment, int]:
        """The missing pods by set, without succeeded pods, which not every object reports."""
        unseen = {one: n for one in self._assumed.allotments(uid) if (n := count(one))}
        for use in self._uses(uid) if unseen else ():
            one = use.allotment
            if one in unseen and use.pod.phase is PodPhase.SUCCEEDED:
                unseen[one] -= not one.pod_set.counts_pods
        return {one: n for one, n in unseen.items() if n > 0}

    def idle(self, uid: str) -> list[Pod]:
        """Pods with a node that do not run, of sets with fewer running pods than they should have,
        without surplus pods."""
        if not self.counts(uid).pending:
            return []
        uses = [(use, use.allotment) for use in self._uses(uid) if use.allotment is not None]
        short = {one: one.expected for _, one in uses}
        for use, one in uses:
            short[one] -= (
                use.pod.phase in (*_AT_WORK, PodPhase.SUCCEEDED) and not use.pod.terminating
            )
        found = []
        for use, one in uses:
            if use.live and use.pod.node and use.pod.phase is PodPhase.PENDING and short[one] > 0:
                short[one] -= 1
                found.append(use.pod)
        return found

    def is_placed(self, uid: str) -> bool:
        """Whether all declared pods of the AppWrapper have had nodes."""
        gang = self._assumed.by_uid.get(uid)
        return gang is not None and (gang.placed or not gang.allotments)

    def lack_nodes(self, uid: str) -> bool:
        """Whether some declared pods of the AppWrapper, later stages included, have no node now."""
        return any(one.uncovered for one in self._assumed.allotments(uid))

    def expected(self, uid: str) -> int:
        """Pods that should exist by the manifest, or by live objects where these want fewer."""
        return sum(allotment.expected for allotment in self._assumed.allotments(uid))

    def live_by_set(self, uid: str) -> list[tuple[PodSet, int]]:
        """How many pods of each set are live, with or without a node."""
        return [(one.pod_set, one.live) for one in self._assumed.allotments(uid)]

    def wanted(self, uid: str) -> int:
        """Pods that live objects want, now or later, bound pods included; for an object that does
        not report it, the pods that the gang still waits for. 0 without a gang."""
        return sum(
            one.uncovered if one.wanted is None else one.wanted.now + one.wanted.later
            for one in self._assumed.allotments(uid)
        )

    def succeeded(self, uid: str, item: int) -> int:
        """Succeeded pods of an item, deleted pods included, if only its pods report its end."""
        allotments = self._assumed.allotments(uid)
        return sum(len(one.finished) for one in allotments if one.pod_set.item == item)

    # -- owner and node ------------------------------------------------------------------------

    def owner_of(self, pod: str) -> str:
        """The uid of the AppWrapper of a known pod, "" if it has none."""
        use = self._pod_index.uses.get(pod)
        return use.pod.workload if use is not None else ""

    def node_of(self, pod: str) -> str:
        """The node of a pod, "" if it is not bound or not known."""
        use = self._pod_index.uses.get(pod)
        return use.pod.node if use is not None else ""

    def users_of(self, node: str) -> list[str]:
        """The uids of the AppWrappers that have pods on the node."""
        uses = self._pod_index.on_node.get(node, {}).values()
        return list(dict.fromkeys(use.pod.workload for use in uses if use.pod.workload))

    def _uses(self, uid: str) -> Iterable[Use]:
        uses, gang = self._pod_index.uses_of(uid), self._assumed.by_uid.get(uid)
        if gang is None:
            return uses
        return (use for use in uses if use.pod.attempt in (0, gang.attempt))
