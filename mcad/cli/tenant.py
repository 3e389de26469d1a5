"""Figures for who may see one namespace only: what the dispatcher has written, and what runs there.

The demand is computed from the manifests and the pods are those of the namespace. Where one stands
in line, and what is free, follow from the whole cluster: of that there is only what the last
refusal said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcad.api.wire import as_list, as_map, as_text
from mcad.core.reasons import ConditionType

if TYPE_CHECKING:
    from mcad.cli.counting import Snapshot

Json = dict[str, Any]

NOTE = (
    "you may not list the nodes and pods of the whole cluster: positions and free room are not "
    "known, reasons are those of the last refusal; the dispatcher tells more with --server URL"
)
NOT_YET = "The dispatcher has not said anything about it yet."

_FIGURE = re.compile(
    r"(?P<resource>\S+): (?P<requested>\S+) requested, (?P<available>\S+) available"
    r"(?:, (?P<missing>\S+) missing)?\."
)


class Tenant(Struct, frozen=True):
    """Figures of one namespace; see ``mcad.cli.figures.Figures``.

    ``seen`` was counted without any node: only what does not depend on room is taken from it.
    ``only`` is the namespace.
    """

    seen: Snapshot
    only: str

    @property
    def notes(self) -> tuple[str, ...]:
        """What is missing, and whom to ask."""
        return (NOTE, *self.seen.notes)

    def labels(self, uid: str) -> Mapping[str, str]:
        """The labels of an AppWrapper."""
        return self.seen.labels(uid)

    async def rows(self, *, waiting_only: bool) -> list[Json]:
        """One row per AppWrapper, those in line first, by priority and age."""
        return [self._written(row) for row in await self.seen.rows(waiting_only=waiting_only)]

    async def capacity(self) -> Json | None:
        """Nobody can tell."""
        return None

    async def detail(self, namespace: str, name: str) -> Json | None:
        """One AppWrapper in full, None if there is none of this name."""
        view = await self.seen.detail(namespace, name)
        if view is None:
            return None
        for one in view["podSets"]:
            one["reserved"] = None
        written = self._written(view)
        if written["position"] is None:
            written |= {"inLine": None, "ahead": None, "figures": _figures(written["why"])}
        return written

    def _written(self, row: Json) -> Json:
        """The row with what the dispatcher has written instead of what was counted."""
        status = as_map(self.seen.objects[row["uid"]].get("status"))
        told = {key: as_text(status.get(key)) or row[key] for key in ("state", "queuejobstate")}
        if not row["position"]:
            return row | told
        why = _last_refusal(status)
        figures = _figures(why)
        waits_for = figures[0]["resource"] if figures else "capacity" if why else ""
        unknown = {"position": None, "headOfLine": None}
        return row | told | unknown | {"waitsFor": waits_for, "why": why or NOT_YET}


def _last_refusal(status: Json) -> str:
    """What the condition of a refused AppWrapper says, "" if it was not refused."""
    for condition in map(as_map, as_list(status.get("conditions"))):
        if condition.get("type") == ConditionType.BACKOFF and condition.get("status") == "True":
            return as_text(condition.get("message")) or as_text(condition.get("reason"))
    return ""


def _figures(message: str) -> list[Json]:
    """The figures in a refusal's message, those that are missing first."""
    found = [match.groupdict(default="0") for match in _FIGURE.finditer(message)]
    return sorted(found, key=lambda one: one["missing"] == "0")
