"""The states of a cluster in which the page is judged, each with the address that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcad.kube.port import Response
from tests.cli.cluster import (
    appwrapper,
    crowd,
    deployment,
    event,
    node,
    reserved,
    tutorial,
    unplaced,
)
from tests.cli.shares import shares
from tests.fakeapi import FakeApi, forbidden
from tests.ui.test_server import OTHERS

Json = dict[str, Any]

SECOND = "/appwrappers/default/0002-aw-generic-deployment-2"
RUNNING = "/appwrappers/default/0001-aw-generic-deployment-1"
POD = "0001-aw-generic-deployment-1-7-x"


def tenant() -> FakeApi:
    api = tutorial()
    api.fail_always("*", OTHERS, forbidden)
    return api


def empty() -> FakeApi:
    api = FakeApi()
    api.put("namespaces", {"metadata": {"name": "default"}})
    api.objects |= {"appwrappers": {}, "nodes": {}, "pods": {}}
    return api


def paused() -> FakeApi:
    api = tutorial()
    spec = {"reason": "disks are moved"}
    api.put("dispatchpauses", {"metadata": {"name": "cluster", "uid": "u-pause"}, "spec": spec})
    return api


def named(obj: Json) -> str:
    name: str = obj["metadata"]["name"]
    return name


def charged() -> FakeApi:
    """The quota tree, with an eviction of the last hour and Events."""
    api = shares()
    evicted = {"count": 2, "reason": "Reclaimed", "title": "default/own", "by": "u-own"}
    evicted["at"] = "2027-01-15T07:45:00.000000Z"
    api.change("appwrappers", "late", lambda obj: obj["status"].update(eviction=evicted))
    (late,) = (one for one in api.objects["appwrappers"].values() if named(one) == "late")
    uid = late["metadata"]["uid"]
    for number, (reason, message) in enumerate(EVENTS):
        told = event(uid, reason, message)
        told["eventTime"] = f"2027-01-15T07:4{number}:00.100000Z"
        api.put("events", told)
    return api


def logged() -> FakeApi:
    """The tutorial's cluster with a pod that logs: many lines, one of them very long."""
    api = tutorial()

    def begin(pod: Json) -> None:
        pod["spec"]["containers"] = [{"name": "main"}, {"name": "helper"}]
        pod["status"]["containerStatuses"] = [{"name": "main", "state": {"running": {}}}]

    api.change("pods", POD, begin)
    told = b"".join(b"line %d of the log\n" % number for number in range(199)) + b"z" * 500
    api.fail_always("GET", "/log$", Response(200, told))
    return api


def unled(api: FakeApi) -> FakeApi:
    """The same without a dispatcher."""
    del api.objects["leases"]
    return api


LONG = "a-namespace-as-long-as-one-may-be-without-a-place-for-line-end"
LONG_NAME = "z" * 40 + LONG * 2


def long() -> FakeApi:
    """Names of the greatest length, more nodes than are in view, and a deep quota tree."""
    api = shares()
    api.put("namespaces", {"metadata": {"name": LONG}})
    item = deployment(LONG, replicas=2, cpu="9", memory="1Gi")
    api.put("appwrappers", appwrapper(LONG_NAME, "u-long", "07:00:00", item, namespace=LONG))
    api.put("nodes", *(node(f"{LONG}-{number}", cpu="4", memory="8Gi") for number in range(300)))
    told = event("u-long", "Queued", "m" * 300) | {"eventTime": "2027-01-15T07:41:00.100000Z"}
    told["metadata"]["namespace"] = LONG
    api.put("events", told)
    return api


EVENTS = (
    ("Queued", "Insufficient quota."),
    ("Dispatched", "2 pods fit on 1 node."),
    ("Reclaimed", "Evicted so that default/own can reclaim its quota; requeued."),
)


STATES: dict[str, tuple[Callable[[], FakeApi], str]] = {
    "queue": (crowd, "/"),
    "waiting": (tutorial, SECOND),
    "running": (tutorial, RUNNING),
    "quota": (charged, "/appwrappers/default/late"),
    "paused": (paused, SECOND),
    "events": (charged, "/appwrappers/default/late/events"),
    "reserved": (reserved, "/appwrappers/default/big"),
    "kept-off": (reserved, "/appwrappers/default/small"),
    "unplaced": (unplaced, "/"),
    "no-dispatcher": (lambda: tutorial(led=False), "/"),
    "tenant": (tenant, SECOND),
    "no-match": (crowd, "/?name=none"),
    "unknown": (tutorial, "/appwrappers/default/none"),
    "answer": (tutorial, SECOND + "/why"),
    "yaml": (tutorial, RUNNING + "/yaml"),
    "pods": (tutorial, RUNNING + "/pods"),
    "pod": (logged, f"{RUNNING}/pods/{POD}"),
    "long": (long, f"/appwrappers/{LONG}/{LONG_NAME}"),
    "empty": (empty, "/"),
    "not-shown": (lambda: unled(shares()), "/?leaf=teams/research"),
}
