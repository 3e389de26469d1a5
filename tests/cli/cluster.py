"""The tutorial's cluster in memory: one small node, one AppWrapper that runs and one that waits."""

from pathlib import Path
from typing import Any

import yaml

from tests.fakeapi import GROUP, FakeApi

Json = dict[str, Any]

DECADES_S = 1_000_000_000  # processes of their own have the real clock
RUNNING_UID = "aaaa-1"
WAITING_UID = "bbbb-2"


def tutorial(*, led: bool = True) -> FakeApi:
    """As it is after the tutorial's second AppWrapper was created; ``led`` by a dispatcher."""
    api = FakeApi()
    if led:
        api.put("leases", lease(leaseDurationSeconds=DECADES_S))
    api.put("namespaces", *(_named("Namespace", name) for name in ("default", "team-a")))
    api.put("nodes", node("minikube", cpu="2", memory="8129036Ki"))
    api.put("pods", pod("others", "kube-system", cpu="1750m", memory="1194Mi"))
    put_running(api)
    api.put("appwrappers", waiting())
    api.put("events", event(WAITING_UID, "Queued", "Insufficient resources."))
    return api


def crowd() -> FakeApi:
    """Two nodes, two namespaces, and every reason to wait."""
    api = FakeApi()
    api.put("leases", lease(leaseDurationSeconds=DECADES_S))
    api.put("namespaces", *(_named("Namespace", name) for name in ("default", "team-a")))
    names = ("node-a", "node-b", "full")
    api.put("nodes", *(node(name, cpu="2", memory="4Gi") for name in names))
    api.put("pods", pod("huge", "kube-system", cpu="3", memory="1Gi", on="full"))
    api.put("pods", pod("one", "kube-system", cpu="1", memory="1Gi", on="node-a"))

    def queued(name: str, at: str, item: Json, namespace: str = "default", **spec: Any) -> None:
        obj = appwrapper(name, f"uid-{name}", at, item, namespace=namespace)
        obj["spec"] |= spec
        api.put("appwrappers", obj)

    def pair(name: str, cpu: str) -> Json:
        return deployment(name, replicas=2, cpu=cpu, memory="1Gi")

    queued("fragmented", "07:00:00", pair("fragmented", "1500m"))
    queued("too-large", "07:10:00", pair("too-large", "3"), "team-a")
    queued("urgent", "07:20:00", pair("urgent", "2"), "team-a", priority=10)
    queued("fits", "07:30:00", pair("fits", "250m"))
    queued("no-memory", "07:40:00", deployment("no-memory", replicas=3, cpu="0", memory="4Gi"))
    queued("suspended", "07:50:00", pair("suspended", "1"), suspend=True)
    queued("unknown-kind", "07:51:00", {"apiVersion": "example.com/v1", "kind": "Widget"})
    queued("invalid", "07:52:00", deployment("invalid", replicas=-1, cpu="1", memory="1"))
    queued("other", "07:53:00", pair("other", "1"), managedBy="example.com/x")
    queued("guessed", "07:54:00", _widget())
    return api


def lease(**spec: Any) -> Json:
    """That of a dispatcher that renewed it two seconds ago."""
    held = {
        "holderIdentity": "mcad-1",
        "leaseDurationSeconds": 15,
        "renewTime": "2027-01-15T07:59:58.000000Z",
        "leaseTransitions": 1,
    }
    metadata = {"name": "mcad-dispatcher", "namespace": "kube-system"}
    return {"metadata": metadata, "spec": held | spec}


def labelled() -> FakeApi:
    """The crowd, with labels on some of them."""
    api = crowd()
    marks = {
        "urgent": {"team": "a"},
        "fits": {"team": "b"},
        "no-memory": {"team": "a", "debug": ""},
    }
    for obj in api.objects["appwrappers"].values():
        obj["metadata"]["labels"] = marks.get(obj["metadata"]["name"], {})
    return api


REFUSED = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available."


def unplaced() -> FakeApi:
    """An AppWrapper that was dispatched; one of its pods has room on a node, the other on none, and
    kube-scheduler says so."""
    api = FakeApi()
    api.put("leases", lease(leaseDurationSeconds=DECADES_S))
    api.put("nodes", node("node-a", cpu="2", memory="4Gi"))
    spec = deployment("unplaced", replicas=2, cpu="2", memory="1Gi")
    record = dispatched("unplaced", "07:59:00Z", "07:59:01Z", attempt=3, epoch=2)
    status = {
        "state": "Running",
        "controllerfirsttimestamp": "2027-01-12T07:00:00Z",
        "dispatch": record,
    }
    api.put("appwrappers", appwrapper("unplaced", "u-unplaced", "07:00:00", spec, status=status))
    labels = put_child(api, spec, "u-unplaced", attempt=3)
    _put_pods(api, labels, "x", cpu="2", memory="1Gi", on="")
    refused = condition("PodScheduled", "07:59:02", "Unschedulable", REFUSED) | {"status": "False"}
    pending = {"phase": "Pending", "conditions": [refused]}
    api.change("pods", "unplaced-7-x", lambda obj: obj.update(status=pending))
    return api


def reserved() -> FakeApi:
    """Two nodes: ``big`` waits for both and has reserved them, so ``small`` must wait."""
    api = FakeApi()
    api.put("leases", lease(leaseDurationSeconds=DECADES_S))
    api.put("nodes", *(node(name, cpu="2", memory="4Gi") for name in ("node-a", "node-b")))
    record = dispatched("old", "07:00:00Z", "07:00:01Z")
    runs = {"state": "Running", "dispatch": record}
    old = deployment("old", replicas=1, cpu="2", memory="1Gi")
    api.put("appwrappers", appwrapper("old", "u-old", "07:00:00", old, status=runs))
    labels = put_child(api, old, "u-old", attempt=1)
    _put_pods(api, labels, "x", cpu="2", memory="1Gi", on="node-a")
    waits = {
        "state": "Pending",
        "controllerfirsttimestamp": "2027-01-15T07:40:00Z",
        "reservation": {
            "reason": "Starved",
            "since": "2027-01-15T07:55:00.000000Z",
            "until": "2027-01-15T08:05:00.000000Z",
            "nodeCount": 2,
            "nodes": ["node-a", "node-b"],
            "placement": [{"node": "node-a", "pods": [1]}, {"node": "node-b", "pods": [1]}],
            "waitsFor": ["default/old"],
        },
    }
    big = deployment("big", replicas=2, cpu="2", memory="1Gi")
    api.put("appwrappers", appwrapper("big", "u-big", "07:40:00", big, status=waits))
    evicted = {
        "count": 2,
        "reason": "Preempting",
        "by": "u-gone",
        "title": "team-a/urgent",
        "at": "2027-01-15T07:45:00.000000Z",
    }
    small = deployment("small", replicas=1, cpu="1", memory="1Gi")
    status = {"state": "Pending", "eviction": evicted}
    api.put("appwrappers", appwrapper("small", "u-small", "07:50:00", small, status=status))
    return api


def _widget() -> Json:
    """A kind without rules, with a pod template in it."""
    inner = deployment("guessed", replicas=1, cpu="100m", memory="64Mi")["spec"]["template"]
    return {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "guessed"},
        "spec": {"parts": [{"replicas": 3, "template": inner}]},
    }


def put_running(api: FakeApi) -> None:
    """The first AppWrapper: dispatched, with its Deployment and two pods."""
    name = "0001-aw-generic-deployment-1"
    record = dispatched(name, "07:58:30.000001Z", "07:58:30.200000Z")
    status = {
        "state": "Running",
        "queuejobstate": "Dispatched",
        "controllerfirsttimestamp": "2027-01-15T07:58:29.000000Z",
        "conditions": [
            condition("Init", "07:58:29"),
            condition("Queueing", "07:58:29", "AwaitingHeadOfLine"),
            condition("HeadOfLine", "07:58:30", "FrontOfQueue."),
            condition("Dispatched", "07:58:30", "AppWrapperRunnable"),
        ],
        "dispatch": record,
    }
    spec = deployment(name, replicas=2, cpu="100m", memory="256Mi")
    api.put("appwrappers", appwrapper(name, RUNNING_UID, "07:58:29", spec, status=status))
    labels = put_child(api, spec, RUNNING_UID, attempt=1)
    _put_pods(api, labels, "xy", cpu="100m", memory="256Mi")


def _put_pods(api: FakeApi, labels: Json, suffixes: str, **of_pod: str) -> None:
    """The ReplicaSet of the Deployment with these labels, and its pods."""
    name = labels[f"{GROUP}/appwrapper"]
    owner = _owner("apps/v1", "Deployment", name, f"dep-{name}")
    replicaset = {"name": f"{name}-7", "namespace": "default", "uid": "rs-1", "labels": labels}
    api.put("replicasets", {"metadata": replicaset | {"ownerReferences": [owner]}})
    for suffix in suffixes:
        one = pod(f"{name}-7-{suffix}", "default", **of_pod)
        one["metadata"] |= {
            "labels": labels | {f"{GROUP}/podset": "0.0"},
            "ownerReferences": [_owner("apps/v1", "ReplicaSet", f"{name}-7", "rs-1")],
        }
        api.put("pods", one)


def dispatched(name: str, intent: str, confirm: str, attempt: int = 1, epoch: int = 1) -> Json:
    """The record of an attempt of one Deployment, begun and confirmed at these times of the day."""
    item = {"group": "apps", "version": "v1", "resource": "deployments", "kind": "Deployment"}
    return {
        "attempt": attempt,
        "epoch": epoch,
        "phase": "dispatched",
        "inventory": [{**item, "namespace": "default", "name": name}],
        "intentTime": f"2027-01-15T{intent}",
        "confirmTime": f"2027-01-15T{confirm}",
    }


def put_child(api: FakeApi, spec: Json, uid: str, *, attempt: int) -> Json:
    """The one item of an AppWrapper, created; its labels."""
    name = spec["metadata"]["name"]
    labels = {
        f"{GROUP}/appwrapper": name,
        f"{GROUP}/appwrapper-uid": uid,
        f"{GROUP}/attempt": str(attempt),
        f"{GROUP}/item": "0",
    }
    owner = _owner(f"{GROUP}/v1beta1", "AppWrapper", name, uid)
    metadata = {"name": name, "namespace": "default", "uid": f"dep-{name}", "labels": labels}
    live = spec | {"metadata": metadata | {"ownerReferences": [owner]}}
    api.put("deployments", live)
    return labels


def waiting(**status: Any) -> Json:
    """The second AppWrapper."""
    name = "0002-aw-generic-deployment-2"
    spec = deployment(name, replicas=2, cpu="75m", memory="256Mi")
    refused = "Insufficient resources to dispatch AppWrapper."
    return appwrapper(
        name,
        WAITING_UID,
        "07:59:00",
        spec,
        status={
            "state": "Pending",
            "queuejobstate": "Backoff",
            "controllerfirsttimestamp": "2027-01-15T07:59:00.000000Z",
            "conditions": [
                condition("Init", "07:59:00"),
                condition("Queueing", "07:59:00", "AwaitingHeadOfLine"),
                condition("HeadOfLine", "07:59:00", "FrontOfQueue."),
                condition("Backoff", "07:59:00", "AppWrapperNotRunnable.", refused),
            ],
            **status,
        },
    )


def appwrapper(
    name: str,
    uid: str,
    created: str,
    item: Json,
    *,
    status: Json | None = None,
    namespace: str = "default",
) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "AppWrapper",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "generation": 1,
            "creationTimestamp": f"2027-01-15T{created}Z",
        },
        "spec": {"resources": {"GenericItems": [{"replicas": 1, "generictemplate": item}]}},
        "status": status or {},
    }


def deployment(name: str, *, replicas: int, cpu: str, memory: str) -> Json:
    container = {"name": "main", "image": "echo", "resources": _requests(cpu, memory)}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }


def node(name: str, *, cpu: str, memory: str) -> Json:
    return {
        "metadata": {"name": name},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, namespace: str, *, cpu: str, memory: str, on: str = "minikube") -> Json:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": on, "containers": [{"resources": _requests(cpu, memory)}]},
        "status": {"phase": "Running"},
    }


def event(uid: str, reason: str, message: str) -> Json:
    return {
        "metadata": {"name": f"event-{reason.lower()}", "namespace": "default"},
        "involvedObject": {"uid": uid},
        "type": "Normal",
        "reason": reason,
        "message": message,
        "eventTime": "2027-01-15T07:59:00.100000Z",
    }


def condition(kind: str, at: str, reason: str = "", message: str = "") -> Json:
    made = {"type": kind, "status": "True", "reason": reason, "message": message}
    at = f"2027-01-15T{at}.000000Z"
    return made | {"lastUpdateMicroTime": at, "lastTransitionMicroTime": at}


def _requests(cpu: str, memory: str) -> Json:
    return {"requests": {"cpu": cpu, "memory": memory}}


def _named(kind: str, name: str) -> Json:
    return {"kind": kind, "metadata": {"name": name}}


def _owner(api_version: str, kind: str, name: str, uid: str) -> Json:
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}
    return owner | {"controller": True}


def kubeconfig(folder: Path, url: str, namespace: str = "default") -> str:
    """The path of a kubeconfig for a server without credentials."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": {"server": url}}],
        "users": [{"name": "ann", "user": {}}],
        "contexts": [
            {"name": "fake", "context": {"cluster": "fake", "user": "ann", "namespace": namespace}}
        ],
        "current-context": "fake",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return str(path)
