"""Where figures come from: the running dispatcher, or what is stored if it cannot be asked.

The dispatcher is asked at its visibility API with the rights of the caller, or at its HTTP port
(--server), for which no session is opened.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcad.api.list_page import PageQuery
from mcad.client.errors import McadError
from mcad.client.figures.figures import Figures
from mcad.client.figures.of_visibility import VisibilityFigures, probe
from mcad.client.figures.pace import LIVELY, Pace
from mcad.client.figures.polled import (
    Poll,
    PolledSource,
    PollingFeed,
    poll_rows,
    poll_trees,
    polls_page,
)
from mcad.client.scope import Scope, Source
from mcad.client.session import Environment, knock
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import APPWRAPPER_REPORTS, APPWRAPPERS, QUOTA_REPORTS
from mcad.kube.resource import Resource

if TYPE_CHECKING:
    from mcad.client.figures.of_server import ServerFigures


async def figures_in(
    client: Client,
    namespace: str | None,
    *,
    own: str | None = None,
    wants: Resource = APPWRAPPER_REPORTS,
    max_age_s: int = 0,
) -> PolledSource:
    """The figures of ``namespace`` (None: all), or of ``own`` if the caller may see only that.

    ``wants`` is the kind of report that is needed; it decides which rights are needed.
    ``max_age_s`` is that of a ``Pace``.
    """

    async def find() -> PolledSource:
        reason = await probe(client, wants, namespace)
        if not reason:
            return await VisibilityFigures(client, namespace, max_age_s=max_age_s).renewed()
        await knock(client.api)  # or no server answers at all
        only = None
        if namespace is None and own is not None and wants.namespaced:
            if not await probe(client, wants, own):
                found = VisibilityFigures(client, own, only=own, max_age_s=max_age_s)
                return await found.renewed()
            only = None if await _may_list_all(client) else own
        from mcad.client.figures.stored import StoredFigures  # noqa: PLC0415 - rarely needed

        return StoredFigures(client, namespace, reason, find, only)

    return await find()


async def _may_list_all(client: Client) -> bool:
    pages = client.list_pages(APPWRAPPERS, Selection(metadata_only=True), limit=1)
    try:
        await anext(pages)
    except ApiError as error:
        return not error.forbidden
    except KubeError:
        return True  # what lists them says what is wrong
    finally:
        await pages.aclose()
    return True


@asynccontextmanager
async def open_figures(
    environment: Environment,
    source: Source,
    scope: Scope,
    *,
    may_narrow: bool = False,
    wants: Resource = APPWRAPPER_REPORTS,
) -> AsyncIterator[tuple[Figures, str | None]]:
    """The figures, and the namespace to show (None: all).

    With --server the kubeconfig is read only for its namespace. ``may_narrow``: fall back to the
    namespace of the context if the caller may not see all.
    """
    if source.server:
        yield at_server(source), asked_namespace(environment, source, scope)
        return
    async with environment.connect(source, watches=False, knocks=False) as session:
        namespace = scope.choose(session.namespace)
        own = session.namespace if may_narrow else None
        figures = await figures_in(session.client, namespace, own=own, wants=wants)
        yield figures, figures.only or namespace


@asynccontextmanager
async def open_questions(
    environment: Environment, source: Source, namespace: str | None
) -> AsyncIterator[tuple[Figures, str]]:
    """What questions about changes are asked, and the namespace of names without one. Only their
    answer says whether the dispatcher can be asked."""
    if source.server:
        yield at_server(source), namespace or environment.namespace(source)
        return
    async with environment.connect(source, watches=False) as session:
        own = namespace or session.namespace
        yield VisibilityFigures(session.client, own), own


@asynccontextmanager
async def follow_figures(  # noqa: PLR0913 - what a command can ask for, by name
    environment: Environment,
    source: Source,
    scope: Scope,
    *,
    may_narrow: bool = False,
    wants: Resource = APPWRAPPER_REPORTS,
    page_size: int = 0,
    pace: Pace = LIVELY,
) -> AsyncIterator[tuple[PollingFeed, str | None]]:
    """Figures that are polled, and the namespace to show, as ``open_figures`` has them.

    ``page_size``: polls read the first so many rows with start time estimates, instead of all rows
    (0) without. ``pace``: of polls.
    """

    def polling(figures: PolledSource, namespace: str | None) -> PollingFeed:
        poll: Poll = poll_trees if wants == QUOTA_REPORTS else poll_rows
        if page_size:
            poll = polls_page(PageQuery(only=namespace or "", size=page_size))
        return PollingFeed(figures, environment.clock, poll, pace)

    if source.server:
        namespace = asked_namespace(environment, source, scope)
        yield polling(at_server(source, pace.max_age_s), namespace), namespace
        return
    async with environment.connect(source, watches=False, knocks=False) as session:
        namespace = scope.choose(session.namespace)
        own = session.namespace if may_narrow else None
        figures = await figures_in(
            session.client, namespace, own=own, wants=wants, max_age_s=pace.max_age_s
        )
        yield polling(figures, figures.only or namespace), figures.only or namespace


def asked_namespace(environment: Environment, source: Source, scope: Scope) -> str | None:
    """The namespace to show (None: all), without a session."""
    if scope.all_namespaces or scope.namespace:
        return scope.choose("")
    return environment.namespace(source)


def at_server(source: Source, max_age_s: int = 0) -> ServerFigures:
    """The dispatcher at --server; raises ``McadError`` if the options exclude each other."""
    from mcad.client.figures.of_server import server_at  # noqa: PLC0415 - for --server only

    if source.as_user or source.as_groups:
        raise McadError("the port of the dispatcher knows no users: omit --as, or --server")
    found = server_at(source.server or "", max_age_s)
    return replace(found, request_timeout_s=source.request_timeout_s)
