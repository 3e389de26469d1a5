"""SIGTERM and Ctrl-C of a command that serves: they end its start, and later ask it to stop."""

from __future__ import annotations

import asyncio
import signal
from typing import Self

from mcad.cli.start import SIGNALLED


class Stop:
    """What a signal does to the task that made this: until ``begun`` it is cancelled, then
    ``event`` is set. A second signal does not disturb the end. The end of the context swallows
    the cancellation."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.code = 0  # of a shell, for the first signal
        self._starting = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is asyncio.CancelledError and self.event.is_set()

    def begun(self) -> None:
        """The start is over: a signal only sets ``event``."""
        self._starting = None

    def leave_interrupt(self) -> None:
        """Ignore Ctrl-C from here on: a child process gets it from the terminal and decides."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)

    def _signalled(self, number: int) -> None:
        if self.event.is_set():
            return
        self.code = SIGNALLED + number
        self.event.set()
        if self._starting is not None:
            self._starting.cancel()
