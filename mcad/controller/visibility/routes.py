"""The paths of the visibility API, and the rights they need; see ``application``."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from aiohttp import web
from msgspec.structs import replace

from mcad.api.wire import as_map, as_text, to_json
from mcad.controller.access import Access, Attributes
from mcad.controller.answers import BadQuestionError
from mcad.controller.http_server import asked_page, asked_question, asks_for_starts, json_answer
from mcad.controller.leader_figures import FiguresUnavailable, LeaderFigures
from mcad.controller.shared_answers import SharedAnswers, max_age_s
from mcad.controller.visibility import documents
from mcad.controller.visibility.documents import Problem
from mcad.controller.visibility.others import without_others
from mcad.kube.errors import KubeError
from mcad.kube.kinds import (
    APPWRAPPER_REPORTS,
    APPWRAPPERS,
    CAPACITY_REPORTS,
    CLUSTER_REPORT,
    QUOTA_REPORTS,
    WHAT_IFS,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcad.api.list_page import PageQuery
    from mcad.controller.access import Caller
    from mcad.controller.visibility.front_proxy import FrontProxy
    from mcad.kube.resource import Resource

Json = dict[str, Any]
_log = logging.getLogger(__name__)

ROOT = f"/apis/{APPWRAPPER_REPORTS.api_version}"
AT_ONCE = 2  # lists that are computed together: each one is a copy of the queue
EVERYWHERE = Attributes("list", APPWRAPPER_REPORTS)
QUOTA_NODE = Attributes("get", QUOTA_REPORTS, name=CLUSTER_REPORT, subresource="node")


def application(figures: LeaderFigures, access: Access, front_proxy: FrontProxy) -> web.Application:
    """Nothing is changed. Only the front proxy of the API server is answered.

    All paths except discovery need a right of the caller.
    """
    api = _Api(figures, access, front_proxy)
    app = web.Application(middlewares=[api.guard])  # a body has 1 MiB at most
    reports, capacity, quota = (
        f"{ROOT}/{kind.plural}" for kind in (APPWRAPPER_REPORTS, CAPACITY_REPORTS, QUOTA_REPORTS)
    )
    in_namespace = f"{ROOT}/namespaces/{{namespace}}/{APPWRAPPER_REPORTS.plural}"
    app.add_routes(
        [
            web.get(ROOT, api.discovery),
            web.get(reports, api.rows),
            web.get(in_namespace, api.rows),
            web.get(in_namespace + "/{name}", api.detail),
            web.get(in_namespace + "/{name}/why", api.why),
            web.post(f"{ROOT}/namespaces/{{namespace}}/{WHAT_IFS.plural}", api.what_if),
            web.get(capacity, api.capacity),
            web.get(capacity + "/{name}", api.capacity),
            web.get(quota, api.quota),
            web.get(quota + "/{name}", api.quota),
            web.get(quota + "/{name}/node", api.quota_node),
        ]
    )
    return app


class _Api:
    def __init__(self, figures: LeaderFigures, access: Access, front_proxy: FrontProxy) -> None:
        self._figures = figures
        self._access = access
        self._front_proxy = front_proxy
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._shared: SharedAnswers[bytes] = SharedAnswers()

    @web.middleware
    async def guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Answer every error with a Status."""
        try:
            return await handler(request)
        except Problem as refused:
            problem = refused
        except BadQuestionError as error:
            problem = Problem(422, "Invalid", error.message, causes=_causes(error))
        except web.HTTPException as error:
            reason = {404: "NotFound", 405: "MethodNotAllowed"}.get(error.status, "BadRequest")
            problem = Problem(error.status, reason, f"{error.reason}: {request.path[:256]}")
        except FiguresUnavailable as error:
            problem = Problem(503, "ServiceUnavailable", str(error))
        except KubeError as error:
            _log.warning("cannot ask what a caller may see error=%s", error)
            problem = Problem(503, "ServiceUnavailable", f"the access review failed: {error}")
        return web.json_response(problem.document(), status=problem.code)

    async def discovery(self, request: web.Request) -> web.Response:
        """The resources of the group; needs no right."""
        self._caller(request)
        return web.json_response(documents.discovery())

    async def rows(self, request: web.Request) -> web.Response:
        """AppWrapperReports.

        ``?waiting=true`` leaves only the queue, ``?starts=true`` adds start time estimates; with
        ``?maxAge=10`` an answer that is at most 10 seconds old will do. ``?pageSize=100&page=1``
        and its filters are those of the port; the filter ``leaf`` needs the right to ``get``
        ``quotareports/node``.
        """
        namespace = request.match_info.get("namespace")
        await self._authorize(request, Attributes("list", APPWRAPPER_REPORTS, namespace))
        as_table = _wants_table(request)
        render = documents.table_row if as_table else documents.report
        if request.method == "HEAD":
            return web.Response(content_type="application/json")
        query = asked_page(request) if not as_table else None
        if query is not None:
            return await self._page(
                request, query if namespace is None else replace(query, only=namespace)
            )
        waiting_only, starts = request.query.get("waiting") == "true", asks_for_starts(request)

        async def make() -> bytes:
            async with self._turns:
                texts = await self._figures.rows(
                    lambda row: to_json(render(row)),
                    waiting_only=waiting_only,
                    with_starts=starts,
                    namespace=namespace,
                )
            if as_table:
                return documents.table(texts)
            return documents.listed(APPWRAPPER_REPORTS, texts)

        asked_for = (namespace, as_table, waiting_only, starts)
        return json_answer(await self._shared.get(asked_for, max_age_s(request), make))

    async def _page(self, request: web.Request, query: PageQuery) -> web.Response:
        if query.leaf:
            await self._authorize(request, QUOTA_NODE)
        async with self._turns:
            texts, facts = await self._figures.page(
                lambda row: to_json(documents.report(row)),
                query,
                with_starts=asks_for_starts(request),
                max_age_s=max_age_s(request),
            )
        return json_answer(documents.listed(APPWRAPPER_REPORTS, texts, facts))

    async def detail(self, request: web.Request) -> web.Response:
        """One AppWrapperReport in full.

        AppWrappers of other namespaces are named if the caller may list them.
        """
        async with self._turns:
            view = await self._one(request, "", self._figures.detail)
        if _wants_table(request):
            return json_answer(documents.table([to_json(documents.table_row(view))]))
        return json_answer(to_json(documents.report(view)))

    async def why(self, request: web.Request) -> web.Response:
        """The same with what would start it now."""
        return json_answer(
            to_json(documents.report(await self._one(request, "why", self._figures.why)))
        )

    async def _one(
        self,
        request: web.Request,
        subresource: str,
        read: Callable[[str, str], Awaitable[Json | None]],
    ) -> Json:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        what = Attributes("get", APPWRAPPER_REPORTS, namespace, name, subresource)
        caller = await self._authorize(request, what)
        view = await read(namespace, name)
        if view is None:
            raise _absent(APPWRAPPER_REPORTS.plural, name)
        return await self._visible(caller, view, namespace)

    async def _visible(self, caller: Caller, view: Json, namespace: str) -> Json:
        """What the caller may see of an answer."""
        if await self._access.allows(caller, EVERYWHERE):
            return view
        seen: Json = without_others(view, namespace, self._figures.titles())
        return seen

    async def what_if(self, request: web.Request) -> web.Response:
        """A WhatIf: what would differ with the changes of its spec.

        AppWrappers are created where the caller may create them. Other changes are for callers that
        may list the reports of all namespaces.
        """
        namespace = request.match_info["namespace"]
        caller = await self._authorize(request, Attributes("create", WHAT_IFS, namespace))
        question = await asked_question(request)
        if question.is_of_the_cluster:
            await self._authorize(request, EVERYWHERE)
        spaces = {
            as_text(as_map(one.get("metadata")).get("namespace")) for one in question.manifests
        }
        for space in spaces:
            await self._authorize(request, Attributes("create", APPWRAPPERS, space))
        view = await self._figures.what_if(question, namespace)
        view = await self._visible(caller, view, namespace)
        return json_answer(to_json(documents.what_if(view)))

    async def capacity(self, request: web.Request) -> web.Response:
        """The CapacityReport: capacity per node and in total."""
        await self._authorize_cluster(request, CAPACITY_REPORTS)
        return _only_report(request, CAPACITY_REPORTS, await self._figures.capacity())

    async def quota(self, request: web.Request) -> web.Response:
        """The QuotaReport: all quota trees."""
        await self._authorize_cluster(request, QUOTA_REPORTS)
        return _only_report(request, QUOTA_REPORTS, await self._figures.quota())

    async def quota_node(self, request: web.Request) -> web.Response:
        """``?tree=NAME&node=NAME``: one quota node with its holders and its queue."""
        await self._authorize_cluster(request, QUOTA_REPORTS, "node")
        tree, node = request.query.get("tree", ""), request.query.get("node", "")
        view = await self._figures.quota_node(tree, node)
        if view is None:
            raise _absent(f"{QUOTA_REPORTS.plural}/node", f"{tree}/{node}")
        return json_answer(documents.cluster_report(QUOTA_REPORTS, to_json(view)))

    async def _authorize_cluster(
        self, request: web.Request, kind: Resource, subresource: str = ""
    ) -> None:
        name = request.match_info.get("name", "")
        verb = "get" if name else "list"
        await self._authorize(request, Attributes(verb, kind, name=name, subresource=subresource))
        if name not in ("", CLUSTER_REPORT):
            raise _absent(kind.plural, name)

    async def _authorize(self, request: web.Request, what: Attributes) -> Caller:
        caller = self._caller(request)
        if request.query.get("watch") in ("true", "1"):
            said = "reports are not watched: list them again"
            raise Problem(405, "MethodNotAllowed", said)
        if not await self._access.allows(caller, what):
            where = f' in the namespace "{what.namespace}"' if what.namespace else ""
            resource = "/".join(filter(None, (what.resource.plural, what.subresource)))
            said = f'User "{caller.user}" cannot {what.verb} resource "{resource}"{where}'
            raise Problem(403, "Forbidden", said)
        return caller

    def _caller(self, request: web.Request) -> Caller:
        transport = request.transport
        shown = transport.get_extra_info("peercert") if transport is not None else None
        caller = self._front_proxy.caller(request.headers.items())
        if not self._front_proxy.is_shown(shown) or caller is None:
            said = "only the API server's front proxy is answered: ask the API server"
            raise Problem(401, "Unauthorized", said)
        return caller


def _wants_table(request: web.Request) -> bool:
    return "as=Table" in request.headers.get("Accept", "")


def _absent(plural: str, name: str) -> Problem:
    group = APPWRAPPER_REPORTS.group
    return Problem(404, "NotFound", f'{plural}.{group} "{name}" not found', name)


def _only_report(request: web.Request, kind: Resource, status: bytes) -> web.Response:
    text = documents.cluster_report(kind, status)
    return json_answer(text if "name" in request.match_info else documents.listed(kind, [text]))


def _causes(error: BadQuestionError) -> list[Json]:
    """What is wrong with a question: the faults of its manifests, or a name that is not there."""
    if error.missing:
        return [{"reason": "FieldValueNotFound", "field": "spec", "message": error.message}]
    return [
        {"field": f"spec.manifests[{number}]", "message": text} for number, text in error.faults
    ]
