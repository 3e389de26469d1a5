"""Eviction: a deletion that disruption budgets may refuse (``pods/eviction``).

Modelled after ``pkg/registry/core/pod/storage/eviction.go``; the contract is that of the Kubernetes
docs, "API-initiated Eviction". Budgets are reckoned up by controllers/disruption.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcad.kube import selectors
from mcad.sim import failures
from mcad.sim.deletion import Deletion, check
from mcad.sim.failures import Cause, Failure
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry
from mcad.sim.store import Key
from mcad.sim.times import seconds
from mcad.sim.writes import Write

Json = dict[str, Any]

KIND = Kind("policy", "v1", "evictions", "Eviction")
"""What the subresource takes; it has no path of its own."""

_RETRY_S = 10
_DISRUPTED_MAX = 2000
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not"
    " support."
)
_UNGUARDED = ("Succeeded", "Failed", "Pending")


def evict(registry: Registry, key: Key, options: Deletion, *, dry_run: bool = False) -> None:
    """Delete the pod if budgets allow it.

    Raises Failure 404 for no such pod, 409 for a precondition, 429 if a budget does not allow it,
    and 500 if there is more than one budget.
    """
    pods = registry.kind("v1", "Pod")
    pod = registry.get(pods, key)
    if _is_guarded(pod):
        options = _ask_budget(registry, pod, options, dry_run=dry_run)
    check(pods, pod, options)
    if dry_run:
        return
    version = _announce(registry, key)
    if options.resource_version:
        options = replace(options, resource_version=version)
    registry.delete(pods, key, options)


def _is_guarded(pod: Json) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase not in _UNGUARDED and "deletionTimestamp" not in pod["metadata"]


def _ask_budget(registry: Registry, pod: Json, options: Deletion, *, dry_run: bool) -> Deletion:
    """Charge the pod's budget; the result are the options to delete with. Raises Failure."""
    found = budgets_of(registry, pod)
    if len(found) > 1:
        raise Failure(500, "", _TWO_BUDGETS)
    if not found:
        return options
    budget = found[0]
    status = budget.get("status") or {}
    if not _is_ready(pod):
        healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        always = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        if always or healthy >= desired > 0:
            version = options.resource_version or pod["metadata"]["resourceVersion"]
            return replace(options, resource_version=version)
    _charge(registry, budget, pod["metadata"]["name"], dry_run=dry_run)
    return options


def budgets_of(registry: Registry, pod: Json) -> list[Json]:
    """The PodDisruptionBudgets that select a pod; an empty selector selects all."""
    kind = registry.kind("policy/v1", "PodDisruptionBudget")
    labels = pod["metadata"].get("labels") or {}
    return [
        budget
        for budget in registry.list_all(kind, pod["metadata"]["namespace"])
        if selects(budget, labels)
    ]


def selects(budget: Json, labels: dict[str, str]) -> bool:
    """Whether a budget is for pods with these labels; a malformed selector is for none."""
    try:
        return selectors.label_selector(budget["spec"].get("selector"))(labels)
    except ValueError:
        return False


def _charge(registry: Registry, budget: Json, pod: str, *, dry_run: bool) -> None:
    kind = registry.kind("policy/v1", "PodDisruptionBudget")
    metadata, status = budget["metadata"], budget.get("status") or {}
    name = metadata["name"]
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        raise failures.too_many_requests(_REFUSED, _RETRY_S, [_cause(text)])
    if allowed < 0:
        raise failures.forbidden(kind, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > _DISRUPTED_MAX:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise failures.forbidden(kind, name, text)
    if allowed == 0:
        raise failures.too_many_requests(_REFUSED, 0, [_cause(_why(name, status))])
    if dry_run:
        return
    at = seconds(registry.clock.now_us())
    disrupted = (status.get("disruptedPods") or {}) | {pod: at}
    charged = status | {"disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    charged["conditions"] = conditions(charged, at)
    registry.update_status(kind, budget | {"status": charged})


def _why(name: str, status: Json) -> str:
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if healthy <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _cause(message: str) -> Cause:
    return Cause("DisruptionBudget", message, "")


def conditions(status: Json, at: str) -> list[Json]:
    """The conditions of a budget with this status."""
    is_allowed = status["disruptionsAllowed"] > 0
    wanted = {
        "type": "DisruptionAllowed",
        "status": "True" if is_allowed else "False",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": at,
        "reason": "SufficientPods" if is_allowed else "InsufficientPods",
        "message": "",
    }
    before = status.get("conditions") or ()
    for one in before:
        if one["type"] == wanted["type"] and one["status"] == wanted["status"]:
            wanted["lastTransitionTime"] = one["lastTransitionTime"]
    return [one for one in before if one["type"] != wanted["type"]] + [wanted]


def _is_ready(pod: Json) -> bool:
    found = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in found)


def _announce(registry: Registry, key: Key) -> str:
    """Say on the pod why it goes; the result is its new resourceVersion."""
    at = seconds(registry.clock.now_us())
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": at,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }

    def change(pod: Json) -> Json:
        status = pod.get("status") or {}
        others = [one for one in status.get("conditions") or () if one["type"] != target["type"]]
        return pod | {"status": status | {"conditions": [*others, target]}}

    how = Write(trusted=True, subresource="status")
    written = registry.patch(registry.kind("v1", "Pod"), key, change, how)
    version: str = written["metadata"]["resourceVersion"]
    return version
