"""An API server in memory behind the ``Api`` port: lists, watches, creates, discovery, refusals."""

import asyncio
import copy
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from mcad.kube.errors import ApiError, ConnectionLost
from mcad.kube.port import Request, Response
from mcad.kube.resource import Resource

Json = dict[str, Any]

GROUP = "workload.codeflare.dev"
SERVED = (
    Resource("", "v1", "pods", "Pod"),
    Resource("", "v1", "services", "Service"),
    Resource("", "v1", "configmaps", "ConfigMap"),
    Resource("", "v1", "events", "Event"),
    Resource("", "v1", "nodes", "Node", namespaced=False),
    Resource("", "v1", "namespaces", "Namespace", namespaced=False),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("apps", "v1", "replicasets", "ReplicaSet"),
    Resource("batch", "v1", "jobs", "Job"),
    Resource("batch", "v1", "cronjobs", "CronJob"),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource("example.com", "v1", "gadgets", "Gadget"),
    Resource(GROUP, "v1beta1", "appwrappers", "AppWrapper"),
    Resource(GROUP, "v1beta2", "appwrappers", "AppWrapper"),
)


@dataclass(frozen=True)
class Place:
    """What a request path means."""

    group: str
    plural: str
    namespace: str
    name: str


@dataclass
class FakeApi:
    """Objects by (group, plural); ``denied`` are the plurals that may not even be listed."""

    served: tuple[Resource, ...] = SERVED
    objects: dict[tuple[str, str], list[Json]] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    failing: dict[str, Response] = field(default_factory=dict)  # plural -> every answer
    tenant: str = ""  # the only namespace that the caller may look into
    refusal: Response | None = None  # the answer to every create
    broken: bool = False
    unauthorized: bool = False
    requests: list[Request] = field(default_factory=list)
    version: int = 1000
    events: list[tuple[int, str, str, str, Json]] = field(default_factory=list)
    watched: set[str] = field(default_factory=set)  # plurals that somebody has watched
    unwatchable: set[str] = field(default_factory=set)  # plurals that may only be listed
    cut: bool = False  # every watch ends at once with a lost connection

    def put(self, group: str, plural: str, *objects: Json) -> None:
        for obj in objects:
            self.version += 1
            meta = {"uid": f"uid-{self.version}", "resourceVersion": str(self.version)}
            obj["metadata"] = meta | obj["metadata"]
            self.objects.setdefault((group, plural), []).append(obj)
            self._tell("ADDED", group, plural, obj)

    def change(self, group: str, plural: str, name: str, change: Callable[[Json], None]) -> None:
        obj = self._named(group, plural, name)
        self.version += 1
        change(obj)
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._tell("MODIFIED", group, plural, obj)

    def remove(self, group: str, plural: str, name: str) -> None:
        obj = self._named(group, plural, name)
        self.objects[group, plural].remove(obj)
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self._tell("DELETED", group, plural, obj)

    def _named(self, group: str, plural: str, name: str) -> Json:
        return next(o for o in self.objects[group, plural] if o["metadata"]["name"] == name)

    def _tell(self, kind: str, group: str, plural: str, obj: Json) -> None:
        self.events.append((self.version, kind, group, plural, copy.deepcopy(obj)))

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        self.requests.append(request)
        if self.broken:
            raise ConnectionLost(f"{request.method} {request.path}: Connection refused")
        if self.unauthorized:
            return status(401, "Unauthorized", "Unauthorized")
        if request.path == "/version":
            return Response(200, {"gitVersion": "v1.36.0"})
        if request.path in ("/api", "/apis"):
            return Response(200, self._discovery(core=request.path == "/api"))
        return self._answer(request, _place(request.path))

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None]
    ) -> AsyncGenerator[bytes, None]:
        """A watch: a bookmark first, then what happens after the version that was asked for."""
        place, known = _place(request.path), int(request.params["resourceVersion"])
        if place.plural in self.unwatchable:
            words = (
                f'{place.plural} is forbidden: User "ann" cannot watch resource "{place.plural}"'
            )
            raise ApiError(403, "Forbidden", words)
        opened()
        self.watched.add(place.plural)
        yield _line("BOOKMARK", {"metadata": {"resourceVersion": str(known)}})
        while True:
            if self.cut:
                raise ConnectionLost("GET watch: cut off")
            for version, kind, group, plural, obj in list(self.events):
                if version > known and (group, plural) == (place.group, place.plural):
                    known = version
                    if _selects(request, place, obj):
                        yield _line(kind, obj)
            await asyncio.sleep(0.005)

    def _answer(self, request: Request, place: Place) -> Response:
        if not any((one.group, one.plural) == (place.group, place.plural) for one in self.served):
            return status(404, "NotFound", "the server could not find the requested resource")
        if place.plural in self.failing:
            return self.failing[place.plural]
        foreign = self.tenant and place.namespace != self.tenant and place.plural != "leases"
        if place.plural in self.denied or foreign:
            verb = "create" if request.method == "POST" else "list"
            words = f'{place.plural} is forbidden: User "ann" cannot {verb} resource'
            return status(403, "Forbidden", f'{words} "{place.plural}" in API group ""')
        if request.method == "POST":
            return self._create(request, place)
        found = self.objects.get((place.group, place.plural), [])
        if place.name:
            one = _one(found, place)
            return self._patch(request, one) if request.method == "PATCH" else one
        return self._list(found, place, request)

    def _list(self, found: list[Json], place: Place, request: Request) -> Response:
        items = [copy.deepcopy(obj) for obj in found if _selects(request, place, obj)]
        return Response(200, {"metadata": {"resourceVersion": str(self.version)}, "items": items})

    def _create(self, request: Request, place: Place) -> Response:
        if self.refusal is not None:
            return self.refusal
        assert isinstance(request.body, dict)
        obj = json.loads(json.dumps(request.body))
        found = self.objects.get((place.group, place.plural), [])
        names = [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in found]
        if (place.namespace, obj["metadata"]["name"]) in names:
            return status(409, "AlreadyExists", "already exists")
        if "dryRun" not in request.params:
            self.put(place.group, place.plural, obj)
        return Response(201, obj)

    def _patch(self, request: Request, one: Response) -> Response:
        """A merge patch of spec or status, one level deep, which is all that is ever sent."""
        if one.status == 200:
            assert isinstance(request.body, dict)
            obj, self.version = one.json(), self.version + 1
            obj["metadata"]["resourceVersion"] = str(self.version)
            for part in request.body.keys() & {"spec", "status"}:
                merged = obj.get(part, {}) | request.body[part]
                obj[part] = {key: value for key, value in merged.items() if value is not None}
            place = _place(request.path)
            self._tell("MODIFIED", place.group, place.plural, obj)
        return one

    def _discovery(self, *, core: bool) -> Json:
        groups: dict[str, dict[str, list[Json]]] = {}
        for one in self.served:
            if (one.group == "") is core:
                versions = groups.setdefault(one.group, {})
                versions.setdefault(one.version, []).append(
                    {
                        "resource": one.plural,
                        "responseKind": {"kind": one.kind},
                        "scope": "Namespaced" if one.namespaced else "Cluster",
                    }
                )
        return {
            "kind": "APIGroupDiscoveryList",
            "items": [
                {
                    "metadata": {"name": group},
                    "versions": [
                        {"version": version, "resources": resources}
                        for version, resources in versions.items()
                    ],
                }
                for group, versions in groups.items()
            ],
        }


def _selects(request: Request, place: Place, obj: Json) -> bool:
    label = request.params.get("labelSelector", "")
    field_name, _, value = request.params.get("fieldSelector", "").partition("=")
    metadata = obj["metadata"]
    return (
        place.namespace in ("", metadata.get("namespace", ""))
        and (not label or label in metadata.get("labels", {}))
        and (field_name != "involvedObject.uid" or obj["involvedObject"]["uid"] == value)
        and (field_name != "metadata.name" or metadata["name"] == value)
    )


def _line(kind: str, obj: Json) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode()


def _place(path: str) -> Place:
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    return Place(group, rest[0], namespace, rest[1] if len(rest) > 1 else "")


def _one(found: list[Json], place: Place) -> Response:
    for obj in found:
        if (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) == (
            place.namespace,
            place.name,
        ):
            return Response(200, obj)
    details = {"name": place.name, "kind": place.plural}
    return status(404, "NotFound", f'{place.plural} "{place.name}" not found', details)


def status(code: int, reason: str, message: str, details: Json | None = None) -> Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return Response(code, body | {"details": details or {}})
