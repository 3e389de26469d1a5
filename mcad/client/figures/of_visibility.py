"""Figures of the running dispatcher, from its visibility API with the rights of the caller.

That API is on unless the chart says otherwise (docs/operate/visibility.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http.client import responses
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcad.api.list_page import PageQuery
from mcad.api.questions import Question
from mcad.api.wire import as_list, as_map, as_text
from mcad.client.errors import McadError, UnavailableError, clause, explain
from mcad.client.figures.figures import TRIAL_S, rejected
from mcad.client.figures.pauses import read_notes
from mcad.client.figures.polled import ListPage, read_page
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError, KubeError, api_error
from mcad.kube.kinds import (
    APPWRAPPER_REPORTS,
    APPWRAPPERS,
    CAPACITY_REPORTS,
    CLUSTER_REPORT,
    QUOTA_REPORTS,
    WHAT_IFS,
)
from mcad.kube.port import NOTHING, Request
from mcad.kube.resource import Resource

Json = dict[str, Any]

PROBE_S = 2.5  # patience with the API

NOT_FOUND = "FieldValueNotFound"
"""The reason of a cause in Kubernetes."""

_FAULT = re.compile(r"spec\.manifests\[(\d+)\]")


class VisibilityFigures(Struct, frozen=True):
    """The figures of a namespace, or of the cluster if that is None.

    Implements ``mcad.client.figures.polled.PolledSource``.
    """

    client: Client
    namespace: str | None
    only: str | None = None
    notes: tuple[str, ...] = ()
    max_age_s: int = 0  # of lists of AppWrappers

    is_stored = False

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

    async def why(self, namespace: str, name: str) -> Json | None:
        """The same with what would start it now."""
        path = APPWRAPPER_REPORTS.path(namespace, name, "why")
        answer = await self._try(Request("GET", path))
        return _status(answer) if answer is not None else None

    async def what_if(self, question: Question, own: str) -> Json:
        """What would differ; names without a namespace are of ``own``."""
        about = {"apiVersion": WHAT_IFS.api_version, "kind": WHAT_IFS.kind}
        body = about | {"spec": question.document}
        answer = await self._try(Request("POST", WHAT_IFS.path(own), body=body))
        if answer is None:
            raise _strange("no answer to a WhatIf")
        return _status(answer)

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

    async def _try(self, request: Request) -> Json | None:
        """The answer to a question that takes copies of the dispatcher, asked once; None if the
        dispatcher does not know what it is about."""
        try:
            answer = await self.client.api.request(request, TRIAL_S)
        except KubeError as error:
            raise UnavailableError(no_answer(0, str(error))) from error
        if answer.status < 400:
            return answer.json()
        refused = api_error(answer.status, answer.body)
        if refused.not_found and refused.details.get("name"):
            return None
        if refused.status == 422:
            faults, missing = _faults(refused.details), _is_missing(refused.details)
            raise rejected(refused.message, faults, missing=missing)
        said = "" if refused.transient else clause(refused.message)
        raise UnavailableError(no_answer(refused.status, said))


def _faults(details: Json) -> tuple[tuple[int, str], ...]:
    """The faults of manifests, by number."""
    return tuple(
        (int(number[1]), as_text(cause.get("message")))
        for cause in map(as_map, as_list(details.get("causes")))
        if (number := _FAULT.fullmatch(as_text(cause.get("field"))))
    )


def _is_missing(details: Json) -> bool:
    """Whether the question names an object that does not exist."""
    causes = map(as_map, as_list(details.get("causes")))
    return any(one.get("reason") == NOT_FOUND for one in causes)


async def probe(client: Client, kind: Resource, namespace: str | None) -> str:
    """Why the caller cannot ask for these reports and what to do, "" if nothing is in the way."""
    try:
        answer = await client.api.request(Request("HEAD", kind.path(namespace)), PROBE_S)
    except KubeError as error:
        return no_answer(0, str(error))
    if answer.status == 200:
        return ""
    where = f"in namespace {namespace}" if namespace else "of all namespaces"
    where = where if kind.namespaced else "of this cluster"
    said = f"you may not list {kind.plural} {where}" if answer.status == 403 else ""
    return no_answer(answer.status, said)


def no_answer(status: int, said: str) -> str:
    """Why the dispatcher does not answer, and what to do. ``status`` is that of the API server, 0
    without an answer."""
    if status == 403:
        return f"the dispatcher cannot be asked: {said}; ask an administrator for this right"
    if status == 404:
        return (
            "the dispatcher cannot be asked: this cluster has no visibility API; enable "
            "`visibility` of the chart, or ask the dispatcher's port with --server URL"
        )
    said = said or f"{status} {responses.get(status, '')}".rstrip()
    return (
        f"the dispatcher does not answer at its visibility API ({said}); see `mcad debug check` "
        "whether one runs"
    )


def _status(report: Any) -> Json:
    status = report.get("status") if isinstance(report, dict) else None
    if not isinstance(status, dict):
        raise _strange("a report without figures")
    return status


def _strange(what: str) -> McadError:
    return McadError(f"the visibility API is not an mcad dispatcher ({what})")
