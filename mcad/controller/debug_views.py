"""What a process is doing, for bug reports: stacks of threads and tasks, and its configuration."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Iterator
from io import StringIO
from types import FrameType
from typing import TYPE_CHECKING, Any

from mcad.version import __version__

if TYPE_CHECKING:
    from mcad.api.config import Config

Json = dict[str, Any]


def stacks() -> str:
    """The stacks of all threads, and of all tasks of the running event loop, as text."""
    return "\n".join([*_threads(), *_tasks()])


def _threads() -> Iterator[str]:
    names = {one.ident: one.name for one in threading.enumerate()}
    for ident, frame in sorted(sys._current_frames().items()):
        yield f"thread {names.get(ident, ident)}"
        yield from _lines(frame)


def _lines(frame: FrameType) -> Iterator[str]:
    yield from (line.rstrip() for line in traceback.format_stack(frame))


def _tasks() -> Iterator[str]:
    for task in sorted(asyncio.all_tasks(), key=lambda one: one.get_name()):
        text = StringIO()
        task.print_stack(file=text)
        yield f"task {task.get_name()}"
        yield text.getvalue().rstrip()


def configuration(config: Config) -> Json:
    """The configuration in force and the version; it holds no secrets."""
    return {"version": __version__, "config": config.model_dump(mode="json", by_alias=True)}
