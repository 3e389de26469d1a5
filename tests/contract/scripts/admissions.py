"""What is decided about pods before they are written: priorities, accounts."""

from __future__ import annotations

from typing import Any

from tests.contract.objects import short_pod
from tests.contract.script import Script, script

Json = dict[str, Any]


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
    s.post(
        "reserved", "priorityclasses", priority("x", value=1) | {"metadata": {"name": "system-x"}}
    )
    s.post("pod", "pods", short_pod("a", spec={"priorityClassName": f"{name}-high"}))
    s.post(
        "pod that never preempts",
        "pods",
        short_pod("b", spec={"priorityClassName": f"{name}-never"}),
    )
    s.post("pod with a priority of its own", "pods", short_pod("c", spec={"priority": 7}))
    s.post("system pod", "pods", short_pod("e", spec={"priorityClassName": "system-node-critical"}))
    s.post("account that is missing", "pods", short_pod("f", spec={"serviceAccountName": "nobody"}))
    s.delete("high deleted", f"priorityclasses/{name}-high")
    s.delete("never deleted", f"priorityclasses/{name}-never")
