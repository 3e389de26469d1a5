"""Uses the whole terminal: enters it, draws, and always restores it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

ENTER = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"  # alternate screen, no cursor
LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
QUIT_KEYS = frozenset((b"q", b"Q", b"\x03", b"\x04"))  # Ctrl-C and Ctrl-D where they come as keys
_KEY = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)  # a sequence counts as one key
SIZE_UNKNOWN = (80, 24)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def size() -> tuple[int, int]:
    """Columns and rows of the terminal at stdout; 80 x 24 if unknown."""
    with suppress(OSError, ValueError):
        found = os.get_terminal_size(sys.stdout.fileno())
        if found.columns and found.lines:
            return found.columns, found.lines
    return SIZE_UNKNOWN


class Screen:
    """The lines on the terminal. Use ``full_screen`` to get one."""

    def __init__(self) -> None:
        """The terminal does not change before ``enter``."""
        self._shown: list[str] = []
        self._modes: list[object] | None = None

    def enter(self) -> None:
        """Take over the terminal; keys are read one by one and not echoed."""
        with suppress(OSError, ValueError, termios.error):  # stdin is something else
            if sys.stdin.isatty():
                self._modes = termios.tcgetattr(sys.stdin.fileno())
                tty.setcbreak(sys.stdin.fileno(), termios.TCSANOW)
        self._shown = []
        _write(ENTER)

    def leave(self) -> None:
        """Restore the terminal; does nothing if it is gone."""
        with suppress(OSError, ValueError):
            _write(LEAVE)
        if self._modes is not None:
            with suppress(OSError, ValueError, termios.error):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._modes)  # type: ignore[arg-type]
            self._modes = None

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines; unchanged lines are not sent again."""
        if list(lines) != self._shown:
            self._shown = list(lines)
            _write(HOME + (CLEAR_LINE + "\r\n").join(lines) + CLEAR_LINE + CLEAR_BELOW)


@contextmanager
def full_screen(
    redraw: Callable[[], None], stop: Callable[[], None], press: Callable[[bytes], None]
) -> Iterator[Screen]:
    """Use the terminal until the end of the block, which must run in an event loop.

    ``redraw`` is called after a change of the size or a suspension, ``stop`` when the user leaves
    (q, Ctrl-C, or a signal), ``press`` with every other key.
    """
    loop, screen = asyncio.get_running_loop(), Screen()

    def keys() -> None:
        with suppress(OSError):
            typed = os.read(sys.stdin.fileno(), 64)
            if not typed:  # the terminal is gone, or stdin is at its end
                loop.remove_reader(sys.stdin.fileno())
            for key in _KEY.findall(typed):
                (stop if key in QUIT_KEYS else partial(press, key))()

    def suspend() -> None:
        screen.leave()
        os.kill(os.getpid(), signal.SIGSTOP)  # continues here after SIGCONT
        screen.enter()
        redraw()

    handlers = dict.fromkeys(SIGNALS, stop)
    handlers |= {signal.SIGWINCH: redraw, signal.SIGTSTP: suspend}
    for number, call in handlers.items():
        loop.add_signal_handler(number, call)
    screen.enter()
    try:
        if sys.stdin.isatty():
            loop.add_reader(sys.stdin.fileno(), keys)
        yield screen
    finally:
        screen.leave()
        if sys.stdin.isatty():
            loop.remove_reader(sys.stdin.fileno())
        for number in handlers:
            loop.remove_signal_handler(number)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
