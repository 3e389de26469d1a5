"""What ``events()`` of the Python client returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, overload

from msgspec import Struct

from mcad.api.wire import as_int, as_text
from mcad.client.api import html
from mcad.client.appwrappers.latest_events import event_time, subject_of
from mcad.client.errors import one_line

Json = dict[str, Any]


class Event(Struct, frozen=True):
    """One Event about an AppWrapper or an object below it; ``subject`` is KIND/NAME.

    ``time`` is that of its latest occurrence, and ``count`` says how often it occurred.
    """

    time: datetime | None
    type: str
    reason: str
    subject: str
    message: str
    count: int
    raw: Json

    @classmethod
    def of(cls, event: Json) -> Event:
        """From the object of the API server."""
        about, when = subject_of(event), event_time(event)
        return cls(
            datetime.fromisoformat(when) if when else None,
            as_text(event.get("type")),
            as_text(event.get("reason")),
            f"{as_text(about.get('kind'))}/{as_text(about.get('name'))}",
            one_line(as_text(event.get("message"))),
            max(1, as_int(event.get("count"))),
            event,
        )

    def __repr__(self) -> str:
        return f"<Event {self.reason} of {self.subject}>"

    def __str__(self) -> str:
        """A line."""
        return f"{self.type} {self.reason} {self.subject}: {self.message}"


class Events(Sequence[Event]):
    """Events, oldest first."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = tuple(events)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Events: ...
    def __getitem__(self, index: int | slice) -> Event | Events:
        """One of them."""
        return Events(self._events[index]) if isinstance(index, slice) else self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<Events: {', '.join(one.reason for one in self._events)}>"

    def __str__(self) -> str:
        """A line for each."""
        return "\n".join(map(str, self._events))

    def _repr_html_(self) -> str:
        titles = ("time", "type", "reason", "object", "message")
        rows = (
            (str(one.time or ""), one.type, one.reason, one.subject, one.message)
            for one in self._events
        )
        return html.table(titles, rows)
