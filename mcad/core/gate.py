"""What a refused head of the line does to those behind it (core R6)."""

from __future__ import annotations

from mcad.core.entry import Entry
from mcad.core.model import Policy
from mcad.core.queue import Bucket
from mcad.core.verdicts import Refusal, RefusalKind
from mcad.core.world import World

IMPOSSIBLE = frozenset({RefusalKind.NO_NODE, RefusalKind.TOO_LARGE})
"""Refusals of those who block nobody, because no release of room will ever let them in."""


class Gate:
    """The gate of one pass.

    The head is the first in order among the refused who would fit if AppWrappers left. Its hold
    starts on becoming head, once per attempt: while somebody else is ahead its clock stands still
    (``Entry.head_for``), so nobody holds the others for longer than one holding time in all.
    """

    def __init__(self, world: World) -> None:
        settings = world.settings
        self._world = world
        self._strict = settings.policy is Policy.STRICT_FIFO
        self._holding = settings.head_of_line_holding
        self._blocking: list[Bucket] = []
        self._closed = False
        self._head: Entry | None = None

    @property
    def open_to_all(self) -> bool:
        """Nobody can be blocked, so refused buckets need not even be looked at in order."""
        return not self._strict and not self._holding

    def blocks(self, bucket: Bucket) -> bool:
        """Whether somebody further ahead keeps this bucket from going."""
        capacity = self._world.capacity
        return self._closed or any(
            capacity.compete(ahead.shape, bucket.shape) for ahead in self._blocking
        )

    def refused(self, bucket: Bucket, refusal: Refusal) -> None:
        """The head of a bucket was refused: it may block those behind. The impossible never do."""
        if self.open_to_all or refusal.kind in IMPOSSIBLE:
            return
        if self._head is not None and not self._strict:
            return  # only the head holds, and to ask who else might be it is dear
        if not self._world.capacity.would_fit_emptied(bucket.shape):
            return
        if self._strict:
            self._blocking.append(bucket)
        if self._head is None:
            self._head = bucket.first()
            self._hold(self._head)

    def _hold(self, head: Entry) -> None:
        world = self._world
        if world.head != head.uid:
            self._step_down()
            world.head, head.head_since = head.uid, world.now
        until = head.head_since + self._holding - head.head_for
        if self._holding and world.now < until:
            self._closed = True
            world.wake_at(until)

    def goes(self, entry: Entry) -> None:
        """The AppWrapper is dispatched: another attempt may hold again."""
        if self._world.head == entry.uid:
            self._step_down()
        entry.head_for = 0

    def closes(self) -> None:
        """All of the line was looked at. If nobody is its head, nobody's clock runs."""
        if self._head is None:
            self._step_down()

    def _step_down(self) -> None:
        world = self._world
        entry = world.entries.get(world.head)
        if entry is not None:
            entry.head_for += world.now - entry.head_since
        world.head = ""
