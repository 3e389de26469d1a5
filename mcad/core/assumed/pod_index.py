"""Live pods: their use, their AppWrapper, and the allotments that they cover (protocol C1-C3).

Pods may be observed before their node, their AppWrapper, or both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mcad.core.assumed.allotments import Allotment, AssumedGang
from mcad.core.assumed.assumed import Assumed, Held
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.resources import Books, book, resources
from mcad.core.state.model import TERMINAL_PHASES, Pod, PodPhase, Resources

PodKey = tuple[int, PodPhase, bool, bool]
"""(attempt, phase, whether it terminates, whether a container of it is stuck)."""

_Weight = tuple[str, Resources, bool] | None
"""(node, request, whether the pod belongs to no AppWrapper) of a pod's use; None is none."""


@dataclass(slots=True, eq=False)
class Use:
    """One pod as the books know it.

    ``allotment`` is the allotment to which the pod is attributed. There it counts as ``live``, as
    live with a node (``has_node``), and as one covered unit (``covers``).
    """

    pod: Pod
    request: Resources
    allotment: Allotment | None = None
    live: bool = False
    has_node: bool = False
    covers: bool = False

    @property
    def weighs(self) -> bool:
        """Whether the pod takes anything from its node, if the node exists (C1)."""
        return self.pod.phase not in TERMINAL_PHASES


class PodIndex:
    """Every pod that exists, by uid, by the node whose room it takes, and by AppWrapper.

    ``leaving`` are the pods of no AppWrapper that terminate, by uid.
    """

    def __init__(self, ledger: Ledger, assumed: Assumed) -> None:
        self._ledger = ledger
        self._assumed = assumed
        self.uses: dict[str, Use] = {}
        self.leaving: dict[str, Use] = {}
        self.on_node: dict[str, dict[str, Use]] = {}
        self._of: dict[str, dict[str, Use]] = {}
        self._phases: dict[str, dict[PodKey, int]] = {}

    # -- pods ----------------------------------------------------------------------------------

    def seen(self, pod: Pod) -> None:
        """Enter a pod that appeared or changed."""
        use = self.uses.get(pod.uid)
        if use is None:
            use = self.uses[pod.uid] = Use(pod, self._ledger.load(pod.request, pod.ports))
            self._enter(use)
            self._charge(self._weight(use), 1)
        elif use.pod == pod:
            return
        else:
            self._change(use, pod)
        self._attribute(use)

    def gone(self, uid: str) -> str:
        """Remove a pod; returns the uid of its AppWrapper, "" if none."""
        use = self.uses.pop(uid, None)
        if use is None:
            return ""
        self._assign(use, None)
        self._charge(self._weight(use), -1)
        self._leave(use)
        return use.pod.workload

    def uses_of(self, uid: str) -> Collection[Use]:
        """The AppWrapper's pods, of any attempt."""
        return self._of.get(uid, {}).values()

    def phases_of(self, uid: str) -> Mapping[PodKey, int]:
        """How many pods the AppWrapper has of each kind."""
        return self._phases.get(uid, {})

    def held(self, uid: str) -> Held:
        """What the AppWrapper has on each node: its pods, of any attempt, and its assumed pods."""
        bound = [use for use in self.uses_of(uid) if use.weighs and use.pod.node]
        allotments = self._assumed.allotments(uid)
        if len(bound) == 1 and not any(one.at for one in allotments):
            return ((bound[0].pod.node, bound[0].request),)
        sums: dict[str, Books] = {}
        for use in bound:
            book(sums.setdefault(use.pod.node, {}), use.request)
        for one in allotments:
            for name, count in one.at.items():
                book(sums.setdefault(name, {}), one.pods.request, count)
        return tuple((name, resources(amounts)) for name, amounts in sums.items())

    def _change(self, use: Use, pod: Pod) -> None:
        old = use.pod
        if _owner(old) != _owner(pod):
            self._assign(use, None)
        elif old.node != pod.node:
            _recount(use, live=use.live, covers=False)
        before = self._weight(use)
        self._leave(use)
        use.pod, use.request = pod, self._ledger.load(pod.request, pod.ports)
        self._enter(use)
        after = self._weight(use)
        if before != after:
            self._charge(before, -1)
            self._charge(after, 1)

    def _enter(self, use: Use) -> None:
        pod = use.pod
        if pod.charged:
            self.on_node.setdefault(pod.charged, {})[pod.uid] = use
        if pod.terminating and not pod.workload and use.weighs:
            self.leaving[pod.uid] = use
        if pod.workload:
            self._assumed.held.pop(pod.workload, None)
            self._of.setdefault(pod.workload, {})[pod.uid] = use
            phases = self._phases.setdefault(pod.workload, {})
            key = _key(pod)
            phases[key] = phases.get(key, 0) + 1

    def _leave(self, use: Use) -> None:
        pod = use.pod
        if pod.charged:
            _drop(self.on_node, pod.charged, pod.uid)
        self.leaving.pop(pod.uid, None)
        if pod.workload:
            self._assumed.held.pop(pod.workload, None)
            _drop(self._of, pod.workload, pod.uid)
            self._phases[pod.workload][_key(pod)] -= 1
            if pod.workload not in self._of:
                del self._phases[pod.workload]

    def _weight(self, use: Use) -> _Weight:
        """C1: a pod weighs on its node until it is terminal or gone, terminating or not."""
        node = use.pod.charged
        if not use.weighs or node not in self._ledger.rows:
            return None
        return (node, use.request, not use.pod.workload)

    def _charge(self, weight: _Weight, times: int) -> None:
        if weight is None:
            return
        node, request, foreign = weight
        self._ledger.note(node, request, times)
        if foreign:
            self._ledger.note_idle(node, request, times)

    # -- dry runs ------------------------------------------------------------------------------

    def weigh(self, uid: str, times: int) -> None:
        """Take the weight of the AppWrapper's pods off their nodes (-1), or put it back (1)."""
        for use in self.uses_of(uid):
            self._charge(self._weight(use), times)

    # -- nodes ---------------------------------------------------------------------------------

    def node_added(self, name: str) -> None:
        """Count the pods bound or nominated to a node that appeared."""
        for use in self.on_node.get(name, {}).values():
            self._charge(self._weight(use), 1)
        self.node_changed(name)

    def node_changed(self, name: str) -> None:
        """Recheck which pods of a changed or removed node cover an allotment."""
        for use in list(self.on_node.get(name, {}).values()):
            self._cover(use)

    # -- attribution ---------------------------------------------------------------------------

    def join(self, gang: AssumedGang) -> None:
        """Attribute the pods that already exist to a gang that was just assumed."""
        for use in self._of.get(gang.uid, {}).values():
            self._attribute(use)

    def part(self, uid: str) -> None:
        """Detach all pods from a gang that is about to end."""
        for use in self._of.get(uid, {}).values():
            use.allotment, use.live, use.has_node, use.covers = None, False, False, False

    def _attribute(self, use: Use) -> None:
        """Attribute a pod once: a second attribution might differ."""
        if use.allotment is None and use.pod.workload:
            gang = self._assumed.by_uid.get(use.pod.workload)
            allotment = gang.allotment_for(use.pod) if gang is not None else None
            self._assign(use, allotment)
        else:
            self._cover(use)

    def _assign(self, use: Use, allotment: Allotment | None) -> None:
        old = use.allotment
        if old is not None:
            _recount(use, live=False, covers=False)
            use.allotment = None
            self._assumed.settle(old)
        use.allotment = allotment
        self._cover(use)

    def _cover(self, use: Use) -> None:
        """Update the allotment's counts for the pod as it is now, and settle the allotment."""
        pod, allotment = use.pod, use.allotment
        if allotment is None:
            return
        live = is_live(pod) or (allotment.gang.leaving and pod.phase not in TERMINAL_PHASES)
        if allotment.pod_set.counts_pods and pod.phase is PodPhase.SUCCEEDED:
            allotment.finished.add(pod.uid)
        _recount(use, live=live, covers=live and self._stands(allotment, pod.node))
        self._assumed.settle(allotment, near=pod.node)

    def _stands(self, allotment: Allotment, name: str) -> bool:
        """C6: own pods on a node that is gone or not ready are assumed again. A DaemonSet's pod
        covers its node while the node admits it."""
        row = self._ledger.rows.get(name)
        if row is None or not row.node.ready:
            return False
        return not allotment.pod_set.per_node or allotment.pods.admitted_by(row)


def is_live(pod: Pod) -> bool:
    """Whether the pod is neither terminal nor terminating."""
    return pod.phase not in TERMINAL_PHASES and not pod.terminating


def _key(pod: Pod) -> PodKey:
    return (pod.attempt, pod.phase, pod.terminating, pod.stuck is not None)


def _owner(pod: Pod) -> tuple[str, int, int, int]:
    """The fields of a pod that its attribution depends on."""
    return (pod.workload, pod.item, pod.index, pod.attempt)


def _recount(use: Use, *, live: bool, covers: bool) -> None:
    allotment, node = use.allotment, use.pod.node
    if allotment is None:
        return
    allotment.live += live - use.live
    has_node = live and bool(node)
    allotment.on_nodes += has_node - use.has_node
    if covers != use.covers:
        change = 1 if covers else -1
        allotment.have += change
        allotment.bound[node] = allotment.bound.get(node, 0) + change
        if not allotment.bound[node]:
            del allotment.bound[node]
    use.live, use.has_node, use.covers = live, has_node, covers


def _drop(index: dict[str, dict[str, Use]], key: str, uid: str) -> None:
    del index[key][uid]
    if not index[key]:
        del index[key]
