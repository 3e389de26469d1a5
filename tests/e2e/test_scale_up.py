"""Requests for nodes on the real control plane, with the CRDs of cluster-autoscaler; the test plays
the autoscaler.

Namespaces admit restricted pods only, and the dispatcher has the rights that ``mcad rbac`` prints.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.controlplane.autoscaler import NodeGroup, autoscaler, kinds
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.process import ACCOUNT, NAMESPACE, SHORT_LEASE, Dispatcher, install, mcad, printed
from tests.e2e.support import (
    appwrapper,
    conditions_of,
    create,
    delete,
    deployment,
    items,
    pods,
    status_of,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
SET = "--set"
GPU = "nvidia.com/gpu"
CONSUMES = "autoscaling.x-k8s.io/consume-provisioning-request"
MERGE = "application/merge-patch+json"
WAYS = ("ProvisioningRequest", "CapacityBuffer", "PlaceholderPods")
LABEL = "workload.codeflare.dev/scale-up-uid"


def collections(namespace: str) -> dict[str, str]:
    """Where the objects of requests are."""
    api, core = "/apis/autoscaling.x-k8s.io", f"/api/v1/namespaces/{namespace}"
    return {
        "ProvisioningRequest": f"{api}/v1/namespaces/{namespace}/provisioningrequests",
        "CapacityBuffer": f"{api}/v1beta1/namespaces/{namespace}/capacitybuffers",
        "PlaceholderPods": f"{core}/pods",
        "PodTemplate": f"{core}/podtemplates",
    }


def made(plane: ControlPlane, kind: str, namespace: str) -> list[Json]:
    """What exists of requests of a kind."""
    found = items(plane, collections(namespace)[kind])
    return [one for one in found if LABEL in one["metadata"].get("labels", {})]


def remains(plane: ControlPlane, namespace: str) -> list[str]:
    return [
        f"{kind} {one['metadata']['name']}"
        for kind in collections(namespace)
        for one in made(plane, kind, namespace)
    ]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """No nodes."""
    with controlplane_or_skip(kinds=printed("crd") + "\n---\n" + kinds()) as running:
        for name in ("provisioningrequests", "capacitybuffers"):
            running.wait_for_crd(f"{name}.autoscaling.x-k8s.io")
        yield running


@contextmanager
def asking(plane: ControlPlane, via: str, *more: str) -> Iterator[tuple[str, Dispatcher]]:
    """A namespace of its own, and a dispatcher that asks in this way, with ``more`` settings."""
    namespace = via.lower()
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    body = {"metadata": {"name": namespace, "labels": restricted}}
    if plane.request("GET", f"/api/v1/namespaces/{namespace}")[0] == 404:
        plane.ask("POST", "/api/v1/namespaces", body)
    settings = (SET, f"scaleUp.via={via}")
    account = install(plane)
    rights = ("--namespace", NAMESPACE, "--service-account", ACCOUNT)
    plane.apply(printed("rbac", *rights, *settings))
    with Dispatcher(plane, account, *settings, *more, *SHORT_LEASE) as dispatcher:
        yield namespace, dispatcher
        delete(plane, namespace=namespace)
        plane.wait_for(lambda: not remains(plane, namespace), 60, "no request is left")
        assert "forbidden" not in dispatcher.log().lower()
    for node in items(plane, "/api/v1/nodes"):
        plane.remove_node(node["metadata"]["name"])


def gang(name: str, namespace: str, **spec: Any) -> Json:
    """An AppWrapper of three pods of 3 CPUs."""
    thing = deployment(name, replicas=3, cpu="3")
    inner = thing["spec"]["template"]["spec"]
    inner["securityContext"] = {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    inner["containers"][0]["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    return appwrapper(name, thing, namespace=namespace, **spec)


def say(plane: ControlPlane, via: str, obj: Json, **conditions: str) -> None:
    """Write conditions as an autoscaler does: status, and words after a blank."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = [
        {
            "type": kind,
            "status": told.partition(" ")[0],
            "reason": "Because",
            "message": told.partition(" ")[2],
            "lastTransitionTime": now,
        }
        for kind, told in conditions.items()
    ]
    path = f"{collections(obj['metadata']['namespace'])[via]}/{obj['metadata']['name']}/status"
    plane.ask("PATCH", path, {"status": {"conditions": found}}, content_type=MERGE)


def requested(plane: ControlPlane, via: str, namespace: str, count: int) -> list[Json]:
    """The objects of the request, when all of them exist."""

    def found() -> list[Json]:
        objects = made(plane, via, namespace)
        return objects if len(objects) == count else []

    return plane.wait_for(found, 60, f"{count} objects of a request in {namespace}")


@pytest.mark.parametrize("via", WAYS)
def test_an_appwrapper_gets_the_nodes_that_it_asked_for(plane: ControlPlane, via: str) -> None:
    count = 3 if via == "PlaceholderPods" else 1
    with asking(plane, via) as (namespace, _):
        create(plane, gang("grow", namespace))
        objects = requested(plane, via, namespace, count)
        for one in objects:
            (owner,) = one["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"]) == ("AppWrapper", "grow")
        if via != "PlaceholderPods":
            (template,) = made(plane, "PodTemplate", namespace)
            (container,) = template["template"]["spec"]["containers"]
            assert container["resources"]["requests"] == {"cpu": "3"}
        if via == "ProvisioningRequest":
            say(plane, via, objects[0], Accepted="True", Provisioned="True found")
        if via == "CapacityBuffer":
            assert objects[0]["spec"]["replicas"] == 3
            say(plane, via, objects[0], ReadyForProvisioning="True", Provisioning="True")
        assert not running(plane, namespace)
        for number in range(3):
            plane.add_node(f"{namespace}-{number}", cpu="4")
        plane.wait_for(lambda: len(running(plane, namespace)) == 3, 60, "all pods run")
        notes = [one["metadata"].get("annotations", {}) for one in running(plane, namespace)]
        named = {one.get(CONSUMES, "") for one in notes}
        is_named = via == "ProvisioningRequest"
        assert named == ({objects[0]["metadata"]["name"]} if is_named else {""})
        plane.wait_for(lambda: not remains(plane, namespace), 60, "no request is left")
        assert status_of(plane, "grow", namespace)["state"] == "Running"


def running(plane: ControlPlane, namespace: str) -> list[Json]:
    """The pods of AppWrappers that run."""
    return [
        one
        for one in pods(plane, namespace)
        if LABEL not in one["metadata"]["labels"] and one["status"]["phase"] == "Running"
    ]


def by_deletion(plane: ControlPlane, namespace: str) -> None:
    delete(plane, "grow", namespace=namespace)


def by_suspension(plane: ControlPlane, namespace: str) -> None:
    path = f"/apis/workload.codeflare.dev/v1beta2/namespaces/{namespace}/appwrappers/grow"
    plane.ask("PATCH", path, {"spec": {"suspend": True}}, content_type=MERGE)


@pytest.mark.parametrize("via", WAYS)
@pytest.mark.parametrize("end", [by_deletion, by_suspension])
def test_what_is_not_needed_any_more_is_withdrawn(
    plane: ControlPlane, via: str, end: Callable[[ControlPlane, str], None]
) -> None:
    with asking(plane, via) as (namespace, _):
        create(plane, gang("grow", namespace))
        requested(plane, via, namespace, 3 if via == "PlaceholderPods" else 1)
        end(plane, namespace)
        plane.wait_for(lambda: not remains(plane, namespace), 60, "no request is left")


@pytest.mark.parametrize("via", WAYS)
def test_the_next_leader_goes_on_with_a_request(plane: ControlPlane, via: str) -> None:
    count = 3 if via == "PlaceholderPods" else 1
    with asking(plane, via) as (namespace, dispatcher):
        create(plane, gang("grow", namespace))
        before = requested(plane, via, namespace, count)
        dispatcher.kill()
        dispatcher.start()
        for number in range(3):
            plane.add_node(f"{namespace}-{number}", cpu="4")
        plane.wait_for(lambda: len(running(plane, namespace)) == 3, 60, "all pods run")
        if via == "ProvisioningRequest":
            notes = [one["metadata"].get("annotations", {}) for one in running(plane, namespace)]
            assert {one[CONSUMES] for one in notes} == {before[0]["metadata"]["name"]}
        plane.wait_for(lambda: not remains(plane, namespace), 60, "no request is left")


def test_a_failure_is_told_in_the_words_of_the_autoscaler(plane: ControlPlane) -> None:
    via = "ProvisioningRequest"
    with asking(plane, via) as (namespace, _):
        create(plane, gang("grow", namespace))
        (request,) = requested(plane, via, namespace, 1)
        say(plane, via, request, Accepted="True", Provisioned="False Capacity is not found.")

        def words() -> str:
            return mcad("events", "grow", "-n", namespace, kubeconfig=plane.admin_kubeconfig)

        plane.wait_for(lambda: "Capacity is not found" in words(), 60, "the words are in an Event")


@pytest.mark.parametrize("via", WAYS[1:])
def test_what_karpenter_says_in_events_about_pods_is_a_failure(
    plane: ControlPlane, via: str
) -> None:
    """kube-scheduler says FailedScheduling of placeholder pods as well."""
    with asking(plane, via) as (namespace, _):
        create(plane, gang("grow", namespace))
        (one, *_) = requested(plane, via, namespace, 3 if via == "PlaceholderPods" else 1)
        uid = one["metadata"]["uid"] + ("-1" if via == "CapacityBuffer" else "")
        event = {
            "metadata": {"name": "karpenter.1", "namespace": namespace},
            "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p", "uid": uid},
            "reason": "FailedScheduling",
            "message": "Failed to schedule pod, no instance type satisfied resources",
            "type": "Warning",
            "source": {"component": "karpenter"},
        }
        plane.ask("POST", f"/api/v1/namespaces/{namespace}/events", event)

        def words() -> str:
            return mcad("events", "grow", "-n", namespace, kubeconfig=plane.admin_kubeconfig)

        plane.wait_for(lambda: "no instance type satisfied" in words(), 60, "the words are told")


@pytest.mark.parametrize("via", WAYS[1:])
def test_the_real_autoscaler_says_in_events_that_no_nodes_come(
    plane: ControlPlane, via: str
) -> None:
    """Two nodes of three: neither a buffer nor a pod has a condition for that."""
    small = NodeGroup("small", "4200m", 2)
    with autoscaler(plane, small), asking(plane, via) as (namespace, _):
        create(plane, gang("grow", namespace))

        def words() -> str:
            return mcad("events", "grow", "-n", namespace, kubeconfig=plane.admin_kubeconfig)

        plane.wait_for(lambda: "didn't trigger scale-up" in words(), 60, "the words are told")


def wants_gpus(name: str, namespace: str) -> Json:
    """An AppWrapper of three pods with a GPU each."""
    made = gang(name, namespace, priority=1)
    (part,) = made["spec"]["components"]
    (container,) = part["template"]["spec"]["template"]["spec"]["containers"]
    container["resources"]["requests"][GPU], container["resources"]["limits"] = "1", {GPU: "1"}
    return made


@pytest.mark.parametrize("via", WAYS)
def test_a_gang_that_gets_no_nodes_from_the_real_autoscaler_blocks_no_other(
    plane: ControlPlane, via: str
) -> None:
    """It is the first in line, and only one AppWrapper may ask at a time."""
    large = NodeGroup("large", "16200m", 4)
    one_by_one = (SET, "scaleUp.concurrent=1")
    with autoscaler(plane, large), asking(plane, via, *one_by_one) as (namespace, _):
        create(plane, wants_gpus("never", namespace))
        create(plane, *(gang(name, namespace) for name in ("first", "second")))
        began = time.monotonic()

        def is_told() -> bool:
            said = conditions_of(plane, "never", namespace).get("ScaleUp", {})
            return said.get("status") == "False" and said.get("reason") == "Failed"

        plane.wait_for(is_told, 60, "the impossible gang is told why it waits")
        told = time.monotonic() - began
        plane.wait_for(lambda: len(running(plane, namespace)) == 6, 60, "both others run")
        print(f"{via}: told after {told:.1f} s, all run after {time.monotonic() - began:.1f} s")
        print(conditions_of(plane, "never", namespace)["ScaleUp"]["message"])
