"""What a dispatcher does when things go wrong, so that every right it has is seen in use."""

from __future__ import annotations

from typing import Any

from mcad.api.labels import FINALIZER
from tests.chart.cluster import generic
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.support import (
    appwrappers_path,
    configmap,
    create,
    delete,
    deployment,
    items,
    pod,
    states,
)

Json = dict[str, Any]

TAKEN, TAKEN_BACK, ADOPTED, RESTRICTED = "taken", "taken-back", "adopted", "restricted"


def service(name: str) -> Json:
    """A Service of nothing."""
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def job(name: str) -> Json:
    """A Job that does not end."""
    template = {"spec": pod(name)["spec"]}
    meta = {"name": name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {"template": template},
    }


def raycluster(name: str) -> Json:
    """A RayCluster of a head."""
    head = {
        "rayStartParams": {},
        "template": {"spec": {"containers": pod(name)["spec"]["containers"]}},
    }
    spec = {"headGroupSpec": head}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name},
        "spec": spec,
    }


def statefulset(name: str) -> Json:
    """A StatefulSet of one pod."""
    made = deployment(name, 1)
    made["spec"]["serviceName"] = name
    return made | {"kind": "StatefulSet"}


def one_of_each() -> list[Json]:
    """An object of each kind that the samples wrap."""
    return [
        pod("pod"),
        deployment("deployment", 1),
        statefulset("statefulset"),
        configmap("configmap"),
        service("service"),
        job("job"),
        raycluster("raycluster"),
    ]


def names_are_taken(plane: ControlPlane) -> None:
    """Somebody has each of the objects already: it is looked at, and left alone."""
    plane.create_namespace(TAKEN)
    plane.apply(one_of_each(), namespace=TAKEN)
    for one in one_of_each():
        create(plane, generic(one["metadata"]["name"], one, namespace=TAKEN))
    failed = {one["metadata"]["name"]: "Failed" for one in one_of_each()}
    plane.wait_for(lambda: states(plane, TAKEN) == failed, 30, "every name is found taken")


def is_taken_back(plane: ControlPlane) -> None:
    """A suspended AppWrapper loses its objects and is queued."""
    plane.create_namespace(TAKEN_BACK)
    everything = create(plane, generic("all", *one_of_each(), namespace=TAKEN_BACK))
    path = f"{appwrappers_path(TAKEN_BACK)}/{everything['metadata']['name']}"
    plane.wait_for(lambda: states(plane, TAKEN_BACK) == {"all": "Running"}, 30, "all of it runs")
    patch = {"spec": {"suspend": True}}
    plane.request("PATCH", path, patch, content_type="application/merge-patch+json")
    rayclusters = f"/apis/ray.io/v1/namespaces/{TAKEN_BACK}/rayclusters"
    plane.wait_for(lambda: items(plane, rayclusters) == [], 30, "all of it is taken back")
    plane.wait_for(lambda: states(plane, TAKEN_BACK) == {"all": "Pending"}, 30, "it is queued")


def is_adopted(plane: ControlPlane) -> None:
    """An AppWrapper that the upstream controller left behind loses that one's finalizer."""
    plane.create_namespace(ADOPTED)
    left_behind = generic("left-behind", configmap("left-behind"), namespace=ADOPTED)
    left_behind["metadata"]["finalizers"] = [FINALIZER]
    create(plane, left_behind)

    def is_free() -> bool:
        (found,) = items(plane, appwrappers_path(ADOPTED))
        return "finalizers" not in found["metadata"]

    plane.wait_for(is_free, 30, "the finalizer is gone")


def is_refused(plane: ControlPlane) -> None:
    """Admission denies a pod: it is asked whether that is for want of a right."""
    plane.create_namespace(RESTRICTED)
    plane.kubectl("label", "ns", RESTRICTED, "pod-security.kubernetes.io/enforce=restricted")
    create(plane, generic("loose", pod("loose"), namespace=RESTRICTED))


def was_asked(plane: ControlPlane, since: int) -> None:
    """Waits for the end of ``is_refused``, and cleans up."""
    plane.wait_for(
        lambda: any(one.resource == "selfsubjectaccessreviews" for one in plane.audit(since)),
        30,
        "the dispatcher asks for its rights",
    )
    for namespace in (TAKEN, TAKEN_BACK, ADOPTED, RESTRICTED):
        delete(plane, namespace=namespace)
