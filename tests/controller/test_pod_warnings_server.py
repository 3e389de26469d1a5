"""The words of real controllers whose pods the API server refuses."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urlencode

import pytest

from mcad.controller.pod_warnings import PodWarnings
from mcad.core.commands import ReadWarnings
from mcad.core.state.model import ObjectRef
from mcad.kube.port import Request
from tests.api.builders import Map, obj, template
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import control_plane

__all__ = ["control_plane"]

pytestmark = pytest.mark.controlplane

NAMESPACE = "full"
REFUSED = r'pods "x-\S+" is forbidden: exceeded quota: none'


class Reader:
    """Reads as a client does, and keeps no connection."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    async def read(self, request: Request, timeout: float) -> Map:
        """The answer to a request for a list."""
        status, answer = self.plane.request("GET", f"{request.path}?{urlencode(request.params)}")
        assert status == 200, answer
        return answer


def workloads() -> dict[tuple[str, str], Map]:
    """Objects whose controllers make pods of different owners, by group and plural."""
    labels = {"app": "x"}
    selected = {"selector": {"matchLabels": labels}, "template": template(labels=labels)}
    return {
        ("batch", "jobs"): obj(
            "batch/v1", "Job", "x", {"template": template(restartPolicy="Never")}
        ),
        ("apps", "deployments"): obj("apps/v1", "Deployment", "x", selected),
        ("apps", "statefulsets"): obj(
            "apps/v1", "StatefulSet", "x", selected | {"serviceName": "x"}
        ),
    }


@pytest.fixture(scope="module", name="full")
def namespace_without_pods(control_plane: ControlPlane) -> ControlPlane:
    """A control plane with a namespace in which no pod is admitted."""
    plane = control_plane
    plane.create_namespace(NAMESPACE)
    quota = obj("v1", "ResourceQuota", "none", {"hard": {"pods": "0"}})
    plane.apply(quota, namespace=NAMESPACE)
    path = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/none"
    plane.wait_for(lambda: plane.get(path)["status"].get("used"), 30, "the quota is enforced")
    plane.apply(list(workloads().values()), namespace=NAMESPACE)
    return plane


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (("batch", "jobs"), rf"Job full/x: “Error creating: {REFUSED}.*"),
        (("apps", "deployments"), rf"ReplicaSet full/x-\S+: “Error creating: {REFUSED}.*"),
        (("apps", "statefulsets"), rf"StatefulSet full/x: “.*{REFUSED}.*"),
    ],
    ids=lambda one: one[1] if isinstance(one, tuple) else "",
)
def test_why_a_pod_is_not_created(full: ControlPlane, pair: tuple[str, str], words: str) -> None:
    group, plural = pair
    kind = workloads()[pair]["kind"]
    ref = ObjectRef(group, "v1", plural, kind, NAMESPACE, "x")
    reader: Any = Reader(full)
    warnings = PodWarnings(reader)

    def told() -> str:
        return asyncio.run(warnings.read(ReadWarnings("u", 1, 0, ref, 1)))

    found = full.wait_for(told, 30, f"an Event says why the {kind} has no pod")
    assert re.fullmatch(words, found), found
