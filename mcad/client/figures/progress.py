"""Shows the progress of long lists in one line of a terminal, if the program has one for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

PATIENCE_S = 1.0  # no progress is shown before
REDRAW_S = 0.1
CLEAR = "\r\x1b[K"

_STREAM: ContextVar[TextIO | None] = ContextVar("stream of progress", default=None)


@contextmanager
def shown_on(stream: TextIO | None) -> Iterator[None]:
    """Show progress of what is done in the block there, if it is a terminal."""
    token = _STREAM.set(stream)
    try:
        yield
    finally:
        _STREAM.reset(token)


class Progress:
    """Counts objects per kind. The line appears after ``PATIENCE_S``; ``done`` removes it."""

    def __init__(self, monotonic: Callable[[], float], stream: TextIO | None = None) -> None:
        """``stream`` is that of ``shown_on`` unless given; ``monotonic`` is in seconds."""
        self._stream = stream if stream is not None else _STREAM.get()
        self._monotonic = monotonic
        self._due = monotonic() + PATIENCE_S
        self._counts: dict[str, int] = {}
        self._off = self._stream is None or not self._stream.isatty()
        self._shown = False

    def add(self, kind: str, count: int = 1) -> None:
        """Add read objects of a kind."""
        if self._off or self._stream is None:
            return
        self._counts[kind] = self._counts.get(kind, 0) + count
        now = self._monotonic()
        if now >= self._due:
            self._due = now + REDRAW_S
            self._shown = True
            counts = ", ".join(f"{count} {kind}" for kind, count in sorted(self._counts.items()))
            self._stream.write(f"{CLEAR}reading: {counts}"[:200])
            self._stream.flush()

    def done(self) -> None:
        """Remove the line and print nothing more."""
        self._off = True
        if self._shown and self._stream is not None:
            self._shown = False
            self._stream.write(CLEAR)
            self._stream.flush()
