"""Shows the progress of long work in one line of a terminal, if the program has one for it.

``Progress`` counts what is read; ``working`` tells that something goes on, with the seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

PATIENCE_S = 1.0  # no progress is shown before
REDRAW_S = 0.1
TICK_S = 1.0
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


class _Line:
    """A line that a thread writes, because what goes on may leave no time to."""

    def __init__(self, stream: TextIO, text: Callable[[], str]) -> None:
        import threading  # noqa: PLC0415 - takes 5 ms, which `mcad --help` has no use for

        self._stream, self._text = stream, text
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._shown = False
        self._thread = threading.Thread(target=self._tell, daemon=True)
        self._thread.start()

    def _tell(self) -> None:
        begun, wait = time.monotonic(), PATIENCE_S
        while not self._ended.wait(wait):
            wait = TICK_S
            with self._lock:
                self._shown = True
                seconds = time.monotonic() - begun
                self._stream.write(f"{CLEAR}{self._text()}... {seconds:.0f} s"[:200])
                self._stream.flush()

    def clear(self) -> None:
        """Remove the line until the next tick: something is printed."""
        with self._lock:
            if self._shown:
                self._shown = False
                self._stream.write(CLEAR)
                self._stream.flush()

    def end(self) -> None:
        """Remove the line for good."""
        self._ended.set()
        self._thread.join()
        self.clear()


_LINES: list[_Line] = []


@contextmanager
def working(text: str | Callable[[], str]) -> Iterator[None]:
    """Show what goes on, if the block lasts longer than ``PATIENCE_S``. Print after ``clear``."""
    stream = _STREAM.get()
    if stream is None or not stream.isatty():
        yield
        return
    line = _Line(stream, text if callable(text) else lambda: text)
    _LINES.append(line)
    try:
        yield
    finally:
        _LINES.remove(line)
        line.end()


def clear() -> None:
    """Remove lines of ``working``, before something is printed."""
    for line in _LINES:
        line.clear()
