"""Every file in samples/ does what its comment says, unmodified, on a cluster big enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.kuberay import KubeRayOperator
from tests.e2e.process import Dispatcher
from tests.e2e.support import GROUP, SAMPLES, conditions_of, delete, items, pods, status_of

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

CORE, APPS, BATCH = "/api/v1", "/apis/apps/v1", "/apis/batch/v1"
RAY = "/apis/ray.io/v1"


@dataclass(frozen=True)
class Sample:
    """What a sample makes: collections with names, ``pods`` of them, ``all_pods`` until its end."""

    objects: dict[str, list[str]]
    pods: int
    all_pods: int = 0
    completes: bool = False
    resets: int = 0  # before it fails


EXPECTED = {
    "aw-01.yaml": Sample({f"{APPS}/deployments": ["0001-aw-generic-deployment-1"]}, 2),
    "aw-02.yaml": Sample({f"{APPS}/deployments": ["0002-aw-generic-deployment-2"]}, 2),
    "aw-components.yaml": Sample(
        {f"{BATCH}/jobs": ["aw-components-train"], f"{CORE}/pods": ["aw-components-watch"]},
        pods=3,
        completes=True,
    ),
    "aw-gang.yaml": Sample(
        {
            f"{CORE}/configmaps": ["aw-gang"],
            f"{CORE}/services": ["aw-gang-leader"],
            f"{BATCH}/jobs": ["aw-gang-leader", "aw-gang-workers"],
        },
        pods=5,
        completes=True,
    ),
    "aw-job.yaml": Sample({f"{BATCH}/jobs": ["aw-job"]}, pods=4, all_pods=8, completes=True),
    "aw-pod.yaml": Sample({f"{CORE}/pods": ["aw-pod"]}, pods=1, completes=True),
    "aw-retry.yaml": Sample({f"{BATCH}/jobs": ["aw-retry"]}, pods=0, resets=2),
    "aw-service.yaml": Sample(
        {f"{CORE}/services": ["aw-service"], f"{APPS}/deployments": ["aw-service"]}, pods=3
    ),
    "aw-raycluster.yaml": Sample({f"{RAY}/rayclusters": ["raycluster-autoscaler"]}, pods=2),
    "aw-raycluster-1.yaml": Sample({f"{RAY}/rayclusters": ["raycluster-autoscaler-1"]}, pods=2),
}


@pytest.fixture(scope="module")
def samples(control_plane: ControlPlane, account: Any) -> Iterator[ControlPlane]:
    """All samples on one cluster at once: some sleep for half a minute, and do so together."""
    plane = control_plane
    for name in ("node-1", "node-2"):
        plane.add_node(name, cpu="16", memory="64Gi")
    with KubeRayOperator(plane), Dispatcher(plane, account):
        for name in EXPECTED:
            plane.kubectl("create", "--validate=strict", "-f", str(SAMPLES / name))
        yield plane


def test_every_sample_is_covered() -> None:
    found = {path.name for path in SAMPLES.iterdir() if path.suffix != ".md"}
    assert found == set(EXPECTED)


@pytest.mark.parametrize("file", EXPECTED)
def test_a_sample(samples: ControlPlane, file: str) -> None:
    plane, sample = samples, EXPECTED[file]
    name = yaml.safe_load((SAMPLES / file).read_text())["metadata"]["name"]

    if sample.resets:
        plane.wait_for(lambda: has_failed(plane, name, sample), 180, f"{name} fails and goes")
        delete(plane, name)
        return

    def is_dispatched() -> bool:
        return conditions_of(plane, name).get("Dispatched", {}).get("status") == "True"

    plane.wait_for(is_dispatched, 60, f"{name} is dispatched")
    assert {path: found for path in sample.objects if (found := made(plane, path, name))} == (
        sample.objects
    )
    plane.wait_for(
        lambda: started(plane, name) >= sample.pods, 60, f"{sample.pods} pods of {name} have run"
    )
    if sample.completes:
        plane.wait_for(
            lambda: status_of(plane, name)["state"] == "Completed", 120, f"{name} completes"
        )
        phases = [pod["status"]["phase"] for pod in owned_pods(plane, name)]
        assert phases == ["Succeeded"] * (sample.all_pods or sample.pods)
    else:
        assert status_of(plane, name)["state"] == "Running"
        assert len(owned_pods(plane, name)) == sample.pods

    delete(plane, name)
    plane.wait_for(
        lambda: not any(made(plane, path, name) for path in sample.objects),
        60,
        f"nothing is left of {name}",
    )


def has_failed(plane: ControlPlane, name: str, sample: Sample) -> bool:
    """After all of its retries, and when what is kept for a while is gone."""
    status = status_of(plane, name)
    ends = (status.get("state"), status.get("resettingCount"))
    return ends == ("Failed", sample.resets) and not any(
        made(plane, path, name) for path in sample.objects
    )


def made(plane: ControlPlane, path: str, appwrapper: str) -> list[str]:
    """The names of the objects of a collection that an AppWrapper owns itself."""
    root, plural = path.rsplit("/", 1)
    return sorted(
        one["metadata"]["name"]
        for one in items(plane, f"{root}/namespaces/default/{plural}")
        for owner in one["metadata"].get("ownerReferences", [])
        if (owner["kind"], owner["name"]) == ("AppWrapper", appwrapper)
    )


def owned_pods(plane: ControlPlane, appwrapper: str) -> list[Json]:
    """Its pods, by our label: also those that an operator made."""
    return [
        pod
        for pod in pods(plane)
        if pod["metadata"].get("labels", {}).get(f"{GROUP}/appwrapper") == appwrapper
    ]


def started(plane: ControlPlane, appwrapper: str) -> int:
    """How many of its pods run or have run."""
    phases = [pod["status"]["phase"] for pod in owned_pods(plane, appwrapper)]
    return sum(phase in ("Running", "Succeeded") for phase in phases)
