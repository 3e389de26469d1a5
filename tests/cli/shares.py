"""Three teams' shares of one cluster in memory: one team borrows, one waits for its own."""

from __future__ import annotations

from typing import Any

from tests.cli.cluster import (
    DECADES_S,
    appwrapper,
    deployment,
    dispatched,
    lease,
    node,
    put_child,
)
from tests.fakeapi import FakeApi

Json = dict[str, Any]

TREE = "teams"
QUOTA = "quota.codeflare.dev/v1alpha1"


def shares(*, written: bool = True) -> FakeApi:
    """A cluster with more nodes than quota; ``written``: a dispatcher has told of the trees."""
    api = FakeApi()
    api.put("leases", lease(leaseDurationSeconds=DECADES_S))
    api.put("nodes", node("node-1", cpu="32", memory="64Gi"))
    told = {"cluster": {"allocated": {"cpu": "7"}}, "research": {"allocated": {"cpu": "6"}}}
    for obj in trees():
        if written:
            children = [
                {"name": each["name"], "nominal": each["quotas"]["requests"]}
                | told.get(each["name"], {})
                for each in obj["spec"]["children"]
            ]
            ready = {"type": "Ready", "status": "True", "reason": "InForce"}
            obj |= {"status": {"conditions": [ready], "children": children}}
        api.put("quotasubtrees", obj)
    put_dispatched(api, "own", "research", 4)
    put_dispatched(api, "borrower", "research", 2)
    put_dispatched(api, "watchers", "ops", 1)
    api.put("appwrappers", queued("late", "product", 3), queued("lost", "reserch", 1))
    return api


def trees() -> list[Json]:
    """The QuotaSubtrees."""
    return [
        subtree("cluster", "", cluster="8"),
        subtree("teams", "cluster", research="4", product="3", ops="1", default="0"),
    ]


def subtree(name: str, parent: str, **cpu: str) -> Json:
    children = [{"name": each, "quotas": {"requests": {"cpu": n}}} for each, n in cpu.items()]
    return {
        "apiVersion": QUOTA,
        "kind": "QuotaSubtree",
        "metadata": {"name": name, "namespace": "quota", "labels": {"tree": TREE}},
        "spec": {"parent": parent, "children": children} if parent else {"children": children},
    }


def queued(name: str, leaf: str, pods: int, **status: Any) -> Json:
    item = deployment(name, replicas=pods, cpu="1", memory="1Gi")
    obj = appwrapper(name, f"uid-{name}", "07:59:00", item, status=status)
    obj["metadata"]["labels"] = {TREE: leaf}
    return obj


def put_dispatched(api: FakeApi, name: str, leaf: str, pods: int) -> None:
    """One that was dispatched: its Deployment is there, its pods are not bound yet."""
    record = dispatched(name, "07:58:30Z", "07:58:31Z") | {"quota": [{"tree": TREE, "leaf": leaf}]}
    status = {"state": "Running", "queuejobstate": "Dispatched", "dispatch": record}
    obj = queued(name, leaf, pods, **status)
    obj["metadata"]["creationTimestamp"] = "2027-01-15T07:58:00Z"
    api.put("appwrappers", obj)
    spec = deployment(name, replicas=pods, cpu="1", memory="1Gi")
    put_child(api, spec, f"uid-{name}", attempt=1)
