"""Deleted QuotaSubtrees that count as before for a while, because they may be about to return.

``kubectl replace --force``, delete and apply, and a CRD that is created anew remove an object
before its successor exists. Until the successor (same namespace and name) is seen or the grace
period ends, the tree keeps its limits. After a restart the statuses of AppWrappers tell which trees
existed, but not their limits: nothing is admitted in an *expected* tree. An object that is not back
within ``RETURN_TIME`` is taken for deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mcad.core.state.quota_records import QuotaSubtree
from mcad.core.state.units import SECOND, Duration, Instant, format_clock, format_duration

RETURN_TIME: Duration = 10 * SECOND
"""A replacement comes within this time; a shorter absence changes and records nothing."""

_UNTIL = " until it is back, "


@dataclass(slots=True)
class _Absence:
    """``subtree`` is None for an expected tree; ``since`` is 0 before the first ``expire``, unless
    it is on record. ``lasts`` is true from ``RETURN_TIME`` on."""

    tree: str
    subtree: QuotaSubtree | None = None
    since: Instant = 0
    until: Instant = 0
    lasts: bool = False

    @property
    def title(self) -> str:
        """The name of the absent object, for messages."""
        if self.subtree is None:
            return f'Quota tree "{self.tree}"'
        return f'QuotaSubtree {self.subtree.title} of tree "{self.tree}"'


class AbsenceNews(NamedTuple):
    """An absence began, or its grace period ended (``is_over``). ``subtree`` is None for an
    expected tree."""

    tree: str
    subtree: QuotaSubtree | None
    is_over: bool
    text: str


class AbsentSubtrees:
    """The QuotaSubtrees that are absent, and until when they count."""

    def __init__(self, grace: Duration) -> None:
        """``grace`` is how long an absent QuotaSubtree counts; 0: not at all."""
        self._grace = grace
        self._absent: dict[tuple[str, str], _Absence] = {}  # by namespace (tree: "") and name
        self._news: list[AbsenceNews] = []

    # -- observations --------------------------------------------------------------------------

    def leave(self, subtree: QuotaSubtree) -> None:
        """Note a deleted QuotaSubtree; a QuotaSubtree without nodes never counted."""
        if self._grace and subtree.tree and subtree.children:
            key = (subtree.namespace, subtree.name)
            self._absent[key] = _Absence(subtree.tree, subtree)

    def returned(self, namespace: str, name: str) -> str | None:
        """End the absence of an object whose successor exists; returns the tree in which the object
        counted until now, None if it did not count."""
        before = self._absent.pop((namespace, name), None)
        return before.tree if before is not None else None

    def expect(self, tree: str, since: Instant = 0) -> None:
        """Expect a tree in which AppWrappers counted before a restart; ``since`` is when it was
        deleted, if that is on record."""
        if self._grace:
            self._absent["", tree] = _Absence(tree, since=since)

    def arrived(self, tree: str) -> None:
        """Expect the tree no more: its root exists, maybe without nodes."""
        self._absent.pop(("", tree), None)

    def expire(self, now: Instant) -> set[str]:
        """Begin and end grace periods; returns the names of the trees in which a period ended."""
        ended: set[str] = set()
        for key, one in list(self._absent.items()):
            if not one.until:
                one.since = one.since or now
                one.until = one.since + self._grace
                self._news.append(AbsenceNews(one.tree, one.subtree, False, self._text(one)))
            one.lasts = one.since + RETURN_TIME <= now
            if one.until <= now:
                del self._absent[key]
                ended.add(one.tree)
                text = f"{one.title} did not come back: it does not count any more."
                self._news.append(AbsenceNews(one.tree, one.subtree, True, text))
        return ended

    # -- answers -------------------------------------------------------------------------------

    @property
    def next_change(self) -> Instant:
        """When the next absence is taken for a deletion or its grace period ends, 0 without
        absences."""
        ends = (o.until if o.lasts else o.since + RETURN_TIME for o in self._absent.values())
        return min(ends, default=0)

    def lasting(self, tree: str, root: str) -> Instant:
        """Since when the root of a tree is deleted; 0 if it exists, or may be about to return.
        ``root`` is the uid of its QuotaSubtree, "" for an expected tree."""
        for one in self._absent.values():
            uid = one.subtree.uid if one.subtree is not None else ""
            if one.lasts and one.tree == tree and uid == root:
                return one.since
        return 0

    def expects(self, tree: str) -> bool:
        """Whether the tree was in force before a restart, and has had no root since."""
        return ("", tree) in self._absent

    def of(self, tree: str) -> list[QuotaSubtree]:
        """The absent QuotaSubtrees that count in a tree."""
        return [one.subtree for one in self._absent.values() if one.tree == tree and one.subtree]

    def trees(self) -> set[str]:
        """The trees with absent objects."""
        return {one.tree for one in self._absent.values()}

    def texts(self, tree: str) -> Iterator[str]:
        """A sentence per absence in a tree."""
        return (self._text(one) for one in self._absent.values() if one.tree == tree)

    def take_news(self) -> list[AbsenceNews]:
        """The absences that began or ended since the last call."""
        news, self._news = self._news, []
        return news

    def _text(self, one: _Absence) -> str:
        what = "is gone: it counts as before"
        if one.subtree is None:
            what = "was in force before the restart and has no root now: nothing is admitted there"
        if not one.until:  # before the first ``expire``
            return f"{one.title} {what}{_UNTIL}for {format_duration(self._grace)} at most."
        return f"{one.title} {what}{_UNTIL}or until {format_clock(one.until)}."


def reports_absence(message: str) -> bool:
    """Whether a message has a sentence on an absence."""
    return _UNTIL in message
