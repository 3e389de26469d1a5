"""The rights of callers: asked from the API server and cached for a moment.

The API server has authorized the request already. It is asked again because other components may
share the certificate of its front proxy, and because an answer names AppWrappers of other
namespaces only if the caller may list them.
"""

from __future__ import annotations

from msgspec import Struct

from mcad.controller.visibility.front_proxy import Caller
from mcad.kube.client import Client
from mcad.kube.resource import Resource

HOLDS_S = 10.0  # as of the API server's own delegated authorization
KEPT_MAX = 4096  # answers


class Attributes(Struct, frozen=True):
    """The attributes of a request; ``namespace`` None means all."""

    verb: str
    resource: Resource
    namespace: str | None = None
    name: str = ""
    subresource: str = ""


class Access:
    """Answers of the API server, cached for ``HOLDS_S``."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._kept: dict[tuple[Caller, Attributes], tuple[float, bool]] = {}

    async def allows(self, caller: Caller, what: Attributes) -> bool:
        """Whether RBAC allows the request; raises ``KubeError``."""
        now = self._client.clock.monotonic()
        until, allowed = self._kept.get((caller, what), (0.0, False))
        if now < until:
            return allowed
        allowed = await self._client.subject_access_review(_spec(caller, what))
        if len(self._kept) >= KEPT_MAX:
            self._kept.clear()
        self._kept[caller, what] = (now + HOLDS_S, allowed)
        return allowed


def _spec(caller: Caller, what: Attributes) -> dict[str, object]:
    return {
        "user": caller.user,
        "groups": list(caller.groups),
        "extra": {key: list(values) for key, values in caller.extra},
        "resourceAttributes": {
            "group": what.resource.group,
            "version": what.resource.version,
            "resource": what.resource.plural,
            "subresource": what.subresource,
            "namespace": what.namespace or "",
            "name": what.name,
            "verb": what.verb,
        },
    }
