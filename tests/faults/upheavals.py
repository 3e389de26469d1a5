"""What is done to an AppWrapper and around it, as a whole, just before a write that is about it."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from enum import Enum
from random import Random
from typing import Any

from msgspec.structs import replace

from mcad.kube.kinds import APPWRAPPERS
from mcad.kube.port import Request
from mcad.kube.resource import Resource
from mcad.sim.registry import Registry
from mcad.sim.serving.server import SimApi
from mcad.sim.store import Change
from tests.faults.forging import forge

Json = dict[str, Any]
STORAGE = (APPWRAPPERS.group, APPWRAPPERS.plural)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ELSEWHERE = "elsewhere"
"""A namespace without AppWrappers."""
GUESTS = "guests"
"""A namespace that may end while AppWrappers are in it."""


class Upheaval(Enum):
    """What happens then."""

    FOREGROUND = "the AppWrapper is deleted in the foreground"
    FORCE_REPLACED = "the AppWrapper is deleted, and made anew as soon as its name is free"
    TERMINATED = "the namespace of the AppWrapper is deleted, if it is that of guests"
    FORGED_HERE = "an object in its namespace says that it is one of its items"
    FORGED_ELSEWHERE = "an object in another namespace says that it is one of its items"


class Upheavals:
    """Works on the objects themselves; ``occurred`` counts what came to bear."""

    def __init__(self, registry: Registry, occurred: Counter[str]) -> None:
        self._registry = registry
        self._occurred = occurred
        self._numbers = itertools.count()

    def befall(self, found: Json, upheaval: Upheaval) -> None:
        """Let it happen to this AppWrapper."""
        namespace = found["metadata"]["namespace"]
        match upheaval:
            case Upheaval.FOREGROUND:
                self._delete(found, "Foreground")
            case Upheaval.FORCE_REPLACED:
                self._replace(found)
            case Upheaval.TERMINATED:
                if namespace != GUESTS:
                    return
                self._send("DELETE", NAMESPACES.path(None, GUESTS))
            case Upheaval.FORGED_HERE:
                self._forge(found, namespace)
            case Upheaval.FORGED_ELSEWHERE:
                self._send("POST", NAMESPACES.path(None), {"metadata": {"name": ELSEWHERE}})
                self._forge(found, ELSEWHERE)
        phase = ((found.get("status") or {}).get("dispatch") or {}).get("phase", "waiting")
        self._occurred.update((upheaval.name, f"{upheaval.name} while {phase}"))

    def _replace(self, found: Json) -> None:
        """As ``kubectl replace --force`` does it, and faster."""
        meta, store = found["metadata"], self._registry.store
        version = "v1beta2" if "components" in found["spec"] else "v1beta1"
        resource = replace(APPWRAPPERS, version=version)
        kept = {key: meta[key] for key in ("name", "labels", "annotations") if key in meta}
        made = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": kept}
        path = resource.path(meta["namespace"])

        def gone(change: Change) -> None:
            if change.type == "DELETED" and change.obj["metadata"]["uid"] == meta["uid"]:
                unsubscribe()
                body = made | {"spec": found["spec"]}
                asyncio.get_running_loop().call_soon(self._send, "POST", path, body)

        unsubscribe = store.listen(STORAGE, gone)
        self._delete(found, "Background")

    def _forge(self, found: Json, namespace: str) -> None:
        number = next(self._numbers)
        rng = Random(f"{found['metadata']['name']} {number}")
        kind, obj = forge(rng, found, namespace, number)
        self._send("POST", kind.path(namespace), obj)

    def _delete(self, found: Json, propagation: str) -> None:
        path = APPWRAPPERS.path(found["metadata"]["namespace"], found["metadata"]["name"])
        self._send("DELETE", path, {"propagationPolicy": propagation})

    def _send(self, method: str, path: str, body: Json | None = None) -> None:
        """What is there already, or not any more, is no matter."""
        answer = SimApi(self._registry).answer(Request(method, path, body=body))
        assert answer.status in (200, 201, 202, 403, 404, 409), answer
