"""A policy adds a container to pods: the demand of the next attempts has it (ADR 61)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher
from tests.e2e.running.case import POOL, Case, placed, template, wrapped
from tests.e2e.support import cli, create

pytestmark = pytest.mark.controlplane

LONG = 90
PLACEMENT = ("--set", "placementTimeout=10")
SIDECAR = """Object.spec.containers{
  name: "proxy", image: "busybox",
  resources: Object.spec.containers.resources{requests: {"cpu": "500m"}}
}"""
ADD = 'op: "add", path: "/spec/containers/-"'
POLICY = {
    "matchConstraints": {
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"mesh": "true"}},
    },
    "failurePolicy": "Fail",
    "reinvocationPolicy": "Never",
    "mutations": [
        {
            "patchType": "JSONPatch",
            "jsonPatch": {
                "expression": f"[JSONPatch{{{ADD}, value: {SIDECAR}}}]",
            },
        }
    ],
}
ADDED = "Admission adds 500m cpu to each pod of Job"


@pytest.fixture(scope="module")
def dispatcher(control_plane: ControlPlane, account: Path) -> Iterator[Dispatcher]:
    """With the policy."""
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "mesh"}}
    control_plane.apply(
        [
            {**kind, "kind": "MutatingAdmissionPolicy", "spec": POLICY},
            {**kind, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "mesh"}},
        ]
    )
    with Dispatcher(control_plane, account, *PLACEMENT) as running:
        yield running


def _injects(plane: ControlPlane, namespace: str) -> bool:
    """Whether the policy is in force: a dry run tells."""
    spec = {"containers": [{"name": "c", "image": "busybox"}]}
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    _, made = plane.request("POST", path, probe)
    return len(made.get("spec", {}).get("containers", ())) == 2


def _backoff(one: Case) -> str:
    message: str = one.conditions().get("Backoff", {}).get("message", "")
    return message


def test_what_is_injected_is_learned(control_plane: ControlPlane, dispatcher: Dispatcher) -> None:
    plane = control_plane
    one = Case(plane, "injected", "v1beta1", ("2",))
    one.add_nodes()
    plane.wait_for_nodes(one.nodes)
    plane.create_namespace(one.pool)
    plane.kubectl("label", "namespace", one.pool, "mesh=true")
    plane.wait_for(lambda: _injects(plane, one.pool), LONG, "the policy")
    one.submit()
    plane.wait_for(lambda: one.events("PodsAskForMore"), LONG, "it is told")
    plane.wait_for(lambda: one.state() == "Pending", LONG, "its first attempt is taken back")
    other = wrapped("v1beta2", "other", one.pool, placed(template("injected"), one.pool))
    other["spec"]["components"][0]["template"]["metadata"]["name"] = "other"
    create(plane, other)
    plane.wait_for(lambda: ADDED in _backoff(one), LONG, "why it waits")
    time.sleep(30)  # three times as long as a pod may be without a node
    assert one.attempt == 1, "dispatched into room that its pods do not fit into"
    assert not one.status("other").get("dispatch"), "a template of the same kind"
    (told,) = one.events("PodsAskForMore")
    assert ADDED in told["message"]
    name = f"{one.pool}/{one.name}"
    for shown in (
        cli("why", name, "--server", dispatcher.url),
        cli("describe", name, kubeconfig=plane.admin_kubeconfig),
    ):
        assert ADDED in " ".join(shown.stdout.split()), shown.stdout + shown.stderr

    taint = {"key": POOL, "value": one.pool, "effect": "NoSchedule"}
    plane.add_node(f"{one.pool}-large", "2500m", labels={POOL: one.pool}, taints=[taint])
    plane.wait_for(lambda: len(one.pods("Running")) == 1, LONG, "its pod runs")
    assert one.attempt == 2
