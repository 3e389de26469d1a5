"""What these tests create, where it is, and what they wait for."""

from __future__ import annotations

from typing import Any

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.support import GROUP, appwrappers_path, items, pod, status_of

Json = dict[str, Any]

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"

QUICK = {"failureGracePeriodDuration": "1s", "retryPausePeriodDuration": "6s"}


def job(name: str, script: str, **requests: str) -> Json:
    """A Job of one pod that ends as its script says, without a retry of its own."""
    made = pod(name, command=("sh", "-c", script))["spec"]
    made["containers"][0]["resources"]["requests"].update(requests)
    if requests:
        made["containers"][0]["resources"]["limits"] = dict(requests)
    spec = {"backoffLimit": 0, "template": {"spec": made}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def annotated(obj: Json, **notes: str) -> Json:
    """A Deployment whose pods have annotations for the control plane of the tests."""
    meta = obj["spec"]["template"]["metadata"]
    meta["annotations"] = {f"controlplane.test/{k.replace('_', '-')}": v for k, v in notes.items()}
    return obj


def generic(name: str, template: Json, **spec: Any) -> Json:
    """In MCAD's dialect."""
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"resources": {"GenericItems": [{"generictemplate": template}]}, **spec},
    }


def await_phase(plane: ControlPlane, name: str, phase: str, seconds: float = 60) -> Json:
    """Wait for ``status.phase``; returns the status."""
    plane.wait_for(
        lambda: status_of(plane, name).get("phase") == phase, seconds, f"{name} is {phase}"
    )
    return status_of(plane, name)


def owned(plane: ControlPlane, path: str) -> list[str]:
    """Names of the wrapped objects of a collection."""
    found = items(plane, path)
    return sorted(
        one["metadata"]["name"]
        for one in found
        if f"{GROUP}/appwrapper" in one["metadata"].get("labels", {})
    )


def owned_or_all(plane: ControlPlane, path: str) -> list[str]:
    """Wrapped objects; of AppWrappers all."""
    if path == appwrappers_path():
        return [one["metadata"]["name"] for one in items(plane, path)]
    return owned(plane, path)


def running(plane: ControlPlane) -> int:
    """How many pods run."""
    return sum(one["status"].get("phase") == "Running" for one in items(plane, PODS))


def running_on(plane: ControlPlane) -> list[str]:
    """The nodes of all pods, "" if one does not run."""
    return sorted(
        one["spec"]["nodeName"] if one["status"].get("phase") == "Running" else ""
        for one in items(plane, PODS)
    )
