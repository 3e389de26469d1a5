"""What a pod will ask for beyond its template, from an AppWrapper to the dispatcher's answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcad.cli.commands.demo import Shape
from tests.cli.embedded import Embedded, wait_for
from tests.manifests import components

Json = dict[str, Any]

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SMALL = Shape(nodes=1, cpu="2")


def _crd(group: str, version: str, kind: str) -> Json:
    plural = f"{kind.lower()}s"
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [served | {"schema": {"openAPIV3Schema": ANYTHING}}],
        },
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Embedded]:
    """One node of 2 CPUs, on which RayJobs are installed."""
    with Embedded(tmp_path, SMALL).running() as running:
        running.create(_crd("ray.io", "v1", "RayJob"))
        yield running


def _ray_job(name: str, mode: str) -> Json:
    requests = {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    spec = {"containers": [{"name": "c", "image": "busybox", **requests}]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name},
        "spec": {
            "submissionMode": mode,
            "rayClusterSpec": {"headGroupSpec": {"template": {"spec": spec}}},
        },
    }


def _why(cluster: Embedded, name: str) -> str:
    """Why it waits, as soon as the dispatcher has said so."""

    def look() -> str:
        found = cluster.mcad("why", name)
        return found.output if "waits" in found.output or "missing" in found.output else ""

    return wait_for(look, f"why {name} waits")


def test_the_head_of_a_sidecar_mode_ray_job_asks_for_its_submitter(cluster: Embedded) -> None:
    cluster.create(components("side", _ray_job("side", "SidecarMode")))
    assert "2500m" in (told := _why(cluster, "side")), told
    cluster.create(components("http", _ray_job("http", "HTTPMode")))
    cluster.until("http", "Running")
