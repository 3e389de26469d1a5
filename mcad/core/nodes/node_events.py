"""Which nodes of a pool gained room, reported to pod classes that know all its nodes with room for
them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from mcad.core.nodes.sorted_nodes import with_at_least
from mcad.core.state.model import Resources
from mcad.core.state.work_bounds import LOST_STEPS, NEWS_MAX

if TYPE_CHECKING:
    from mcad.core.nodes.pod_signature import PodClass, Rooms
    from mcad.core.nodes.pools import Row


@dataclass(slots=True)
class _Report:
    """A report of all that rose up to a ``change`` to all followers, in parts. It has yet to reach
    those of ``resources``, of the last one those with requests of ``at_least`` so much. ``pairs``
    of a node and a follower are left before all others lose track; ``work`` has been done so far.
    """

    change: int
    resources: list[str]
    pairs: int
    at_least: int = 0
    work: int = 0


class News:
    """The nodes of one pool that gained room, until that is reported to the followers: pod classes
    that know of every node with room for one of their pods. A follower that is asked before reads
    by itself what is new to it.

    Followers are sorted by their request of the resource that is scarcest for them: a larger
    request sees fewer nodes, and none that has too little of it.
    """

    __slots__ = ("_followers", "_report", "_risen")

    def __init__(self) -> None:
        self._followers: dict[str, SortedDict[int, dict[PodClass, None]]] = {}
        self._risen: dict[int, tuple[int, Row]] = {}  # by rank, with its last change, in order
        self._report: _Report | None = None

    def rise(self, row: Row, change: int) -> None:
        """The node gained room."""
        if self._followers:
            self._risen.pop(row.rank, None)
            self._risen[row.rank] = change, row

    def forget(self, row: Row) -> None:
        """The node left the pool."""
        self._risen.pop(row.rank, None)

    def follow(self, follower: PodClass) -> None:
        """Report every node that gains room from now on to this follower."""
        name, n = follower.request[0]
        if name not in self._followers:
            self._followers[name] = SortedDict()
        self._followers[name].setdefault(n, {})[follower] = None

    def unfollow(self, follower: PodClass) -> None:
        """Report nothing more to this follower."""
        name, n = follower.request[0]
        del self._followers[name][n][follower]
        if not self._followers[name][n]:
            del self._followers[name][n]
        if not self._followers[name]:
            del self._followers[name]
        if not self._followers:
            self._risen.clear()

    def since(self, change: int) -> list[Row]:
        """The nodes that gained room after this change, the last first, as far as they are not
        reported to all; this changes nothing."""
        rows = []
        for at, row in reversed(self._risen.values()):
            if at <= change:
                break
            rows.append(row)
        return rows

    @property
    def is_reported(self) -> bool:
        """Whether no report is under way."""
        return self._report is None

    def report(self, most: int) -> int:
        """Report to the followers what had risen when the first of these calls began, in about
        ``most`` steps; another call goes on. When there is too much to report, the remaining
        followers lose track. Returns the work, in steps of about a microsecond."""
        if self._report is None:
            if not self._risen:
                return 0
            change, _ = next(reversed(self._risen.values()))
            self._report = _Report(change, list(self._followers), NEWS_MAX)
        report, before = self._report, self._report.work
        until = before + max(1, most)
        while report.resources and report.work < until:
            if self._report_by_request(report, until):
                report.resources.pop()
        if not report.resources:
            left = self._risen.items()
            self._risen = {rank: one for rank, one in left if one[0] > report.change}
            self._report = None
        return report.work - before

    def end_report(self) -> None:
        """None waits for the report that is under way, if there is one: followers read by
        themselves what it does not reach."""
        self._report = None

    def _report_by_request(self, report: _Report, until: int) -> bool:
        """The same for one resource; returns whether it has reached all of its followers."""
        known = self._followers.get(report.resources[-1])
        if known is None:
            return True
        begun, report.at_least = report.at_least, 0
        rows, lost = [row for _, row in self._risen.values()], []
        for n in known.irange(begun):
            if report.pairs > 0:
                rows = with_at_least(rows, report.resources[-1], n)
            if not rows:
                break
            lost += self._report_alike(report, known[n], rows, until)
            if report.work >= until:
                report.at_least = n
                break
        for follower in lost:
            self.unfollow(follower)
            follower.lose_track()
        return not report.at_least

    def _report_alike(
        self, report: _Report, followers: Iterable[PodClass], rows: list[Row], until: int
    ) -> list[PodClass]:
        """The same for the followers with one request of that resource; the rows have so much.
        Returns those that lose track."""
        risen, lost = self._risen, []
        rooms: dict[tuple[int, Resources], Rooms] = {}  # thousands may ask for the same
        for follower in followers:
            if follower.informed_at >= report.change:
                continue
            if report.work >= until:
                break
            report.pairs -= len(rows)
            if report.pairs < 0:
                report.work += LOST_STEPS
                lost.append(follower)
                continue
            report.work += len(rows)
            key = (follower.informed_at, follower.request)
            found = rooms.get(key)
            if found is None:
                news = [row for row in rows if risen[row.rank][0] > follower.informed_at]
                found = rooms[key] = follower.rooms(news)
            follower.inform(found)
        return lost
