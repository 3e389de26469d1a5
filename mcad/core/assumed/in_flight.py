"""Recently dispatched gangs, and whether one more could strand any of them (core R2).

Until their pods are bound, kube-scheduler may put the pods of one gang where those of another were
planned. Equal pods cannot harm each other, and where there is room for any order no pod can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mcad.core.assumed.allotments import AssumedGang
from mcad.core.assumed.any_order import Budget, Unbound, is_safe
from mcad.core.nodes.pod_class import PodClass
from mcad.core.state.work_bounds import IN_FLIGHT_WORK_MAX

_Key = tuple[PodClass, tuple[str, ...]]


class InFlight:
    """The pods without a node of some AppWrappers, merged by class and by avoided nodes.

    Good for one pass, with a bound of work for all of its questions.
    """

    def __init__(self, gangs: Mapping[str, AssumedGang], uids: Iterable[str]) -> None:
        """``gangs`` are all assumed gangs, by the uid of the AppWrapper."""
        self._gangs = gangs
        self._budget = Budget(IN_FLIGHT_WORK_MAX)
        self._unbound: dict[_Key, Unbound] = {}
        for uid in uids:
            self.add(uid)

    def add(self, uid: str) -> None:
        """Add an AppWrapper that has been dispatched."""
        gang = self._gangs.get(uid)
        for one in gang.allotments if gang is not None else ():
            if one.size and not one.pod_set.per_node:
                off = one.gang.apart.get(one.position, ())
                self._merge(Unbound(one.pods, one.size, one.at, off), off)

    def _merge(self, more: Unbound, off: tuple[str, ...]) -> None:
        key = (more.pods, off)
        known = self._unbound.get(key) or Unbound(more.pods, 0, {}, off)
        for name, count in more.at.items():
            known.at[name] = known.at.get(name, 0) + count
        self._unbound[key] = known._replace(size=known.size + more.size)

    def may_strand(self, gang: Sequence[Unbound]) -> bool:
        """Whether the pods of this gang and the pods in flight could keep each other from nodes.
        The sets of the gang count against each other only together with pods in flight: alone they
        are kept apart (apart.py)."""
        flying = [*self._unbound.values()]
        if not any(one.pods is not each.pods or each.off for one in gang for each in flying):
            return False
        self._budget.spend(2 * (len(flying) + len(gang)) ** 2)  # all pairs are compared
        return self._strands(gang, flying) or self._strands(flying, gang)

    def _strands(self, those: Sequence[Unbound], other: Sequence[Unbound]) -> bool:
        """Whether the other pods could keep any of ``those`` pods from nodes."""
        for one in those:
            if self._budget.is_spent:
                return False
            if near := _near(one, other):
                others = [*near, *_near(one, [each for each in those if each is not one])]
                if not is_safe(one, others, self._budget):
                    return True
        return False


def _near(one: Unbound, others: Iterable[Unbound]) -> list[Unbound]:
    """The groups among ``others`` whose pods may come to a node of its class."""
    nodes, constraint = one.pods.nodes, one.pods.constraint
    return [
        each for each in others if each.pods.constraint == constraint or each.pods.nodes & nodes
    ]
