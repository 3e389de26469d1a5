"""What is decided about pods before they are written: priorities, accounts, budgets."""

from __future__ import annotations

from typing import Any

from tests.contract.objects import pod, short_pod
from tests.contract.script import Script, script

Json = dict[str, Any]


def evict(name: str) -> Json:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


@script
def admit_priorities(s: Script) -> None:
    name = s.namespace

    def priority(suffix: str, **fields: Any) -> Json:
        return {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": f"{name}-{suffix}"},
        } | fields

    s.post("high", "priorityclasses", priority("high", value=1000, description="x"))
    s.post("never", "priorityclasses", priority("never", value=5, preemptionPolicy="Never"))
    s.post("too high", "priorityclasses", priority("x", value=2000000000))
    s.post("bad policy", "priorityclasses", priority("x", value=1, preemptionPolicy="Perhaps"))
    s.post(
        "reserved", "priorityclasses", priority("x", value=1) | {"metadata": {"name": "system-x"}}
    )
    s.patch("value cannot change", f"priorityclasses/{name}-high", {"value": 7})
    s.post("pod", "pods", short_pod("a", spec={"priorityClassName": f"{name}-high"}))
    s.post(
        "pod that never preempts",
        "pods",
        short_pod("b", spec={"priorityClassName": f"{name}-never"}),
    )
    s.post("pod with a priority of its own", "pods", short_pod("c", spec={"priority": 7}))
    s.post(
        "pod with both",
        "pods",
        short_pod("d", spec={"priority": 7, "priorityClassName": f"{name}-high"}),
    )
    s.post("system pod", "pods", short_pod("e", spec={"priorityClassName": "system-node-critical"}))
    s.post("account that is missing", "pods", short_pod("f", spec={"serviceAccountName": "nobody"}))
    s.delete("high deleted", f"priorityclasses/{name}-high")
    s.delete("never deleted", f"priorityclasses/{name}-never")


@script
def admit_evictions(s: Script) -> None:
    labels = {"app": "x"}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    s.post("budget", "poddisruptionbudgets", budget)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for name in ("p", "q"):
        s.post(f"{name}", "pods", pod(name, {"nodeName": "n"}, labels=labels))
        s.patch(f"{name} runs", f"pods/{name}/status", {"status": ready})
    s.post("nobody has looked at the budget", "pods/p/eviction", evict("p"))

    def allow(label: str, number: int) -> None:
        seen = s.get(f"{label}: as it is", "poddisruptionbudgets/b")
        s.patch(
            label,
            "poddisruptionbudgets/b/status",
            {
                "status": {
                    "observedGeneration": seen.at("metadata", "generation"),
                    "disruptionsAllowed": number,
                    "currentHealthy": 2,
                    "desiredHealthy": 2 - number,
                    "expectedPods": 2,
                }
            },
        )

    allow("none allowed", 0)
    s.post("refused", "pods/p/eviction", evict("p"))
    s.post("refused dry", "pods/p/eviction", evict("p"), dryRun="All")
    allow("one allowed", 1)
    s.post("allowed dry", "pods/p/eviction", evict("p"), dryRun="All")
    s.post("allowed", "pods/p/eviction", evict("p"))
    s.get("the pod goes", "pods/p")
    s.get("the budget knows", "poddisruptionbudgets/b")
    s.post("the next is refused", "pods/q/eviction", evict("q"))
    s.delete("by force", "pods/q", {"gracePeriodSeconds": 0})
