"""Which resource serves a kind: discovery, kept in memory and asked for seldom.

Users choose the kinds that are looked up, so a look-up must never be a way to make us hammer
the API server: whatever is asked, there is one fetch at a time and one per interval. It writes
no files.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcad.kube.client import READ_ATTEMPT_S, Client
from mcad.kube.errors import ApiError, KubeError, RequestTimeout
from mcad.kube.port import Request
from mcad.kube.resource import Resource
from mcad.kube.types import Json

FRESH_S = 600.0  # how long what is known is believed
RETRY_S = 60.0  # how long what is unknown, or could not be asked, is believed to be so
INVALIDATED_S = 0.5  # the same after ``invalidate``, for callers with a pace of their own
PATIENCE_S_MAX = 120.0  # of one attempt; the API server itself gives up after 60 s

_AGGREGATED = {
    "Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
}

Kinds = dict[str, Resource]  # of one group and version


@dataclass(slots=True)
class _Catalogue:
    """What one fetch found, by apiVersion; ``broken`` names those that did not answer."""

    served: dict[str, Kinds] = field(default_factory=dict)
    broken: dict[str, KubeError] = field(default_factory=dict)


class Discovery:
    """Kinds of one API server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._catalogue = _Catalogue()
        self._fetched_at: float | None = None
        self._attempted_at: float | None = None
        self._error: KubeError | None = None
        self._invalidated = False
        self._flight: asyncio.Task[None] | None = None
        self.patience_s = READ_ATTEMPT_S  # of one attempt; doubled when an answer was too slow

    async def find(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind, or None if the server does not serve it.

        Raises ``KubeError`` when that is unknown: nothing answered so far, or the API group
        is served by an aggregated API server that does not answer.
        """
        known = self._known(api_version, kind)
        if self._due(known=known is not None):
            await self._fetch_once()
            known = self._known(api_version, kind)
        if known is None:
            error = self._error or self._catalogue.broken.get(api_version)
            if error is not None:
                raise error
        return known

    async def all_resources(self) -> list[Resource]:
        """Everything that is served, preferred versions first; raises ``KubeError``.

        Groups that did not answer are those that they were before.
        """
        # A kind that was added is not missing from anything here, so only we can learn of it.
        whole = not self._catalogue.broken and not self._invalidated
        if self._due(known=self._fetched_at is not None and whole):
            await self._fetch_once()
        if self._error is not None and self._fetched_at is None:
            raise self._error
        return [one for kinds in self._catalogue.served.values() for one in kinds.values()]

    def invalidate(self) -> None:
        """A CRD changed: what is unknown may be asked for again soon."""
        self._invalidated = True

    async def aclose(self) -> None:
        """Give up a fetch under way."""
        if self._flight is not None:
            self._flight.cancel()
            await asyncio.gather(self._flight, return_exceptions=True)

    def _known(self, api_version: str, kind: str) -> Resource | None:
        return self._catalogue.served.get(api_version, {}).get(kind)

    def _due(self, *, known: bool) -> bool:
        now = self._client.clock.monotonic()
        pause = INVALIDATED_S if self._invalidated else RETRY_S
        if self._attempted_at is not None and now - self._attempted_at < pause:
            # Only a fetch under way is worth waiting for.
            return self._flight is not None and not known
        return not known or self._fetched_at is None or now - self._fetched_at >= FRESH_S

    async def _fetch_once(self) -> None:
        # The shield keeps the fetch alive for the others when one that waits gives up.
        if self._flight is None:
            self._attempted_at = self._client.clock.monotonic()
            self._invalidated = False
            self._flight = asyncio.ensure_future(self._fetch())
            self._flight.add_done_callback(self._landed)
        await asyncio.shield(self._flight)

    def _landed(self, _flight: "asyncio.Task[None]") -> None:
        self._flight = None

    async def _fetch(self) -> None:
        """Replace what is known; on failure keep it and remember the error. Never raises."""
        catalogue = _Catalogue()
        try:
            await self._add(catalogue, "/api")
            await self._add(catalogue, "/apis")
        except KubeError as error:
            self._error = error
            self._grow_patience(error)
            return
        for api_version, why in catalogue.broken.items():
            self._grow_patience(why)
            # What a silent group served before is a better guess than nothing.
            before = self._catalogue.served.get(api_version, {})
            catalogue.served[api_version] = before | catalogue.served.get(api_version, {})
        self._catalogue, self._error = catalogue, None
        self._fetched_at = self._client.clock.monotonic()

    def _grow_patience(self, error: KubeError) -> None:
        """Allow more time: otherwise a slow server would never be read."""
        if isinstance(error, RequestTimeout):
            self.patience_s = min(2 * self.patience_s, PATIENCE_S_MAX)

    async def _read(self, request: Request) -> Json:
        """One answer, within two attempts."""
        return await self._client.read(request, 2 * self.patience_s, self.patience_s)

    async def _add(self, catalogue: _Catalogue, root: str) -> None:
        answer = await self._read(Request("GET", root, headers=_AGGREGATED))
        if answer.get("kind") == "APIGroupDiscoveryList":
            _read_aggregated(answer, catalogue)
            return
        for api_version in _classic_versions(answer):
            path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            try:
                found = _classic_kinds(api_version, await self._read(Request("GET", path)))
            except KubeError as error:
                catalogue.broken[api_version] = error
            else:
                catalogue.served[api_version] = found


def _read_aggregated(answer: Json, catalogue: _Catalogue) -> None:
    for group_item in _dicts(answer.get("items")):
        metadata = group_item.get("metadata")
        group = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
        for version_item in _dicts(group_item.get("versions")):
            version = str(version_item.get("version") or "")
            api_version = f"{group}/{version}" if group else version
            kinds = catalogue.served.setdefault(api_version, {})
            for item in _dicts(version_item.get("resources")):
                response_kind = item.get("responseKind")
                kind = response_kind.get("kind") if isinstance(response_kind, dict) else None
                namespaced = item.get("scope") == "Namespaced"
                _add_kind(
                    kinds, (group, version), item.get("resource"), kind, namespaced=namespaced
                )
            if version_item.get("freshness") == "Stale":
                catalogue.broken[api_version] = _not_answering(api_version)


def _classic_versions(answer: Json) -> Iterator[str]:
    """The group versions named by an APIVersions or an APIGroupList."""
    yield from (item for item in answer.get("versions") or () if isinstance(item, str))
    for group in _dicts(answer.get("groups")):
        for version in _dicts(group.get("versions")):
            if version.get("groupVersion"):
                yield str(version["groupVersion"])


def _classic_kinds(api_version: str, answer: Json) -> Kinds:
    group, _, version = api_version.rpartition("/")
    kinds: Kinds = {}
    for item in _dicts(answer.get("resources")):
        namespaced = item.get("namespaced") is True
        _add_kind(
            kinds, (group, version), item.get("name"), item.get("kind"), namespaced=namespaced
        )
    return kinds


def _add_kind(
    kinds: Kinds, version: tuple[str, str], plural: object, kind: object, *, namespaced: bool
) -> None:
    """Keep the first resource of a kind; subresources (``pods/eviction``) are not objects."""
    if isinstance(plural, str) and isinstance(kind, str) and kind and "/" not in plural:
        kinds.setdefault(kind, Resource(*version, plural, kind, namespaced))


def _dicts(value: object) -> Iterator[Json]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def _not_answering(api_version: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", f"the API server behind {api_version} is down")
