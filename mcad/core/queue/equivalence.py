"""Waiting AppWrappers that share a verdict, and what several such buckets may lie in together.

A bucket is kept by the queue (what stands in it, and where) and by the beds (whether it rests, and
with which others).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from mcad.core.state.quota_records import Path
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import Instant

if TYPE_CHECKING:
    from mcad.core.nodes.shape import Shape
    from mcad.core.state.entry import Entry

MS = 1_000

Key = tuple[int, int, str]
"""Where an AppWrapper stands in its bucket, for good: priority and age, first seen, uid."""

Turn = tuple[bool, int, int, int, str]
"""How heads of buckets compare at an instant: whether it borrows what others may take back, then
priority with age, share in use, first seen, uid."""

NOBODY: tuple[str, Instant] = ("", 0)

Node = tuple[str, str]  # a quota tree and a node of it


@dataclass(slots=True, eq=False)
class InadmissibleList:
    """Refused buckets that wait for the same, in order: room on nodes for one shape, or so much of
    one resource at one node of a quota tree.

    Only its ``representative`` is awake, if any is: not before it has gone on need the next one be
    looked at. ``refusal`` is the verdict that all of them share, reached at ``tested_at``; None
    while it has to be reached anew. ``at`` says where it stands in the index of the quota trees.
    """

    at: tuple[Node, str, tuple[int, int]] | None = None
    line: list[tuple[Key, EquivalenceClass]] = field(default_factory=list)
    representative: EquivalenceClass | None = None
    refusal: Refusal | None = None
    tested_at: Instant = 0


@dataclass(slots=True, eq=False)
class EquivalenceClass:
    """Waiting AppWrappers of one shape, slope, quota path and group (ordering.py).

    ``refusal`` is their common verdict, reached at ``tested_at``; it stands while the bucket is in
    a ``listed_in``, where it lies by the key of its first. ``represents`` is the bed that waits for
    what becomes of this one, ``of_shape`` that of those with its shape and slope that wait for
    nodes. ``planned_at`` is when victims for its first were last looked for, 0 if another has come
    before it since. ``asks_back`` tells which of its firsts keeps borrowers waiting, and since when
    (borrow_wait.py).
    """

    shape: Shape
    slope: int
    path: Path
    group: str
    of_shape: InadmissibleList
    members: SortedDict[Key, Entry] = field(default_factory=SortedDict)
    refusal: Refusal | None = None
    tested_at: Instant = 0
    listed_in: InadmissibleList | None = None
    listed_by: Key | None = None
    represents: InadmissibleList | None = None
    planned_at: Instant = 0
    asks_back: tuple[str, Instant] = NOBODY

    @property
    def is_inadmissible(self) -> bool:
        """Whether the verdict on it stands."""
        return self.listed_in is not None

    @property
    def key(self) -> Key:
        """Where its head stands; the bucket must not be empty."""
        key: Key = self.members.peekitem(0)[0]
        return key

    def first(self) -> Entry:
        """The head of this bucket; the bucket must not be empty."""
        entry: Entry = self.members.peekitem(0)[1]
        return entry

    def front(self, count: int) -> list[Entry]:
        """The first members in order, at most ``count``."""
        return list(self.members.values()[:count])
