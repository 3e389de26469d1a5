"""What the Python client returns: records of one moment, which notebooks show as tables.

Amounts are Kubernetes quantities as text, as in manifests: ``{"cpu": "500m"}``. ``raw`` has
everything as the dispatcher says it; what is in it may change between versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, overload

from msgspec import Struct

from mcad.client.api import html

Json = dict[str, Any]


class QueueRow(Struct, frozen=True):
    """One AppWrapper. ``position`` is 0 if it is not in line, and None if that is not known.

    ``waits_for`` is one word, such as ``cpu`` or ``quota``, and ``why`` a sentence; both are empty
    if it does not wait. ``first_seen`` is None before the dispatcher has seen it.
    """

    namespace: str
    name: str
    state: str
    position: int | None
    priority: int
    demand: Mapping[str, str]
    waits_for: str
    why: str
    first_seen: datetime | None
    raw: Json

    @classmethod
    def of(cls, row: Json) -> QueueRow:
        """From the JSON of ``mcad.controller.views``."""
        seen = row["firstSeen"]
        return cls(
            row["namespace"],
            row["name"],
            row["state"],
            row["position"],
            row["priority"],
            row["demand"] or {},
            row["waitsFor"] or "",
            row["why"] or "",
            datetime.fromisoformat(seen) if seen else None,
            row,
        )

    def __repr__(self) -> str:
        waits = f", waits for {self.waits_for}" if self.waits_for else ""
        return f"<QueueRow {self.namespace}/{self.name}: {self.state}{waits}>"

    def _repr_html_(self) -> str:
        return Queue((self,))._repr_html_()


class Queue(Sequence[QueueRow]):
    """AppWrappers: the queue first, in its order."""

    def __init__(self, rows: Sequence[QueueRow]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> QueueRow: ...
    @overload
    def __getitem__(self, index: slice) -> Queue: ...
    def __getitem__(self, index: int | slice) -> QueueRow | Queue:
        """The row at a place, which is its position minus 1 for those in line."""
        if isinstance(index, slice):
            return Queue(self._rows[index])
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[QueueRow]:
        return iter(self._rows)

    def __repr__(self) -> str:
        names = ", ".join(f"{row.namespace}/{row.name}" for row in self._rows[:5])
        more = f" and {len(self) - 5} more" if len(self) > 5 else ""
        return f"<Queue of {len(self)}: {names}{more}>" if self._rows else "<Queue: empty>"

    def _repr_html_(self) -> str:
        titles = ("", "namespace", "name", "state", "priority", "demand", "waits for", "why")
        return html.table(titles, map(_cells, self._rows))


def _cells(row: QueueRow) -> Iterator[str]:
    yield "?" if row.position is None else str(row.position or "")
    yield from (row.namespace, row.name, row.state, str(row.priority))
    yield html.amounts(row.demand)
    yield from (row.waits_for, row.why)


class Remedy(Struct, frozen=True):
    """A change that would start an AppWrapper now, tried on a copy of the dispatcher.

    ``kind`` is one word, ``text`` a sentence. ``appwrappers`` are those that it concerns. Not
    ``at_once``: victims have to end first.
    """

    kind: str
    text: str
    appwrappers: tuple[str, ...]
    at_once: bool


class Why(Struct, frozen=True):
    """Why an AppWrapper waits, and what would start it now.

    ``would_start`` is empty also for a caller that may not list nodes and pods of the whole
    cluster; a warning says so. ``starts_next``: it is dispatched in the next cycle. ``held_by`` has
    amounts of the resource that it waits for, by NAMESPACE/NAME.
    """

    namespace: str
    name: str
    state: str
    position: int | None
    waits_for: str
    why: str
    starts_next: bool
    would_start: tuple[Remedy, ...]
    held_by: Mapping[str, str]
    may_evict: tuple[str, ...]
    raw: Json

    @classmethod
    def of(cls, told: Json) -> Why:
        """From the JSON of ``mcad.controller.answer_views``, with the row."""
        held = told.get("heldBy") or {"appwrappers": ()}
        return cls(
            told["namespace"],
            told["name"],
            told["state"],
            told["position"],
            told["waitsFor"] or "",
            told["why"] or "",
            told.get("startsNext", False),
            tuple(map(_remedy, told.get("wouldStart", ()))),
            {one["appwrapper"]: one["amount"] for one in held["appwrappers"]},
            tuple(told.get("mayEvict", ())),
            told,
        )

    def __repr__(self) -> str:
        return f"<Why {self.namespace}/{self.name}: {self.why or 'it does not wait'}>"

    def __str__(self) -> str:
        """The reason, and a line for each remedy."""
        lines = [f"{self.namespace}/{self.name} ({self.state}): {self.why or 'it does not wait'}"]
        lines += ["Would start it now, each by itself:"] if self.would_start else []
        return "\n".join([*lines, *(f"  {one.text}" for one in self.would_start)])

    def _repr_html_(self) -> str:
        facts = {
            "state": self.state,
            "position": "?" if self.position is None else str(self.position or ""),
            "waits for": self.waits_for,
            "why": self.why,
            "held by": ", ".join(f"{name}: {amount}" for name, amount in self.held_by.items()),
            "may evict": ", ".join(self.may_evict),
        }
        page = html.facts(f"{self.namespace}/{self.name}", facts)
        if not self.would_start:
            return page
        return page + html.table(("would start it now",), ((one.text,) for one in self.would_start))


def _remedy(one: Json) -> Remedy:
    return Remedy(one["kind"], one["text"], tuple(one["appwrappers"]), one["startsAtOnce"])


class Fate(Struct, frozen=True):
    """What becomes of an AppWrapper in the next cycles.

    ``evicted_for`` names the preemptor, "" if it is not evicted. ``earliest`` and ``latest`` are
    the start time estimate, None if there is none.
    """

    state: str
    position: int | None
    starts_next: bool
    evicted_for: str
    waits_for: str
    why: str
    earliest: datetime | None
    latest: datetime | None

    @classmethod
    def of(cls, fate: Json) -> Fate:
        """From the JSON of ``mcad.controller.what_if_views``."""
        return cls(
            fate["state"],
            fate["position"],
            fate["startsNext"],
            fate["evictedFor"] or "",
            fate["waitsFor"] or "",
            fate["why"] or "",
            _instant(fate["earliest"]),
            _instant(fate["latest"]),
        )

    def __str__(self) -> str:
        """A few words."""
        if self.evicted_for:
            return f"evicted for {self.evicted_for}"
        if self.starts_next:
            return "starts"
        if self.position:
            return f"number {self.position} in line ({self.waits_for or 'it fits'})"
        return f"{self.state} ({self.waits_for})" if self.waits_for else self.state


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


class Difference(Struct, frozen=True):
    """One AppWrapper (NAMESPACE/NAME) that a change concerns; None where it does not exist."""

    appwrapper: str
    now: Fate | None
    then: Fate | None


class WhatIf(Sequence[Difference]):
    """What would differ; those that start first. Empty if nothing would."""

    def __init__(self, told: Json) -> None:
        self.raw = told
        self._found = tuple(
            Difference(
                one["appwrapper"],
                Fate.of(one["now"]) if one["now"] else None,
                Fate.of(one["then"]) if one["then"] else None,
            )
            for one in told["changes"]
        )

    @property
    def starts(self) -> tuple[str, ...]:
        """The AppWrappers that start with the change, and would not without."""
        return tuple(
            one.appwrapper
            for one in self._found
            if one.then is not None
            and one.then.starts_next
            and not (one.now is not None and one.now.starts_next)
        )

    @overload
    def __getitem__(self, index: int) -> Difference: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Difference]: ...
    def __getitem__(self, index: int | slice) -> Difference | Sequence[Difference]:
        """One of them."""
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        texts = [
            f"{one.appwrapper}: {one.now or 'absent'} -> {one.then or 'absent'}"
            for one in self._found
        ]
        return "<WhatIf: " + ("; ".join(texts[:5]) or "nothing would differ") + ">"

    def _repr_html_(self) -> str:
        if not self._found:
            return html.note("Nothing would differ in the next cycles.")
        rows = ((one.appwrapper, str(one.now or ""), str(one.then or "")) for one in self._found)
        return html.table(("appwrapper", "now", "then"), rows)
