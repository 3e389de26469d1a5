"""Figures of the running dispatcher, from its visibility API with the rights of the caller.

That API is an option of the chart (docs/operate/visibility.md). If it is not served, does not
answer, or the caller has no right, the CLI computes figures itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from http.client import responses
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcad.api.list_page import PageQuery
from mcad.client.errors import McadError, explain, warn
from mcad.client.figures.pauses import read_notes
from mcad.client.figures.polled import ListPage, read_page
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import (
    APPWRAPPER_REPORTS,
    APPWRAPPERS,
    CAPACITY_REPORTS,
    CLUSTER_REPORT,
    QUOTA_REPORTS,
)
from mcad.kube.port import NOTHING, Request
from mcad.kube.resource import Resource

Json = dict[str, Any]

PROBE_S = 2.5  # patience with the API


class VisibilityFigures(Struct, frozen=True):
    """VisibilityFigures of a namespace, or of the cluster if that is None.

    Implements ``mcad.client.figures.figures.Figures``.
    """

    client: Client
    namespace: str | None
    only: str | None = None
    notes: tuple[str, ...] = ()
    max_age_s: int = 0  # of lists of AppWrappers

    async def renewed(self) -> VisibilityFigures:
        """The same with the notes of this moment."""
        return replace(self, notes=await read_notes(self.client))

    async def labelled(self, selector: str) -> frozenset[str]:
        """The uids of the AppWrappers with these labels."""
        selection = Selection(self.namespace, label_selector=selector, metadata_only=True)
        try:
            found, _ = await self.client.list_all(APPWRAPPERS, selection)
        except KubeError as error:
            raise explain(error) from error
        return frozenset(one["metadata"]["uid"] for one in found)

    async def rows(self, *, waiting_only: bool, with_starts: bool = False) -> list[Json]:
        """One row per AppWrapper, the queue first and in order."""
        wishes = {"waiting": "true"} if waiting_only else {}
        wishes |= {"starts": "true"} if with_starts else {}
        rows, _ = await self._list(wishes)
        return rows

    async def page(self, query: PageQuery) -> ListPage:
        """One page of the rows, with start time estimates."""
        rows, answer = await self._list({"starts": "true", **query.params})
        try:
            return read_page(rows, answer)
        except ValueError as error:
            raise _strange(str(error)) from error

    async def _list(self, wishes: dict[str, str]) -> tuple[list[Json], Json]:
        """The rows of an answer, and the answer."""
        wishes = wishes | ({"maxAge": str(self.max_age_s)} if self.max_age_s else {})
        answer = await self._ask(APPWRAPPER_REPORTS.path(self.namespace), wishes)
        rows = answer.get("items") if answer is not None else None
        if answer is None or not isinstance(rows, list):
            raise _strange("no list of AppWrappers")
        return [_status(row) for row in rows], answer

    async def capacity(self) -> Json | None:
        """Capacity per node and in total; None if the caller may not see it."""
        return await self._about_the_cluster(CAPACITY_REPORTS)

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full; None if it is not known."""
        answer = await self._ask(APPWRAPPER_REPORTS.path(namespace, name))
        return _status(answer) if answer is not None else None

    async def quota(self) -> Json:
        """All quota trees."""
        view = await self._about_the_cluster(QUOTA_REPORTS)
        if view is None:
            raise McadError("you may not see quotareports; ask an administrator for this right")
        return view

    async def quota_node(self, tree: str, node: str) -> Json | None:
        """One quota node with its holders and its queue; None if it does not exist."""
        path = QUOTA_REPORTS.path(None, CLUSTER_REPORT, "node")
        answer = await self._ask(path, {"tree": tree, "node": node})
        return _status(answer) if answer is not None else None

    async def _about_the_cluster(self, kind: Resource) -> Json | None:
        try:
            return _status(await self._read(Request("GET", kind.path(None, CLUSTER_REPORT))))
        except ApiError as error:
            if error.forbidden:
                return None
            raise explain(error) from error

    async def _ask(self, path: str, params: Mapping[str, str] = NOTHING) -> Json | None:
        """GET the object at a path; None if the dispatcher does not know it."""
        try:
            return await self._read(Request("GET", path, params))
        except ApiError as error:
            if error.not_found and error.details.get("name"):
                return None
            raise explain(error) from error

    async def _read(self, request: Request) -> Json:
        try:
            return await self.client.read(request)
        except ApiError:
            raise
        except KubeError as error:
            raise explain(error) from error


async def find(
    client: Client, kind: Resource, namespace: str | None, own: str | None
) -> VisibilityFigures | None:
    """The reports of ``namespace`` (None: all), or of ``own`` if the caller may not see those.

    None if the caller may see neither, and, with a warning, if no dispatcher answers. ``kind`` is
    the report that is needed.
    """
    status = await _probe(client, kind, namespace)
    if status == 403 and namespace is None and own is not None and kind.namespaced:
        status = await _probe(client, kind, own)
        figures = VisibilityFigures(client, own, only=own)
    else:
        figures = VisibilityFigures(client, namespace)
    return await figures.renewed() if status == 200 else None


async def _probe(client: Client, kind: Resource, namespace: str | None) -> int:
    """The HTTP status of a HEAD request; 0 without an answer."""
    try:
        answer = await client.api.request(Request("HEAD", kind.path(namespace)), PROBE_S)
    except KubeError as error:
        _warn(str(error))
        return 0
    if answer.status >= 500:
        _warn(f"{answer.status} {responses.get(answer.status, '')}".rstrip())
    return answer.status


def _warn(said: str) -> None:
    warn(
        f"the dispatcher does not answer at its visibility API ({said}): figures are computed here"
    )


def _status(report: Any) -> Json:
    status = report.get("status") if isinstance(report, dict) else None
    if not isinstance(status, dict):
        raise _strange("a report without figures")
    return status


def _strange(what: str) -> McadError:
    return McadError(f"the visibility API is not an mcad dispatcher ({what})")
