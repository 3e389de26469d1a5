"""``mcad wrap`` of what a real API server has stored: the items are accepted again."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from mcad.api.manifest import render
from tests.api.builders import accepted
from tests.cli.conftest import Type
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import control_plane

__all__ = ["control_plane"]

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

APP = {"app": "shop"}
SPEC = {"containers": [{"name": "main", "image": "busybox"}]}
TEMPLATE = {"metadata": {"labels": APP}, "spec": SPEC}
OBJECTS: list[Json] = [
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": APP}, "template": TEMPLATE},
    },
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"template": {"spec": {**SPEC, "restartPolicy": "Never"}}},
    },
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": SPEC},
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front"},
        "spec": {"selector": APP, "ports": [{"port": 80}]},
    },
]
KINDS = "deployments,replicasets,jobs,pods,services"


def test_what_kubectl_exports_can_be_created_again(control_plane: ControlPlane, mcad: Type) -> None:
    plane = control_plane
    plane.add_node("node-1", cpu="8")
    plane.create_namespace("team")
    plane.apply(OBJECTS, namespace="team")
    get = ("get", "--namespace=team", "--output=name")
    plane.wait_for(lambda: len(plane.kubectl(*get, "pods").split()) == 3, 60, "their pods")
    exported = plane.kubectl("get", "--namespace=team", "--output=yaml", KINDS)
    result = mcad("wrap", "-f", "-", "--name", "aw", stdin=exported)
    assert result.exit_code == 0, result.stderr
    for name in plane.kubectl(*get, "replicasets,pods").split():
        assert (name.split("/")[1] in result.stderr) is (name != "pod/bare")

    parsed = accepted(yaml.safe_load(result.stdout))
    assert [(one.ref.kind, one.ref.name) for one in parsed.workload.items] == [
        ("Deployment", "web"),
        ("Job", "train"),
        ("Pod", "bare"),
        ("Service", "front"),
    ]
    plane.kubectl("delete", "--namespace=team", "--all", "--wait", "--cascade=foreground", KINDS)
    for number, item in enumerate(parsed.workload.items):
        body = yaml.safe_load(render(parsed.manifests[number], parsed.workload, number, 1))
        body["metadata"]["ownerReferences"][0]["uid"] = "none-yet"
        base = f"/apis/{item.ref.api_version}" if item.ref.group else "/api/v1"
        path = f"{base}/namespaces/team/{item.ref.resource}?fieldValidation=Strict"
        status, answer = plane.request("POST", path, body)
        assert status == 201, answer
