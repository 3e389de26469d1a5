"""Which nodes of a pool gained room, told to those who know all its nodes with room for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from sortedcontainers import SortedDict

from mcad.core.capacity.limits import NEWS_MAX, NEWS_PER_FOLLOWER
from mcad.core.model import Resources

if TYPE_CHECKING:
    from mcad.core.capacity.pools import Row


class Follower(Protocol):
    """Pods that know of every node that has room for one of them. ``request`` is never empty."""

    request: Resources

    def rose(self, row: Row) -> None:
        """The node gained room, and has enough of the first resource of the request."""

    def lose_track(self) -> None:
        """Too many nodes rose to name them."""


class News:
    """The nodes of one pool that rose and were not told of, and who wants to know.

    Followers are sorted by what they ask for of the resource that is scarcest for them, so that a
    node is shown only to those that it has enough of that for.
    """

    __slots__ = ("_count", "_followers", "_risen")

    def __init__(self) -> None:
        self._count = 0
        self._followers: dict[str, SortedDict[int, dict[Follower, None]]] = {}
        self._risen: dict[int, Row] = {}

    def rise(self, row: Row) -> None:
        """The node gained room."""
        if self._followers:
            self._risen[row.rank] = row

    def forget(self, row: Row) -> None:
        """The node left the pool."""
        self._risen.pop(row.rank, None)

    def follow(self, follower: Follower) -> None:
        """Tell it of every node that rises from now on; what rose before has been told."""
        name, n = follower.request[0]
        self._count += 1
        if name not in self._followers:
            self._followers[name] = SortedDict()
        self._followers[name].setdefault(n, {})[follower] = None

    def unfollow(self, follower: Follower) -> None:
        """Tell it nothing more."""
        name, n = follower.request[0]
        self._count -= 1
        del self._followers[name][n][follower]
        if not self._followers[name][n]:
            del self._followers[name][n]
        if not self._followers[name]:
            del self._followers[name]

    def untold(self) -> Iterable[Row]:
        """The nodes that rose since the last telling."""
        return self._risen.values()

    def tell(self) -> None:
        """Pass the news on, or that they are too many to be worth it."""
        if not self._risen:
            return
        risen, self._risen = self._risen, {}
        if len(risen) * self._count > NEWS_MAX or len(risen) > NEWS_PER_FOLLOWER * self._count:
            self._dismiss()
            return
        for row in risen.values():
            for name, known in self._followers.items():
                free = row.free.get(name, 0)
                for n, followers in known.items():
                    if n > free:
                        break
                    for follower in followers:
                        follower.rose(row)

    def _dismiss(self) -> None:
        lost, self._followers, self._count = self._followers, {}, 0
        for known in lost.values():
            for followers in known.values():
                for follower in followers:
                    follower.lose_track()
