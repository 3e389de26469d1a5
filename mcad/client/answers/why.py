"""Answers that the CLI computes from the objects of the cluster, with the caller's rights."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

from mcad.client.config import as_dispatched, load_config
from mcad.client.figures.figures import Figures
from mcad.client.figures.listed import DeniedError, list_facts
from mcad.client.figures.presence import NO_DISPATCHER
from mcad.client.figures.source import figures_in
from mcad.client.scope import Source
from mcad.client.session import Session
from mcad.controller.answer_views import why_view
from mcad.core.answers.dry_run import DryRun, Facts
from mcad.core.answers.why import why

Json = dict[str, Any]

UNTRIED = "what would start it now needs the right to list nodes and pods in the whole cluster"


class Answers:
    """The figures of one moment, and a copy of the dispatcher on which changes are tried; no copy
    (``facts`` is None) for a caller that may not list the cluster."""

    def __init__(self, figures: Figures, facts: Facts | None) -> None:
        self.figures = figures
        self.facts = facts

    @classmethod
    async def read(cls, session: Session, source: Source, namespace: str | None) -> Self:
        """List all objects, or take the figures that the caller may see."""
        config = await as_dispatched(session.client, load_config(source.settings))
        try:
            return cls(*await list_facts(session.client, config))
        except DeniedError:
            return cls(await figures_in(session, source, namespace), None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about all answers."""
        return (*self.figures.notes, *((UNTRIED,) if self.facts is None else ()))

    async def why(self, namespace: str, name: str) -> Json | None:
        """The answer about one AppWrapper, with its row; None if it is not known."""
        detail = await self.figures.detail(namespace, name)
        if detail is None or self.facts is None:
            return detail
        told = why(self.run, detail["uid"])
        if told.reason or (told.starts and detail["waitsFor"] != NO_DISPATCHER):
            detail = detail | {"waitsFor": told.reason, "why": told.text}
        return detail | why_view(self.run, told)

    @cached_property
    def run(self) -> DryRun:
        """The copy; only for a caller that may list the cluster."""
        if self.facts is None:
            raise DeniedError(UNTRIED)
        return DryRun(self.facts)
