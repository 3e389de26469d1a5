"""Equivalence classes of waiting AppWrappers, which share a verdict, and lists of refused classes
that wait for the same.

The queue keeps the members of a class; ``InadmissibleLists`` keeps whether it needs a verdict, and
in which list it waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from mcad.core.state.quota_records import Path
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import Duration, Instant
from mcad.core.state.waiting_state import ClassSignal, ClassState, of_class

if TYPE_CHECKING:
    from mcad.core.nodes.shape import Shape
    from mcad.core.state.entry import Entry

MS = 1_000

Key = tuple[int, int, str]
"""The place of an AppWrapper in its class, which never changes: priority and age, first seen, uid.
"""

NO_KEY: Key = (0, 0, "")
FIRST_KEY: Key = (-(1 << 127), 0, "")
LAST_KEY: Key = (1 << 127, 0, "")
"""Before and behind all others."""

Turn = tuple[bool, int, int, int, str]
"""How heads of classes compare at an instant: whether it would borrow what others may reclaim, then
priority with age, share in use, first seen, uid."""

NO_TURN: Turn = (False, 0, 0, 0, "")

Series = tuple[int, Path, str, frozenset[str]]
"""What classes have in common whose heads never change their order: slope, quota path, group, and
the resources that decide whether they would borrow."""

NO_HEAD: tuple[str, Instant] = ("", 0)

Node = tuple[str, str]  # a quota tree and a node of it


@dataclass(slots=True, eq=False)
class InadmissibleList:
    """Refused classes that wait for the same, in order: room on nodes for one shape, or an amount
    of one resource at one node of a quota tree.

    At most its ``representative`` is tried again; the next class is not looked at before the
    representative has been dispatched or refused. ``refusal`` is the verdict that all of them
    share, reached at ``tested_at``; it is None while a new one is needed. ``at`` is the place of
    the list in the index of the quota trees.
    """

    at: tuple[Node, str, tuple[int, int]] | None = None
    line: list[tuple[Key, EquivalenceClass]] = field(default_factory=list)
    representative: EquivalenceClass | None = None
    refusal: Refusal | None = None
    tested_at: Instant = 0


@dataclass(slots=True, eq=False)
class EquivalenceClass:
    """Waiting AppWrappers of one shape, slope, quota path and group (ordering.py), all of which
    or none of which have the ``preemptionPolicy`` Never.

    ``key`` is that of its head, the first of its ``members``, if it has any, and ``turn`` is the
    turn of the head where none ages, borrows or has a share. ``refusal`` is their common verdict,
    reached at ``tested_at``; it stands while the class is inadmissible. ``of_list`` is the list in
    which the class waits then, at the key of its head (``listed_by``), or that it represents.
    ``of_shape`` is the list of the classes with its shape and slope that wait for nodes.
    ``planned_at`` is when victims for its head were last searched, 0 if the head has changed since.
    ``asks_back`` is the uid of the head that keeps borrowers waiting, and since when
    (borrow_wait.py). ``deferred_for`` is how long borrowers of the class fitted and were deferred
    in all, and ``deferred_at`` the last instant of a wait that goes on, else 0. The ``series``
    is its own for ever (active.py).
    """

    shape: Shape
    slope: int
    path: Path
    group: str
    of_shape: InadmissibleList
    key: Key = NO_KEY
    turn: Turn = NO_TURN
    _head: Entry = field(init=False, repr=False)
    members: SortedDict[Key, Entry] = field(default_factory=SortedDict)
    refusal: Refusal | None = None
    tested_at: Instant = 0
    state: ClassState = ClassState.ACTIVE
    of_list: InadmissibleList | None = None
    listed_by: Key | None = None
    planned_at: Instant = 0
    never_preempts: bool = False
    asks_back: tuple[str, Instant] = NO_HEAD
    deferred_for: Duration = 0
    deferred_at: Instant = 0
    series: Series = (0, (), "", frozenset())

    def follow(self, signal: ClassSignal, of_list: InadmissibleList | None = None) -> None:
        """Change state by the table, waiting in ``of_list`` or representing it."""
        self.state = of_class(f"{self.path} {self.group}", self.state, signal)
        self.of_list = of_list

    @property
    def may_keep_verdict(self) -> bool:
        """Whether it may keep its verdict until the next walk, although room rose since: it was
        refused, and not only to let others go first."""
        return self.refusal is not None and not self.refusal.reason.lets_others_first

    @property
    def is_inadmissible(self) -> bool:
        """Whether its verdict stands, so that it need not be tried."""
        return self.state is ClassState.INADMISSIBLE

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
