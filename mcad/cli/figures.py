"""Where the figures come from: a snapshot of the cluster, or the running dispatcher (--server)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from mcad.cli.config import load_config
from mcad.cli.options import Option, Settings, Target, record, server_option
from mcad.cli.server import server_at
from mcad.cli.session import Environment, Session
from mcad.cli.snapshot import take_snapshot

Json = dict[str, Any]


class Figures(Protocol):
    """The figures that commands print, as the JSON of ``mcad.controller.views``."""

    async def rows(self, *, waiting_only: bool) -> list[Json]:
        """One row per AppWrapper, those in line first and in order."""
        ...

    async def capacity(self) -> Json:
        """Per node and in total."""
        ...

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full, None if the dispatcher does not know it."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """Whom to ask."""

    target: Target
    settings: Settings
    server: str | None = None


async def figures_of(source: Source, session: Session) -> Figures:
    """The figures, with a session to count them in if no server is named."""
    if source.server:
        return server_at(source.server)
    return await take_snapshot(session.client, load_config(source.settings))


@asynccontextmanager
async def look(environment: Environment, source: Source) -> AsyncIterator[tuple[Figures, str]]:
    """The figures and the namespace of the context; a server is asked without any session."""
    if source.server:
        yield server_at(source.server), await environment.namespace(source.target)
        return
    async with environment.connect(source.target) as session:
        yield await figures_of(source, session), session.namespace
