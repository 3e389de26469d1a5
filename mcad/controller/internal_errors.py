"""Errors of the dispatcher itself about one AppWrapper: logged with their stack, and counted.

The core holds the AppWrapper (mcad/core/internal_errors.py). Its status shows the id under which
the log and ``mcad debug bundle`` have the stack.
"""

from __future__ import annotations

import logging
import traceback
from typing import NamedTuple

from mcad.core.cluster import Cluster
from mcad.core.state.internal_error import InternalError, describe

_log = logging.getLogger(__name__)

LOGGED_MAX = 100
"""Maximum number of errors that are logged; all are counted."""
KEPT_MAX = 20
"""Maximum number of ids whose last stack is kept for bug reports."""


class Stack(NamedTuple):
    """The last error with an id: how many there were, about which AppWrapper, and where."""

    times: int
    uid: str
    lines: str


class ErrorLog:
    """All errors of this process about single AppWrappers.

    ``stacks`` are without the texts of exceptions, which may quote a manifest.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._logged = 0
        self.stacks: dict[str, Stack] = {}

    def log_raised(self) -> None:
        """Log what the core raised in the step that was just made."""
        for uid, error in self._cluster.errors.raised:
            self.log(uid, error)
        self._cluster.errors.raised.clear()  # a snapshot of the journal holds no exception

    def log(self, uid: str, error: Exception) -> InternalError:
        """Log one error; returns it in the words of statuses."""
        found = describe(error)
        lines = "".join([*traceback.format_tb(error.__traceback__), type(error).__name__])
        before = self.stacks.pop(found.id, None)
        self.stacks[found.id] = Stack(before.times + 1 if before else 1, uid, lines)
        while len(self.stacks) > KEPT_MAX:
            del self.stacks[next(iter(self.stacks))]
        self._logged += 1
        if self._logged <= LOGGED_MAX:
            entry = self._cluster.entries.get(uid)
            title = entry.title if entry is not None else ""
            text = "internal error uid=%s appwrapper=%s id=%s"
            _log.error(text, uid, title, found.id, exc_info=error)
        return found

    def page(self) -> str:
        """The stacks, for bug reports."""
        return "\n".join(
            f"error {name}: {one.times} times, last about AppWrapper {one.uid}\n{one.lines}"
            for name, one in self.stacks.items()
        )
