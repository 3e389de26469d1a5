"""What commands print, wherever it comes from (figures_source.py)."""

from __future__ import annotations

from typing import Any, Protocol

from mcad.client.errors import warn
from mcad.client.figures.presence import Heartbeat

Json = dict[str, Any]


class Figures(Protocol):
    """The figures that commands print, as the JSON of ``mcad.controller.views``.

    An unknown position is None.
    """

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about all figures: what the caller may not see, or that no dispatcher runs."""
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

    async def quota(self) -> Json:
        """All quota trees, as the JSON of ``mcad.controller.quota_views``."""
        ...

    async def quota_node(self, tree: str, node: str) -> Json | None:
        """One quota node with its holders and its queue; None if it does not exist."""
        ...


class Feed(Protocol):
    """A stream of figures, new ones after each change."""

    async def next(self) -> Figures:
        """The figures after the next change; the first call returns at once."""
        ...

    @property
    def has_news(self) -> bool:
        """Whether newer figures may differ from the latest."""
        ...

    @property
    def trouble(self) -> str:
        """Why the figures may be outdated, "" if they are not."""
        ...

    @property
    def is_asked(self) -> bool:
        """Whether they are figures of the running dispatcher, not computed here."""
        ...

    @property
    def heartbeat(self) -> Heartbeat:
        """Whether a dispatcher is running."""
        ...


def warn_of_notes(figures: Figures) -> None:
    """Print the warnings about all figures."""
    for note in figures.notes:
        warn(note)
