"""Where the figures come from: the running dispatcher, or the objects of the cluster.

The dispatcher is asked first, at its visibility API or its HTTP port (--server). Figures
are computed here if there is no answer, and with --config or --set, which ask for those of another
configuration. The code for that is imported on use: --server needs no client library.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcad.api.list_page import PageQuery
from mcad.client.figures.figures import Feed, Figures
from mcad.client.figures.of_server import server_at
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
from mcad.client.session import Environment, Session
from mcad.kube.kinds import APPWRAPPER_REPORTS, QUOTA_REPORTS
from mcad.kube.resource import Resource

if TYPE_CHECKING:
    from mcad.client.figures.of_visibility import VisibilityFigures

Json = dict[str, Any]


async def figures_in(
    session: Session,
    source: Source,
    namespace: str | None,
    *,
    own: str | None = None,
    wants: Resource = APPWRAPPER_REPORTS,
) -> Figures:
    """The figures of ``namespace`` (None: all), or of ``own`` if the caller may see only that.

    ``wants`` is the kind of report that is needed; it decides which rights are needed.
    """
    found = await _reports(session, source, namespace, own, wants)
    return found if found is not None else await count_in(session, source, namespace or own)


async def _reports(
    session: Session, source: Source, namespace: str | None, own: str | None, wants: Resource
) -> VisibilityFigures | None:
    """Figures of the visibility API; None if there are none."""
    if source.is_what_if:
        return None
    from mcad.client.figures import of_visibility  # noqa: PLC0415 - see above

    return await of_visibility.find(session.client, wants, namespace, own)


async def count_in(session: Session, source: Source, namespace: str | None) -> Figures:
    """Figures computed from the objects of the cluster.

    A caller that may not list the whole cluster gets figures of ``namespace``, if given.
    """
    from mcad.client.config import as_dispatched, load_config  # noqa: PLC0415 - see above
    from mcad.client.figures.listed import compute_visible_figures  # noqa: PLC0415

    config = await as_dispatched(session.client, load_config(source.settings))
    return await compute_visible_figures(session.client, config, namespace)


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

    With --server no session is opened, and the kubeconfig is read only for its namespace.
    ``may_narrow``: fall back to the namespace of the context if the caller may not see all.
    """
    if source.server:
        yield server_at(source.server), asked_namespace(environment, source, scope)
        return
    async with environment.connect(source.target, watches=False) as session:
        namespace = scope.choose(session.namespace)
        own = session.namespace if may_narrow else None
        figures = await figures_in(session, source, namespace, own=own, wants=wants)
        yield figures, figures.only or namespace


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
) -> AsyncIterator[tuple[Feed, str | None]]:
    """Figures that follow the cluster, and the namespace to show, as ``open_figures`` has them.

    ``page_size``: polls read the first so many rows with start time estimates, instead of all rows
    (0) without. ``pace``: of polls.
    """

    def polling(server: PolledSource, namespace: str | None) -> PollingFeed:
        poll: Poll = poll_trees if wants == QUOTA_REPORTS else poll_rows
        if page_size:
            poll = polls_page(PageQuery(only=namespace or "", size=page_size))
        return PollingFeed(server, environment.clock, poll, pace)

    if source.server:
        namespace = asked_namespace(environment, source, scope)
        yield polling(server_at(source.server, pace.max_age_s), namespace), namespace
        return
    from mcad.client.config import as_dispatched, load_config  # noqa: PLC0415 - see above
    from mcad.client.figures.watched import live  # noqa: PLC0415

    config = load_config(source.settings)
    async with environment.connect(source.target) as session:
        namespace = scope.choose(session.namespace)
        own = session.namespace if may_narrow else None
        reports = await _reports(session, source, namespace, own, wants)
        if reports is not None:
            reports = replace(reports, max_age_s=pace.max_age_s)
            namespace = reports.only or namespace
            yield polling(reports, namespace), namespace
            return
        config = await as_dispatched(session.client, config)
        async with live(session.client, config, namespace or own) as watched:
            yield watched, namespace


def asked_namespace(environment: Environment, source: Source, scope: Scope) -> str | None:
    """The namespace to show (None: all), without a session."""
    if scope.all_namespaces or scope.namespace:
        return scope.choose("")
    return environment.namespace(source.target)
