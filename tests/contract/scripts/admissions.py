"""What is decided about pods before they are written: priorities, accounts."""

from __future__ import annotations

from typing import Any

from tests.contract.objects import short_pod
from tests.contract.script import Script, script

Json = dict[str, Any]


@script
def admit_priorities(s: Script) -> None:
    pods = s.on("pods")
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
    pods.post("pod", short_pod("a", spec={"priorityClassName": f"{name}-high"}))
    pods.post(
        "pod that never preempts", short_pod("b", spec={"priorityClassName": f"{name}-never"})
    )
    pods.post("pod with a priority of its own", short_pod("c", spec={"priority": 7}))
    pods.post("system pod", short_pod("e", spec={"priorityClassName": "system-node-critical"}))
    pods.post("account that is missing", short_pod("f", spec={"serviceAccountName": "nobody"}))
    s.delete("high deleted", f"priorityclasses/{name}-high")
    s.delete("never deleted", f"priorityclasses/{name}-never")
