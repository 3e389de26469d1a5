"""The autoscaler: looks at the cluster every two seconds, orders nodes and removes idle ones.

Rules are those of cluster-autoscaler 1.36.1, as ADR 68 has them: free room is filled first; a
request gets all of its nodes from one group or none, and is tried again after a minute; it is
provisioned when its nodes are ordered; what is booked for it counts until it is deleted or expires;
pods that name a request get no nodes; a buffer gets what there is, and is filled again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mcad.kube.client import Client
from mcad.kube.errors import KubeError
from mcad.kube.kinds import NODES, PODS
from mcad.kube.resource import Resource
from mcad.sim.scheduling.shapes import Shapes
from mcad.sim.times import parse_us, seconds
from tests.autoscaler.groups import GROUP, KIND, Group, Moods
from tests.autoscaler.kinds import BUFFERS, CLASS, CONSUMES, REQUESTS, TEMPLATES
from tests.autoscaler.room import Room, pods_of

Json = dict[str, Any]

LOOK_S = 2.0
RETRY_S = 60.0
DELETE_S = 5.0  # from the taint of a node that goes to its end
STARTUP = "example.com/starting"
CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
DELETED = "ToBeDeletedByClusterAutoscaler"
ACCEPTED = "ProvisioningRequest is accepted by ClusterAutoscaler"
FOUND = "Capacity is found in the cluster"


@dataclass(slots=True)
class Order:
    """A node that is to come: at ``at_s``, or never, and then it is counted until ``until_s``."""

    group: Group
    name: str
    at_s: float | None
    until_s: float


@dataclass(slots=True)
class Figures:
    """What it did, for the tests to judge."""

    ordered: int = 0
    made: int = 0
    lost: int = 0
    removed: int = 0
    requests: set[str] = field(default_factory=set)  # uids of requests and buffers that it saw
    answers: Counter[str] = field(default_factory=Counter)  # Provisioned, NotFound, ...
    ready_s: dict[str, float] = field(default_factory=dict)  # by node, from when on it takes pods


class StandIn:
    """One of them. ``unneeded_s`` is how long a node may be idle."""

    def __init__(
        self,
        client: Client,
        groups: Sequence[Group],
        moods: Moods = KIND,
        *,
        unneeded_s: float = 600.0,
        ordered: Callable[[Sequence[Json], int], None] = lambda asking, count: None,
        version: Callable[[], int] | None = None,
    ) -> None:
        """``ordered`` hears of the requests or pods for which so many nodes are ordered. With
        ``version`` of the cluster it does not look again at what has not changed."""
        self._version, self._seen = version, -1
        self._ordered = ordered
        self._client, self._clock = client, client.clock
        self._begun_s = client.clock.monotonic()
        self._groups = {one.name: one for one in groups}
        self._moods, self._unneeded_s = moods, unneeded_s
        self._rng = Random(moods.seed)
        self._shapes = Shapes()
        self._is_asked = False  # there are requests or buffers
        self._orders: list[Order] = []
        self._goes_s: dict[str, float] = {}  # by node: when the cloud takes it away
        self._starts_s: dict[str, float] = {}  # by node: when its taint of start-up goes
        self._idle_s: dict[str, float] = {}  # by node: since when it is not needed
        self._leaves_s: dict[str, float] = {}  # by node: when one that is tainted is deleted
        self._tried_s: dict[str, float] = {}  # by uid of a request: when it found no room
        self._numbers: Counter[str] = Counter()
        self.figures = Figures()

    async def run(self) -> None:
        """Until it is cancelled. An error of the API ends one look, not the autoscaler."""
        while True:
            with suppress(KubeError):
                await self.look()
            await self._clock.sleep(LOOK_S)

    async def look(self) -> None:
        """One pass over the cluster."""
        version = self._version() if self._version is not None else -1
        if version == self._seen and version >= 0 and not self._waits():
            return
        self._seen = version
        await self._deliver()
        await self._take_away()
        nodes, pods, requests, buffers = [
            await self._all(kind) for kind in (NODES, PODS, REQUESTS, BUFFERS)
        ]
        self._is_asked = bool(requests or buffers)
        templates = {_key(one): one for one in await self._all(TEMPLATES)}
        room = self._room(nodes, pods)
        await self._book(requests, templates, room)
        self._serve_pods(pods, room)
        await self._serve_requests(requests, templates, room)
        await self._serve_buffers(buffers, templates, room)
        await self._remove_idle(nodes, room)

    def _waits(self) -> bool:
        """Whether something is due that no change in the cluster says."""
        timed = (self._orders, self._goes_s, self._starts_s, self._idle_s, self._leaves_s)
        return self._is_asked or any(timed)

    async def _all(self, kind: Resource) -> list[Json]:
        found, _ = await self._client.list_all(kind)
        return list(found)

    @property
    def _now_s(self) -> float:
        return self._clock.monotonic() - self._begun_s

    # -- what the cloud does -------------------------------------------------------------------

    async def _deliver(self) -> None:
        """Nodes that were ordered come, and are usable a while later."""
        for order in list(self._orders):
            if order.at_s is not None and order.at_s <= self._now_s:
                await self._create(order)
                self._orders.remove(order)
            elif order.until_s <= self._now_s:
                self._orders.remove(order)
        for name, at_s in list(self._starts_s.items()):
            if at_s <= self._now_s:
                del self._starts_s[name]
                await self._untaint(name, STARTUP)
                self.figures.ready_s[name] = self._now_s

    async def _create(self, order: Order) -> None:
        node = order.group.node(order.name)
        self.figures.made += 1
        if self._moods.startup_s:
            node["spec"]["taints"].append({"key": STARTUP, "effect": "NoSchedule"})
            self._starts_s[order.name] = self._now_s + self._moods.startup_s
        else:
            self.figures.ready_s[order.name] = self._now_s
        await self._client.create(NODES, None, node)
        if (goes_s := self._moods.goes_s(self._now_s, self._rng)) is not None:
            self._goes_s[order.name] = self._now_s + goes_s

    async def _take_away(self) -> None:
        """Nodes that the cloud takes back, and those that are idle."""
        for name, at_s in list(self._goes_s.items()):
            if at_s <= self._now_s:
                del self._goes_s[name]
                self.figures.lost += 1
                await self._delete(name)
        for name, at_s in list(self._leaves_s.items()):
            if at_s <= self._now_s:
                del self._leaves_s[name]
                await self._delete(name)

    async def _delete(self, name: str) -> None:
        with suppress(KubeError):
            await self._client.delete(NODES, None, name)
        for known in (self._starts_s, self._idle_s, self._leaves_s, self._goes_s):
            known.pop(name, None)

    def _order(self, group: Group) -> Order:
        self._numbers[group.name] += 1
        self.figures.ordered += 1
        comes_s = self._moods.comes_s(group, self._now_s, self._rng)
        name = f"{group.name}-{self._numbers[group.name]:03}"
        at_s = None if comes_s is None else self._now_s + comes_s
        order = Order(group, name, at_s, self._now_s + (comes_s or 0.0) + self._moods.given_up_s)
        self._orders.append(order)
        return order

    # -- its books -----------------------------------------------------------------------------

    def _room(self, nodes: Iterable[Json], pods: Iterable[Json]) -> Room:
        room = Room(self._shapes, STARTUP)
        for node in nodes:
            if node["metadata"]["name"] not in self._leaves_s:
                room.add(node)
        for order in self._orders:
            room.add(order.group.node(order.name))
        for pod in pods:
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                room.bind(pod)
        return room

    def _left(self, group: Group, room: Room) -> int:
        """How many more nodes the group may have."""
        there = sum(node.labels.get(GROUP) == group.name for node in room.nodes.values())
        leaving = sum(name.startswith(f"{group.name}-") for name in self._leaves_s)
        return group.largest - there - leaving

    async def _book(self, requests: Iterable[Json], templates: dict[Key, Json], room: Room) -> None:
        """Keep the nodes of those that are provisioned, until that expires."""
        for request in requests:
            told = _condition(request, "Provisioned")
            if told.get("status") != "True" or _is_true(request, "BookingExpired"):
                continue
            since_us = parse_us(told["lastTransitionTime"])
            if since_us + self._moods.booking_s * 1e6 <= self._clock.now_us():
                told = ("BookingExpired", "True", "CapacityReservationTimeExpired")
                await self._say(REQUESTS, request, told, "Capacity reservation time is expired")
                continue
            room.place_all(_wanted(request, templates))

    def _serve_pods(self, pods: Iterable[Json], room: Room) -> None:
        """Nodes for pods that have none and name no request."""
        waiting = [one for one in pods if _is_waiting(one)]
        missing = room.place_all(waiting)
        with self._counting(missing):
            self._grow(room, missing, is_atomic=False)

    async def _serve_requests(
        self, requests: Iterable[Json], templates: dict[Key, Json], room: Room
    ) -> None:
        for request in sorted(requests, key=lambda one: one["metadata"]["creationTimestamp"]):
            uid = request["metadata"]["uid"]
            self.figures.requests.add(uid)
            if request["spec"]["provisioningClassName"] != CLASS or _is_true(request, "Failed"):
                continue
            if _is_true(request, "Provisioned"):
                continue
            if self._now_s < self._tried_s.get(uid, -RETRY_S) + RETRY_S:
                continue
            if any(
                (request["metadata"]["namespace"], name) not in templates
                for name in _named(request)
            ):
                words = "missing pod templates"
                await self._say(REQUESTS, request, ("Failed", "True", "FailedToCreatePods"), words)
                self.figures.answers["Failed"] += 1
                continue
            await self._try(request, _wanted(request, templates), room)

    async def _try(self, request: Json, pods: list[Json], room: Room) -> None:
        tried = room.copy()
        missing = tried.place_all(pods)
        reason, status, words = "CapacityIsFound", "True", FOUND
        with self._counting([request]):
            is_served = self._grow(tried, missing, is_atomic=True)
        if missing and is_served:
            reason = "CapacityIsProvisioned"
        elif missing:
            self._tried_s[request["metadata"]["uid"]] = self._now_s
            reason, status = "CapacityIsNotFound", "False"
            words = "Capacity is not found, CA will try to find it later."
        if status == "True":
            room.nodes = tried.nodes
        self.figures.answers[reason] += 1
        await self._say(REQUESTS, request, ("Accepted", "True", "Accepted"), ACCEPTED)
        await self._say(REQUESTS, request, ("Provisioned", status, reason), words)

    async def _serve_buffers(
        self, buffers: Iterable[Json], templates: dict[Key, Json], room: Room
    ) -> None:
        """As many nodes as there may be; it does not say when they are there."""
        for buffer in buffers:
            namespace, uid = buffer["metadata"]["namespace"], buffer["metadata"]["uid"]
            self.figures.requests.add(uid)
            template = templates.get((namespace, buffer["spec"]["podTemplateRef"]["name"]))
            if template is None:
                words = "the pod template is not found"
                await self._say(BUFFERS, buffer, ("ReadyForProvisioning", "False", "error"), words)
                continue
            pods = pods_of(template, namespace, buffer["spec"]["replicas"])
            with self._counting([buffer]):
                self._grow(room, room.place_all(pods), is_atomic=False)
            ready = ("ReadyForProvisioning", "True", "AttributesSetSuccessfully")
            await self._say(BUFFERS, buffer, ready, "ready")
            await self._say(BUFFERS, buffer, ("Provisioning", "True", "FakePodsInjected"), "")

    def _grow(self, room: Room, missing: list[Json], *, is_atomic: bool) -> bool:
        """Order nodes of the group that serves these pods with the fewest; all of them or, unless
        ``is_atomic``, as many as there may be. Returns whether all are served."""
        if not missing:
            return True
        plans = [self._plan(room, group, missing) for group in self._groups.values()]
        served = [one for one in plans if one[2]]
        if not served:
            return False
        group, count, places = max(served, key=lambda one: (one[2], -one[1]))
        if is_atomic and places < len(missing):
            return False
        names = [self._order(group).name for _ in range(count)]
        for name in names:
            room.add(group.node(name))
        left = [pod for pod in missing if not room.place(pod, names)]
        return not left or (
            0 < len(left) < len(missing) and self._grow(room, left, is_atomic=False)
        )

    @contextmanager
    def _counting(self, asking: Sequence[Json]) -> Iterator[None]:
        before = self.figures.ordered
        yield
        if self.figures.ordered > before:
            self._ordered(asking, self.figures.ordered - before)

    def _plan(self, room: Room, group: Group, missing: list[Json]) -> tuple[Group, int, int]:
        """How many nodes of this group as many as possible of the pods need, and how many pods."""
        scratch = Room(self._shapes, STARTUP)
        left, places = self._left(group, room), 0
        for pod in missing:
            if not scratch.place(pod):
                if len(scratch.nodes) >= left:
                    continue
                name = f"{group.name}-{len(scratch.nodes):06}"
                scratch.add(group.node(name))
                if not scratch.place(pod, [name]):
                    del scratch.nodes[name]
                    continue
            places += 1
        return group, len(scratch.nodes), places

    # -- what is not needed goes ---------------------------------------------------------------

    async def _remove_idle(self, nodes: Iterable[Json], room: Room) -> None:
        for node in nodes:
            name = node["metadata"]["name"]
            known = room.nodes.get(name)
            if known is None or known.labels.get(GROUP) not in self._groups:
                continue
            if known.pods:
                if self._idle_s.pop(name, None) is not None:
                    await self._untaint(name, CANDIDATE)
                continue
            if name not in self._idle_s:
                self._idle_s[name] = self._now_s
                await self._taint(name, CANDIDATE, "PreferNoSchedule")
            elif self._idle_s[name] + self._unneeded_s <= self._now_s:
                self._leaves_s[name] = self._now_s + DELETE_S
                self.figures.removed += 1
                await self._taint(name, DELETED, "NoSchedule")

    async def _taint(self, name: str, key: str, effect: str) -> None:
        await self._retaint(name, key, [{"key": key, "effect": effect}])

    async def _untaint(self, name: str, key: str) -> None:
        await self._retaint(name, key, [])

    async def _retaint(self, name: str, key: str, more: list[Json]) -> None:
        with suppress(KubeError):
            node = await self._client.get(NODES, None, name)
            taints = [one for one in node["spec"].get("taints") or () if one["key"] != key]
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "spec": {"taints": [*taints, *more]}}
            await self._client.patch(NODES, None, name, patch)

    # -- what it says --------------------------------------------------------------------------

    async def _say(self, kind: Resource, obj: Json, told: tuple[str, str, str], words: str) -> None:
        """Set a condition (type, status, reason), unless it is so already."""
        name, status, reason = told
        known = _condition(obj, name)
        if (known.get("status"), known.get("reason")) == (status, reason):
            return
        changed = seconds(self._clock.now_us())
        made = {
            "type": name,
            "status": status,
            "reason": reason,
            "message": words,
            "lastTransitionTime": changed,
        }
        others = [one for one in _conditions(obj) if one["type"] != name]
        obj["status"] = {**(obj.get("status") or {}), "conditions": [*others, made]}
        meta = obj["metadata"]
        with suppress(KubeError):
            await self._client.patch_status(
                kind, meta["namespace"], meta["name"], {"status": obj["status"]}
            )


Key = tuple[str, str]


def start(autoscaler: StandIn) -> asyncio.Task[None]:
    """Run it beside the rest; cancel the task to end it."""
    return asyncio.ensure_future(autoscaler.run())


def _key(obj: Json) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _named(request: Json) -> list[str]:
    return [one["podTemplateRef"]["name"] for one in request["spec"]["podSets"]]


def _wanted(request: Json, templates: dict[Key, Json]) -> list[Json]:
    """The pods of a request, as far as their templates are there."""
    namespace, made = request["metadata"]["namespace"], []
    for one in request["spec"]["podSets"]:
        template = templates.get((namespace, one["podTemplateRef"]["name"]))
        made += pods_of(template, namespace, one["count"]) if template else []
    return made


def _is_waiting(pod: Json) -> bool:
    """Whether a pod lacks a node and may get one: it is refused, and names no request."""
    spec, status, meta = pod["spec"], pod.get("status") or {}, pod["metadata"]
    if spec.get("nodeName") or spec.get("schedulingGates") or "deletionTimestamp" in meta:
        return False
    if CONSUMES in (meta.get("annotations") or {}):
        return False
    told = status.get("conditions") or ()
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in told)


def _conditions(obj: Json) -> list[Json]:
    return list((obj.get("status") or {}).get("conditions") or ())


def _condition(obj: Json, name: str) -> Json:
    return next((one for one in _conditions(obj) if one["type"] == name), {})


def _is_true(obj: Json, name: str) -> bool:
    return bool(_condition(obj, name).get("status") == "True")
