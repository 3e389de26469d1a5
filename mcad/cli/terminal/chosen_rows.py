"""Which rows ``mcad top`` shows, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcad.cli.terminal.columns import COLUMNS
from mcad.client.figures.row import is_in_line, is_waiting

Json = dict[str, Any]

ENDED = ("Completed", "Failed")


def _is_dispatched(row: Json) -> bool:
    return not is_waiting(row) and row["state"] not in ENDED


def _is_ended(row: Json) -> bool:
    return not is_waiting(row) and row["state"] in ENDED


GROUPS: dict[str, Callable[[Json], bool]] = {
    "not ended": lambda row: not _is_ended(row),
    "waiting": is_waiting,
    "on hold": lambda row: is_waiting(row) and not is_in_line(row),
    "dispatched": _is_dispatched,
    "ended": _is_ended,
    "all": lambda _: True,
}
"""What the key s goes through."""

QUEUE_ORDER = "POS"


class Choice(Struct, frozen=True):
    """A group of states, a namespace (None: all), words that each row contains, and an order."""

    group: str = "not ended"
    namespace: str | None = None
    words: str = ""
    by: str = QUEUE_ORDER
    is_reversed: bool = False

    def rows(self, rows: Iterable[Json]) -> list[Json]:
        """The rows to show. In queue order dispatched ones come last, the latest first."""
        is_in_group, words = GROUPS[self.group], self.words.casefold().split()
        kept = [
            row
            for row in rows
            if self.namespace in (None, row["namespace"])
            and is_in_group(row)
            and (not words or _contains(row, words))
        ]
        if self.by != QUEUE_ORDER:
            return sorted(kept, key=COLUMNS[self.by].order, reverse=self.is_reversed)
        waiting = [row for row in kept if is_waiting(row)]
        others = [row for row in kept if not is_waiting(row)]
        others.sort(key=lambda row: row["firstSeen"] or "", reverse=True)
        others.sort(key=_is_ended)
        shown = waiting + others
        return shown[::-1] if self.is_reversed else shown

    def next_group(self) -> Choice:
        """The next group of states."""
        names = list(GROUPS)
        return replace(self, group=names[(names.index(self.group) + 1) % len(names)])

    def sorted_by(self, title: str) -> Choice:
        """Sorted by this column; the other way round if it is already."""
        turned = not self.is_reversed if title == self.by else False
        return replace(self, by=title, is_reversed=turned)

    def sorted_beside(self, step: int) -> Choice:
        """Sorted by the column to the right or to the left."""
        titles = list(COLUMNS)
        return replace(self, by=titles[(titles.index(self.by) + step) % len(titles)])

    def __str__(self) -> str:
        """What differs from the default, for the line of counts."""
        told = [] if self.group == "not ended" else [f"showing {self.group}"]
        told += [f"namespace {self.namespace}"] if self.namespace else []
        told += [f'containing "{self.words}"'] if self.words else []
        if self.by != QUEUE_ORDER or self.is_reversed:
            told.append(f"by {self.by.lower()}" + ", reversed" * self.is_reversed)
        return "; ".join(told)


def _contains(row: Json, words: list[str]) -> bool:
    fields = ("namespace", "name", "state", "waitsFor", "why")
    text = " ".join(row[one] or "" for one in fields).casefold()
    title = f"{row['namespace']}/{row['name']}".casefold()
    return all(word in text or word in title for word in words)
