"""Whom to remove so that a pod of higher priority finds room (DefaultPreemption).

Modelled after ``pkg/scheduler/framework/plugins/defaultpreemption``: as few and as unimportant
pods as possible; disruption budgets are not looked at.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from mcad.sim.scheduling.deciding import Decider, Diagnosis
from mcad.sim.scheduling.filters import Refusal, room_refusal, with_nominated
from mcad.sim.scheduling.fleet import NodeInfo, PodInfo

Json = dict[str, Any]

_NO_VICTIMS = "No preemption victims found for incoming pod"
_NO_HELP = "Preemption is not helpful for scheduling"
# DynamicResources speaks before DefaultPreemption, whether the pod has claims or not.
PREFACE = "no new claims to deallocate, "
NEVER = "preemption: not eligible due to preemptionPolicy=Never."
WAITING = "preemption: not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class Plan:
    """Pods to delete on a node, the most important first."""

    node: str
    victims: tuple[PodInfo, ...]


def find(decider: Decider, pod: PodInfo, why: Diagnosis) -> Plan | str:
    """The best plan; or why there is none, as kube-scheduler adds it to its message."""
    if not pod.shape.preempts:
        return NEVER
    plans: list[Plan] = []
    reasons: Counter[str] = Counter()
    has_victims = any(priority < pod.shape.priority for priority in decider.fleet.priorities)
    for node in decider.fleet.nodes.values():
        refusal = why.refusals.get(node.name)
        if refusal is None or refusal.is_final:
            reasons[_NO_HELP] += 1
            continue
        found = _on_node(decider, pod, node) if has_victims else _NO_VICTIMS_AT_ALL
        if isinstance(found, Plan):
            plans.append(found)
        else:
            reasons.update(found.reasons)
    if not plans:
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return f"preemption: 0/{why.nodes} nodes are available: {listed}."
    return min(plans, key=_cost)


_NO_VICTIMS_AT_ALL = Refusal((_NO_VICTIMS,), True)


def _on_node(decider: Decider, pod: PodInfo, node: NodeInfo) -> Plan | Refusal:
    lower = [one for one in node.pods.values() if one.shape.priority < pod.shape.priority]
    if not lower:
        return _NO_VICTIMS_AT_ALL
    trial = node.copy()
    gone = {one.uid for one in lower}
    for one in lower:
        trial.remove(one)
    refusal = _refusal(decider, pod, trial, gone)
    if refusal is not None:
        return refusal
    lower.sort(key=_importance)
    victims: list[PodInfo] = []
    for one in lower:
        trial.add(one)
        gone.discard(one.uid)
        if _refusal(decider, pod, trial, gone) is not None:
            trial.remove(one)
            gone.add(one.uid)
            victims.append(one)
    victims.sort(key=_importance)
    return Plan(node.name, tuple(victims))


def _refusal(decider: Decider, pod: PodInfo, node: NodeInfo, gone: set[str]) -> Refusal | None:
    refusal = room_refusal(pod.shape, with_nominated(node, pod))
    if refusal is None:
        for other in decider.others(pod, frozenset(gone)):
            refusal = refusal or other.refusal(node)
    return refusal


def _importance(pod: PodInfo) -> tuple[int, str, int]:
    """Sort key, the most important first: priority, then how long it has run."""
    return -pod.shape.priority, pod.started or "~", pod.order


def _cost(plan: Plan) -> tuple[Any, ...]:
    """Sort key, the cheapest first (``pickOneNodeForPreemption``); ties go to the first node."""
    top = plan.victims[0].shape.priority
    weight = sum(victim.shape.priority + (1 << 31) for victim in plan.victims)
    earliest = min(v.started or "~" for v in plan.victims if v.shape.priority == top)
    return top, weight, len(plan.victims), _Later(earliest)


@dataclass(frozen=True, slots=True)
class _Later:
    """Sorts the later instant first."""

    at: str

    def __lt__(self, other: _Later) -> bool:
        return self.at > other.at
