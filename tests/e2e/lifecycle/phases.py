"""AppWrappers that are brought to a phase and stay there."""

from __future__ import annotations

import json

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.lifecycle.objects import CONFIGMAPS, await_phase, job, owned
from tests.e2e.support import (
    appwrapper,
    appwrappers_path,
    configmap,
    create,
    deployment,
    patch,
    pod,
)
from tests.manifests import bearing

PHASES = (
    "Suspended",
    "Resuming",
    "Running",
    "Suspending",
    "Resetting",
    PAUSING := "Resetting, in the pause",
    "Failed",
    "Succeeded",
    "Terminating",
)
HELD = {"Suspending", "Resetting", "Terminating"}
"""Phases that last for as long as an object has to go and does not."""

FINALIZER = {"metadata": {"finalizers": ["example.com/keep"]}}
NO_ROOM = {"metadata": {"name": "no-room-for-more"}}
NOT_NOW = {
    "matchConstraints": {
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["configmaps"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"full": "true"}},
    },
    "validations": [{"expression": "false", "reason": "RequestEntityTooLarge"}],
}
"""What an API server says that takes nothing for now; it is asked again."""


@pytest.fixture(scope="module")
def full(plane: ControlPlane) -> None:
    kind = {"apiVersion": "admissionregistration.k8s.io/v1"}
    bind = {"policyName": "no-room-for-more", "validationActions": ["Deny"]}
    plane.apply(
        [
            {**kind, "kind": "ValidatingAdmissionPolicy", **NO_ROOM, "spec": NOT_NOW},
            {**kind, "kind": "ValidatingAdmissionPolicyBinding", **NO_ROOM, "spec": bind},
        ]
    )
    _fill(plane, full=True)
    probe = configmap("probe")
    path = "/api/v1/namespaces/default/configmaps?dryRun=All"
    plane.wait_for(lambda: plane.request("POST", path, probe)[0] == 413, what="the policy")
    _fill(plane, full=False)


def _fill(plane: ControlPlane, *, full: bool) -> None:
    """Whether the namespace takes ConfigMaps."""
    plane.kubectl("label", "namespace", "default", f"full={str(full).lower()}", "--overwrite")


def brought_to(plane: ControlPlane, phase: str, name: str) -> None:
    """An AppWrapper that stays in this phase, for some until it is ``released``."""
    obj = appwrapper(name, deployment(name, 1), configmap(name))
    match phase:
        case "Suspended":
            obj = appwrapper(name, pod(name, cpu="999"))
        case "Resuming":
            _fill(plane, full=True)
            bearing(obj, admissionGracePeriodDuration="1h")
        case "Resetting" | "Resetting, in the pause":
            obj = appwrapper(name, job(name, "sleep 2; exit 1"), configmap(name))
            pause = "1h" if phase == PAUSING else "0s"
            bearing(obj, retryPausePeriodDuration=pause, failureGracePeriodDuration="1s")
        case "Failed":
            obj = appwrapper(name, job(name, "sleep 1; exit 1"))
            bearing(obj, retryLimit="0", deletionOnFailureGracePeriodDuration="1h")
        case "Succeeded":
            obj = appwrapper(name, job(name, "sleep 1"))
        case _:
            pass
    create(plane, obj)
    if phase in HELD:
        plane.wait_for(lambda: name in owned(plane, CONFIGMAPS), what="its ConfigMap")
        plane.kubectl("patch", "configmap", name, "--type=merge", "-p", json.dumps(FINALIZER))
    if phase in ("Suspending", "Terminating"):
        await_phase(plane, name, "Running")
    if phase == "Suspending":
        patch(plane, name, {"spec": {"suspend": True}})
    if phase == "Terminating":
        after_its_objects = {"propagationPolicy": "Foreground"}
        plane.request("DELETE", f"{appwrappers_path()}/{name}", after_its_objects)
    await_phase(plane, name, phase.partition(",")[0])


def released(plane: ControlPlane, phase: str, name: str) -> None:
    """What kept it in its phase is over."""
    if phase == "Resuming":
        _fill(plane, full=False)
    if phase in HELD:
        free = json.dumps({"metadata": {"finalizers": None}})
        plane.kubectl("patch", "configmap", name, "--type=merge", "-p", free)
