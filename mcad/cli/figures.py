"""Where the figures come from: a snapshot of the cluster, or the running dispatcher (--server)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import click

from mcad.cli.config import load_config
from mcad.cli.live import live
from mcad.cli.options import SETTINGS_OPTIONS, TARGET_OPTIONS, Scope, Settings, record
from mcad.cli.server import Polling, server_at
from mcad.cli.session import Environment, Session, Target
from mcad.cli.snapshot import take_snapshot

Json = dict[str, Any]


class Figures(Protocol):
    """The figures that commands print, as the JSON of ``mcad.controller.views``."""

    def labels(self, uid: str) -> Mapping[str, str]:
        """The labels of an AppWrapper; a server does not tell any."""
        ...

    async def rows(self, *, waiting_only: bool) -> list[Json]:
        """One row per AppWrapper, those in line first and in order."""
        ...

    async def capacity(self) -> Json:
        """Per node and in total."""
        ...

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full, None if the dispatcher does not know it."""
        ...


class Feed(Protocol):
    """Figures again and again, each time that something has changed."""

    async def next(self) -> Figures:
        """The figures after the next change; the first ones at once."""
        ...

    @property
    def trouble(self) -> str:
        """Why the figures may be old at present, empty if they are not."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """Whom to ask, and with which configuration to count."""

    kubeconfig: str | None = None
    context: str | None = None
    config: str | None = None
    assignments: tuple[str, ...] = ()
    server: str | None = None

    @property
    def target(self) -> Target:
        """Which API server."""
        return Target(self.kubeconfig, self.context)

    @property
    def settings(self) -> Settings:
        """The dispatcher's configuration."""
        return Settings(self.config, self.assignments)


source_options = record(
    "source",
    Source,
    *TARGET_OPTIONS,
    *SETTINGS_OPTIONS,
    click.option(
        "--server",
        metavar="URL",
        help="Ask the HTTP port of the running dispatcher instead of counting anew.",
    ),
)


async def figures_of(source: Source, session: Session) -> Figures:
    """The figures, with a session to count them in if no server is named."""
    if source.server:
        return server_at(source.server)
    return await take_snapshot(session.client, load_config(source.settings))


@asynccontextmanager
async def look(
    environment: Environment, source: Source, scope: Scope
) -> AsyncIterator[tuple[Figures, str | None]]:
    """The figures, and the namespace that is meant (None: all).

    With --server no session is opened; the kubeconfig is read only if the namespace is in there.
    """
    if source.server:
        settled = scope.all_namespaces or scope.namespace
        own = "" if settled else await environment.namespace(source.target)
        yield server_at(source.server), scope.choose(own)
        return
    async with environment.connect(source.target) as session:
        yield await figures_of(source, session), scope.choose(session.namespace)


@asynccontextmanager
async def follow(
    environment: Environment, source: Source, scope: Scope
) -> AsyncIterator[tuple[Feed, str | None]]:
    """Figures that follow the cluster, and the namespace that is meant (None: all)."""
    if source.server:
        settled = scope.all_namespaces or scope.namespace
        own = "" if settled else await environment.namespace(source.target)
        yield Polling(server_at(source.server), environment.clock), scope.choose(own)
        return
    config = load_config(source.settings)
    async with (
        environment.connect(source.target) as session,
        live(session.client, config) as feed,
    ):
        yield feed, scope.choose(session.namespace)
