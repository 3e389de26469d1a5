"""Scripts: lists of requests, written once and sent to both servers.

A script is a function that records steps on a ``Script``; nothing is sent while it does. What a
step answers is known to later ones as a ``Later``: a value that is looked up when the step that
uses it is sent. Each script has a namespace of its own, so that all of them can run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Values = Mapping[int, Any]  # bodies of the answers so far, by number of the step
Enough = Callable[[int, Any], bool]  # status and body

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

PREFIXES = {
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1",
    "priorityclasses": "/apis/scheduling.k8s.io/v1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "appwrappers": "/apis/workload.codeflare.dev/v1beta2",
}
CLUSTER = {"namespaces", "nodes", "clusterroles", "priorityclasses", "customresourcedefinitions"}


@dataclass(frozen=True)
class Later:
    """A value that the answers so far will tell."""

    look_up: Callable[[Values], Any]

    def at(self, *path: str | int) -> Later:
        """A part of it; None where there is none."""

        def read(values: Values) -> Any:
            value = self.look_up(values)
            for part in path:
                try:
                    value = value[part]
                except (KeyError, IndexError, TypeError):
                    return None
            return value

        return Later(read)

    def changed(self, change: Callable[[Any], Any]) -> Later:
        """What a function makes of it; it gets the value itself and must not change it."""
        return Later(lambda values: change(self.look_up(values)))

    def merged(self, changes: Json) -> Later:
        """The object with other values here and there; None takes a key away."""
        return Later(lambda values: merge(self.look_up(values), resolve(changes, values)))

    @property
    def version(self) -> Later:
        """The resourceVersion."""
        return self.at("metadata", "resourceVersion")

    @property
    def uid(self) -> Later:
        """The uid."""
        return self.at("metadata", "uid")


@dataclass(frozen=True)
class Step:
    """One request, or one watch until its end."""

    number: int
    label: str
    method: str
    path: Any
    params: Mapping[str, Any]
    body: Any = None
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    is_watch: bool = False
    until: Enough | None = None
    compacts: bool = False


class Script:
    """Records steps; the shorthand ``configmaps/a`` means one of its own namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.namespace = f"c-{name.replace('_', '-')}"
        self.steps: list[Step] = []
        self.is_lively = name in _lively

    def post(self, label: str, path: Any, body: Any = None, **more: Any) -> Later:
        return self._record(label, "POST", path, body, **more)

    def get(self, label: str, path: Any, **more: Any) -> Later:
        return self._record(label, "GET", path, **more)

    def put(self, label: str, path: Any, body: Any, **more: Any) -> Later:
        return self._record(label, "PUT", path, body, **more)

    def patch(
        self, label: str, path: Any, body: Any, content_type: str = MERGE, **more: Any
    ) -> Later:
        return self._record(label, "PATCH", path, body, content_type=content_type, **more)

    def delete(self, label: str, path: Any, body: Any = None, **more: Any) -> Later:
        return self._record(label, "DELETE", path, body, **more)

    def watch(self, label: str, path: Any, **params: Any) -> Later:
        """What a watch tells until its ``timeoutSeconds``, one if it names none."""
        params = {"watch": "true", "timeoutSeconds": "1"} | params
        return self._record(label, "GET", path, is_watch=True, **params)

    def on(self, path: str) -> On:
        """The same verbs, for one path."""
        return On(self, path)

    def compact(self) -> None:
        """Both servers forget what was before now. Scripts that do this run after all others."""
        self._record("compaction", "", "/", compacts=True)

    @property
    def compacts(self) -> bool:
        """Whether it removes the history for all scripts."""
        return any(step.compacts for step in self.steps)

    def name_bases(self) -> list[str]:
        """Every ``generateName`` that is sent."""
        bodies = (step.body for step in self.steps if isinstance(step.body, dict))
        found = ((body.get("metadata") or {}).get("generateName") for body in bodies)
        return [base for base in found if isinstance(base, str)]

    def url(self, path: str) -> str:
        """The path on the server."""
        if path.startswith("/"):
            return path
        resource = path.partition("/")[0]
        prefix = PREFIXES.get(resource, "/api/v1")
        if resource in CLUSTER:
            return f"{prefix}/{path}"
        return f"{prefix}/namespaces/{self.namespace}/{path}"

    def _record(self, label: str, method: str, path: Any, body: Any = None, **more: Any) -> Later:
        """``accept`` is the header of that name; what is no field of a step is a parameter."""
        fields = ("content_type", "is_watch", "until", "compacts")
        given = {name: more.pop(name) for name in fields if name in more}
        if "accept" in more:
            given["headers"] = {"Accept": more.pop("accept")}
        number = len(self.steps)
        where = self.url(path) if isinstance(path, str) else path
        self.steps.append(Step(number, label, method, where, more, body, **given))
        return Later(lambda values: values[number])


@dataclass(frozen=True)
class On:
    """The verbs of a script for one path."""

    script: Script
    path: str

    def __getattr__(self, verb: str) -> Callable[..., Later]:
        record = getattr(self.script, verb)
        return lambda label, *body, **more: record(label, self.path, *body, **more)


Recorder = Callable[[Script], None]
_recorders: dict[str, Recorder] = {}
_lively: set[str] = set()


def script(record: Recorder) -> Recorder:
    """Make a script of a function; its name is the function's."""
    name = record.__name__
    assert name not in _recorders, f"two scripts are called {name}"
    _recorders[name] = record
    return record


def lively(record: Recorder) -> Recorder:
    """A script for servers with running controllers."""
    _lively.add(record.__name__)
    return script(record)


def recorded() -> Iterator[Script]:
    """All scripts of the modules that were imported."""
    for name, record in _recorders.items():
        made = Script(name)
        record(made)
        yield made


def resolve(value: Any, values: Values) -> Any:
    """The value with everything looked up that is a Later."""
    if isinstance(value, Later):
        return value.look_up(values)
    if isinstance(value, Mapping):
        return {key: resolve(one, values) for key, one in value.items()}
    if isinstance(value, list):
        return [resolve(one, values) for one in value]
    return value


def merge(target: Any, changes: Any) -> Any:
    """RFC 7386, written once more so that the suite does not judge code by itself."""
    if not isinstance(changes, dict):
        return changes
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged
