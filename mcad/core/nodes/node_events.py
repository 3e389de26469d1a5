"""Which nodes of a pool gained room, reported to pod classes that know all its nodes with room for
them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from mcad.core.nodes.sorted_nodes import with_at_least
from mcad.core.state.model import Resources
from mcad.core.state.work_bounds import NEWS_MAX

if TYPE_CHECKING:
    from mcad.core.nodes.pod_signature import PodClass, Rooms
    from mcad.core.nodes.pools import Row


class News:
    """The nodes of one pool that gained room and were not reported yet, and the followers: pod
    classes that know of every node with room for one of their pods.

    Followers are sorted by their request of the resource that is scarcest for them: a larger
    request sees fewer nodes, and none that has too little of it.
    """

    __slots__ = ("_followers", "_risen")

    def __init__(self) -> None:
        self._followers: dict[str, SortedDict[int, dict[PodClass, None]]] = {}
        self._risen: dict[int, Row] = {}

    def rise(self, row: Row) -> None:
        """The node gained room."""
        if self._followers:
            self._risen[row.rank] = row

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

    def untold(self) -> Iterable[Row]:
        """The nodes that gained room since the last report."""
        return self._risen.values()

    def tell(self) -> int:
        """Report to the followers. When there is too much to report, the remaining followers lose
        track. Returns the work, in steps of about a microsecond."""
        if not self._risen:
            return 0
        risen, self._risen = list(self._risen.values()), {}
        left = NEWS_MAX
        lost: list[PodClass] = []
        for name, known in self._followers.items():
            rows = risen
            for n, followers in known.items():
                rows = with_at_least(rows, name, n) if left > 0 else rows
                if not rows:
                    break
                left -= len(rows) * len(followers)
                if left < 0:
                    lost += followers
                    continue
                rooms: dict[Resources, Rooms] = {}  # thousands of followers may ask for the same
                for follower in followers:
                    found = rooms.get(follower.request)
                    if found is None:
                        found = rooms[follower.request] = follower.rooms(rows)
                    if found:
                        follower.rose(found)
        for follower in lost:
            self.unfollow(follower)
            follower.lose_track()
        return NEWS_MAX - max(left, 0) + len(lost)
