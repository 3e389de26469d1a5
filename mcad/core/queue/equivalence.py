"""Equivalence classes of waiting AppWrappers, which share a verdict.

The queue keeps the members of a class; ``Verdicts`` keeps whether it needs a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sortedcontainers import SortedDict

from mcad.core.state.quota_records import Path
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import Duration, Instant

if TYPE_CHECKING:
    from mcad.core.nodes.shape import Shape
    from mcad.core.state.entry import Entry

MS = 1_000

Key = tuple[int, int, str]
"""The place of an AppWrapper in its class, which never changes: priority and age, first seen, uid.
"""

NO_KEY: Key = (0, 0, "")

Turn = tuple[bool, int, int, int, str]
"""How heads of classes compare at an instant: whether it would borrow what others may reclaim, then
priority with age, share in use, first seen, uid."""

NO_TURN: Turn = (False, 0, 0, 0, "")


class AwaitedShare(NamedTuple):
    """So much of a resource, at a node of a quota tree."""

    tree: str
    node: str
    resource: str
    amount: int


if TYPE_CHECKING:
    Alike = tuple[Shape, int, Path, str, bool]
    """What all members of a class have in common: shape, slope, quota path, group, and whether
    they never preempt."""

    Awaited = Shape | AwaitedShare
    """What a refused class waits for: room on nodes for its shape, or a share."""

NO_HEAD: tuple[str, Instant] = ("", 0)


@dataclass(slots=True, eq=False)
class EquivalenceClass:
    """Waiting AppWrappers of one shape, slope, quota path and group (ordering.py), all of which
    or none of which have the ``preemptionPolicy`` Never.

    ``key`` is that of its head, the first of its ``members``, if it has any, and ``turn`` is the
    turn of the head where none ages, borrows or has a share. ``refusal`` is their common verdict,
    reached at ``tested_at``; it stands until what the class ``awaits`` may be there.
    ``planned_at`` is when victims for its head were last searched, 0 if the head has changed since.
    ``asks_back`` is the uid of the head that keeps borrowers waiting, and since when
    (borrow_wait.py). ``deferred_for`` is how long borrowers of the class fitted and were deferred
    in all, and ``deferred_at`` the last instant of a wait that goes on, else 0.
    """

    shape: Shape
    slope: int
    path: Path
    group: str
    never_preempts: bool = False
    key: Key = NO_KEY
    turn: Turn = NO_TURN
    _head: Entry = field(init=False, repr=False)
    members: SortedDict[Key, Entry] = field(default_factory=SortedDict)
    refusal: Refusal | None = None
    tested_at: Instant = 0
    awaits: Awaited | None = None
    planned_at: Instant = 0
    asks_back: tuple[str, Instant] = NO_HEAD
    deferred_for: Duration = 0
    deferred_at: Instant = 0

    @property
    def alike(self) -> Alike:
        """What its members have in common."""
        return self.shape, self.slope, self.path, self.group, self.never_preempts

    @property
    def may_keep_verdict(self) -> bool:
        """Whether it may keep its verdict until the next walk, although room rose since: it was
        refused, and not only to let others go first."""
        return self.refusal is not None and not self.refusal.reason.lets_others_first

    @property
    def is_inadmissible(self) -> bool:
        """Whether its verdict stands, so that it need not be tried."""
        return self.awaits is not None

    @property
    def is_refused(self) -> bool:
        """Whether it is in line, and what comes free may let its head start."""
        return self.refusal is not None and self.refusal.reason.blocks and bool(self.members)

    def join(self, key: Key, entry: Entry) -> None:
        """One more member."""
        self.members[key] = entry
        entry.wait.deferred_before = self.deferred_for
        self._find_head()

    def count_deferred(self, now: Instant) -> Instant:
        """Count the wait that goes on as deferred. Returns since when its head would have waited
        if it had been deferred without a break: all members are equal, so each fitted when the head
        did."""
        if self.deferred_at:
            self.deferred_for += now - self.deferred_at
        return now - (self.deferred_for - self._head.wait.deferred_before)

    def part(self, key: Key) -> None:
        """One member less."""
        del self.members[key]
        self._find_head()

    def _find_head(self) -> None:
        """The head is looked at in every pass, of ten thousand classes, so it is kept."""
        if self.members:
            key, self._head = self.members.peekitem(0)
            self.rank(key)

    def rank(self, key: Key) -> None:
        """Its head has this key."""
        static, seen, uid = key
        self.key, self.turn = key, (False, static, 0, seen, uid)

    def first(self) -> Entry:
        """Its head; the class must not be empty."""
        return self._head

    def front(self, count: int) -> list[Entry]:
        """The first members in order, at most ``count``."""
        return list(self.members.values()[:count])


def awaited(eqclass: EquivalenceClass, refusal: Refusal) -> Awaited:
    """What was asked for and is not free: what one class is refused, all are that ask for it."""
    limit = refusal.quota
    if limit is None:
        return eqclass.shape
    return AwaitedShare(limit.tree, limit.node or limit.leaf, limit.resource, limit.requested)
