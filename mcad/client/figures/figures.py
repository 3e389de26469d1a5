"""What commands print, wherever it comes from (source.py)."""

from __future__ import annotations

from typing import Any, Protocol

from mcad.api.questions import Question
from mcad.client.errors import McadError, NotFoundError, warn

Json = dict[str, Any]

TRIAL_S = 60.0
"""Timeout of an answer for which copies of the dispatcher run."""


class RejectedError(McadError):
    """The dispatcher cannot answer this question. ``faults`` are those of manifests, by number."""

    def __init__(self, message: str, faults: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class UnknownNameError(RejectedError, NotFoundError):
    """The question names an object that does not exist."""


def rejected(message: str, faults: tuple[tuple[int, str], ...], *, missing: bool) -> RejectedError:
    """The error of a question that is not answered."""
    return UnknownNameError(message) if missing else RejectedError(message, faults)


class Figures(Protocol):
    """The figures that commands print, as the JSON of ``mcad.controller.views``.

    An unknown position is None.
    """

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about all figures: that they are stored ones, or that dispatch is paused."""
        ...

    @property
    def is_stored(self) -> bool:
        """Whether they are what is stored, because the dispatcher cannot be asked."""
        ...

    @property
    def only(self) -> str | None:
        """The only namespace of the figures; None for the whole cluster."""
        ...

    async def labelled(self, selector: str) -> frozenset[str]:
        """The uids of the AppWrappers with these labels; not supported by --server."""
        ...

    async def rows(self, *, waiting_only: bool, with_starts: bool = False) -> list[Json]:
        """One row per AppWrapper, the queue first and in order; start time estimates if asked."""
        ...

    async def capacity(self) -> Json | None:
        """Capacity per node and in total; None if the caller may not see it."""
        ...

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full; None if it is not known."""
        ...

    async def why(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full with why it waits and what would start it; None if unknown."""
        ...

    async def what_if(self, question: Question, own: str) -> Json:
        """What would differ, as the JSON of ``mcad.controller.answers``; raises ``RejectedError``.

        ``own`` is the namespace of names without one.
        """
        ...

    async def quota(self) -> Json:
        """All quota trees, as the JSON of ``mcad.controller.quota_views``."""
        ...

    async def quota_node(self, tree: str, node: str) -> Json | None:
        """One quota node with its holders and its queue; None if it does not exist."""
        ...


def warn_of_notes(figures: Figures) -> None:
    """Print the warnings about all figures."""
    for note in figures.notes:
        warn(note)
