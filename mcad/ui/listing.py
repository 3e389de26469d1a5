"""All AppWrappers of one moment: counted and filtered by outlines; rows are made for those shown.

A row needs a verdict and costs many times its outline, and a page shows 200 of maybe 10,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

from mcad.client.figures.computed import ComputedFigures
from mcad.client.figures.row import is_in_line, is_waiting
from mcad.controller.start_time_views import starts_of_line
from mcad.controller.views import row_view
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.waiting_reason import WaitingReason
from mcad.core.views.rows import Outline

Json = dict[str, Any]

PAUSED = str(WaitingReason.DISPATCH_PAUSED)
EVERYWHERE = DispatchPause("", "").title


class Listing(Protocol):
    """The AppWrappers that are shown, the queue first and in its order."""

    @property
    def outlines(self) -> Sequence[Outline]:
        """All of them."""
        ...

    def rows(self, chosen: Sequence[Outline]) -> list[Json]:
        """The rows of some of them, in the same order, with start time estimates."""
        ...


class ListedRows:
    """Rows that are there already: those of a dispatcher, or of one namespace."""

    def __init__(self, rows: Sequence[Json]) -> None:
        self._rows = {row["uid"]: row for row in rows}
        self.outlines = [
            Outline(
                place,
                row["uid"],
                row["namespace"],
                row["name"],
                row["state"],
                is_in_line(row),
                is_waiting(row),
            )
            for place, row in enumerate(rows, 1)
        ]

    @property
    def pause(self) -> str:
        """Why nothing is dispatched in the whole cluster, as AppWrappers that wait for it say."""
        texts = (row["why"] for row in self._rows.values() if row["waitsFor"] == PAUSED)
        return next((text for text in texts if text.startswith(EVERYWHERE)), "")

    def rows(self, chosen: Sequence[Outline]) -> list[Json]:
        """The rows of some of them."""
        return [self._rows[one.uid] for one in chosen]


class ComputedRows:
    """Rows of figures that are computed here, made on demand."""

    def __init__(self, figures: ComputedFigures, namespace: str | None) -> None:
        self._figures = figures
        self._picture = figures.picture
        self.outlines = [
            one for one in self._picture.outlines() if namespace in (None, one.namespace)
        ]

    @cached_property
    def _starts(self) -> dict[str, Json]:
        return starts_of_line(self._figures.cluster, self._picture)

    def rows(self, chosen: Sequence[Outline]) -> list[Json]:
        """The rows of some of them."""
        made = (self._picture.row(one.place) for one in chosen)
        return [
            self._figures.as_known(row_view(row) | {"starts": self._starts.get(row.uid)})
            for row in made
        ]
