"""What callers may do: asked from the API server, and remembered for a moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from msgspec import Struct

from mcad.kube.client import Client
from mcad.kube.clock import Clock
from mcad.kube.resource import Resource

HOLDS_S = 10.0  # as of the API server's own delegated authorization
KEPT_MAX = 4096  # answers

K = TypeVar("K")
V = TypeVar("V")


class Caller(Struct, frozen=True):
    """The user that the API server has authenticated. ``extra`` are further attributes."""

    user: str
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Attributes(Struct, frozen=True):
    """The attributes of a request; ``namespace`` None means all."""

    verb: str
    resource: Resource
    namespace: str | None = None
    name: str = ""
    subresource: str = ""

    def reviewed(self) -> dict[str, object]:
        """As a SubjectAccessReview names them."""
        attributes = {
            "group": self.resource.group,
            "version": self.resource.version,
            "resource": self.resource.plural,
            "subresource": self.subresource,
            "namespace": self.namespace or "",
            "name": self.name,
            "verb": self.verb,
        }
        return {"resourceAttributes": attributes}


class PathAttributes(Struct, frozen=True):
    """A request for a path that is no resource of the API."""

    verb: str
    path: str

    def reviewed(self) -> dict[str, object]:
        """As a SubjectAccessReview names them."""
        return {"nonResourceAttributes": {"verb": self.verb, "path": self.path}}


class Remembered(Generic[K, V]):
    """Answers that hold for ``HOLDS_S``; failures are not remembered."""

    def __init__(self, clock: Clock, ask: Callable[[K], Awaitable[V]]) -> None:
        self._clock = clock
        self._ask = ask
        self._kept: dict[K, tuple[float, V]] = {}

    async def get(self, key: K) -> V:
        """The answer; asks unless one is remembered."""
        now = self._clock.monotonic()
        kept = self._kept.get(key)
        if kept is not None and now < kept[0]:
            return kept[1]
        answer = await self._ask(key)
        if len(self._kept) >= KEPT_MAX:
            self._kept.clear()
        self._kept[key] = (now + HOLDS_S, answer)
        return answer


class Access:
    """Whether a caller may do something."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reviews = Remembered(client.clock, self._review)

    async def allows(self, caller: Caller, what: Attributes | PathAttributes) -> bool:
        """Whether RBAC allows the request; raises ``KubeError``."""
        return await self._reviews.get((caller, what))

    async def _review(self, key: tuple[Caller, Attributes | PathAttributes]) -> bool:
        caller, what = key
        subject = {
            "user": caller.user,
            "groups": list(caller.groups),
            "extra": {name: list(values) for name, values in caller.extra},
        }
        return await self._client.subject_access_review(subject | what.reviewed())
