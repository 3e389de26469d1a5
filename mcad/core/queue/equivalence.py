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
"""The place of an AppWrapper in its class, which never changes: priority and age, first seen,
uid."""

NO_KEY: Key = (0, 0, "")

Turn = tuple[bool, int, int, int, str]
"""The order of the heads of classes at an instant: whether the head would borrow a share that
others may reclaim, then priority with age, share in use, first seen, uid."""

NO_TURN: Turn = (False, 0, 0, 0, "")


class AwaitedShare(NamedTuple):
    """An amount of a resource at a node of a quota tree."""

    tree: str
    node: str
    resource: str
    amount: int


if TYPE_CHECKING:
    Alike = tuple[Shape, int, Path, str, bool]
    """The common properties of all members of a class: shape, slope, quota path, group, and whether
    they never preempt."""

    Awaited = Shape | AwaitedShare
    """What a refused class waits for: room on nodes for its shape, or a share."""

NO_HEAD: tuple[str, Instant] = ("", 0)


@dataclass(slots=True, eq=False)
class EquivalenceClass:
    """Waiting AppWrappers of one shape, slope, quota path and group (ordering.py), all with the
    ``preemptionPolicy`` Never or all without.

    ``key`` is the key of the head, the first of the ``members``, if there is one, and ``turn`` its
    turn without aging, borrowing and shares. ``refusal`` is the common verdict, reached at
    ``tested_at``; it stands until what the class ``awaits`` may be there. ``planned_at`` is when
    victims for the head were last searched, 0 if another head came since, and ``planned_for`` the
    uid of that head. ``asks_back`` is the
    uid of the head that keeps borrowers waiting, and since when (borrow_wait.py). ``deferred_for``
    is how long borrowers of the class fitted and were deferred in all, and ``deferred_at`` the last
    instant of a current wait, else 0.
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
    planned_for: str = ""
    asks_back: tuple[str, Instant] = NO_HEAD
    deferred_for: Duration = 0
    deferred_at: Instant = 0

    @property
    def alike(self) -> Alike:
        """The common properties of the members."""
        return self.shape, self.slope, self.path, self.group, self.never_preempts

    @property
    def may_keep_verdict(self) -> bool:
        """Whether the class may keep its verdict until the next walk, although room rose since: it
        was refused, and not only to let others go first."""
        return self.refusal is not None and not self.refusal.reason.lets_others_first

    @property
    def is_inadmissible(self) -> bool:
        """Whether the verdict stands, so that the class need not be tried."""
        return self.awaits is not None

    @property
    def is_refused(self) -> bool:
        """Whether the class is in line, refused, and may start when something comes free."""
        return self.refusal is not None and self.refusal.reason.blocks and bool(self.members)

    def join(self, key: Key, entry: Entry) -> None:
        """Add a member."""
        self.members[key] = entry
        entry.wait.deferred_before = self.deferred_for
        self._find_head()

    def count_deferred(self, now: Instant) -> Instant:
        """Count the current wait as deferred. Returns since when the head would have waited if it
        had been deferred without a break: all members are equal, so each fitted when the head
        did."""
        if self.deferred_at:
            self.deferred_for += now - self.deferred_at
        return now - (self.deferred_for - self._head.wait.deferred_before)

    def part(self, key: Key) -> None:
        """Remove a member."""
        del self.members[key]
        self._find_head()

    def _find_head(self) -> None:
        """Keep the head, which is read in every pass, of ten thousand classes."""
        if self.members:
            key, self._head = self.members.peekitem(0)
            self.rank(key)

    def rank(self, key: Key) -> None:
        """Set the key of the head."""
        static, seen, uid = key
        self.key, self.turn = key, (False, static, 0, seen, uid)

    def first(self) -> Entry:
        """The head; the class must not be empty."""
        return self._head

    def front(self, count: int) -> list[Entry]:
        """The first members in order, at most ``count``."""
        return list(self.members.values()[:count])


def awaited(eqclass: EquivalenceClass, refusal: Refusal) -> Awaited:
    """What a refused class waits for: every class that asks for the same is refused as well."""
    limit = refusal.quota
    if limit is None:
        return eqclass.shape
    return AwaitedShare(limit.tree, limit.node or limit.leaf, limit.resource, limit.requested)
