"""The rights to evict as docs/use/reservations.md and ADR 29 have them, as plainly as can be.

Nothing of the core's code is used: every answer is worked out from shares, charges and priorities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import combinations, permutations

from mcad.core.state.model import Resources
from mcad.core.state.quota_records import Designation
from tests.core.quotas import Model, leaf_of


class Rank(IntEnum):
    """The rights, the best one first."""

    RECLAIM = 0
    PRIORITY = 1
    OWN_SHARE = 2


@dataclass
class Rights:
    """What one AppWrapper that waits, charged at ``where`` for its ``demand``, may evict.

    ``priorities`` are those of the AppWrappers that hold room. ``free`` is how much of a resource
    is free now on the nodes that it may use, in sum; ``fits``: whether it fits without some of
    them.
    """

    model: Model
    where: Designation
    demand: Resources
    priority: int
    priorities: dict[str, int]
    free: Callable[[str], int]
    fits: Callable[[frozenset[str]], bool]
    reclaim: bool
    preemption: bool
    _known: dict[tuple[str, frozenset[str]], Rank | None] = field(default_factory=dict)

    def way(self, where: Designation, tree: str) -> list[str]:
        return self.model.above(tree, leaf_of(where, tree))

    def usage(self, tree: str, node: str, resource: str, gone: frozenset[str]) -> int:
        return sum(
            dict(amounts).get(resource, 0)
            for uid, (where, amounts) in self.model.charges.items()
            if uid not in gone and node in self.way(where, tree)
        )

    def share(self, tree: str, node: str, resource: str) -> int:
        return dict(self.model.placed(tree)[node][1].nominal).get(resource, 0)

    def asked(self, tree: str) -> dict[str, int]:
        named = self.model.named(tree)
        return {name: n for name, n in self.demand if name in named}

    def _within(self, tree: str, node: str, name: str) -> bool:
        """Whether it asks for this within the share of the node, as things are now."""
        used = self.usage(tree, node, name, frozenset())
        return used + self.asked(tree)[name] <= self.share(tree, node, name)

    def _owned(self, tree: str, below: list[str]) -> set[str]:
        return {r for r in self.asked(tree) if all(self._within(tree, node, r) for node in below)}

    def _is_idle(self, tree: str, name: str) -> bool:
        """Whether it could borrow that now, without an eviction."""
        limits = self.model.limits(tree, leaf_of(self.where, tree))
        is_left = all(self._within(tree, node, name) for node in limits)
        return is_left and self.free(name) >= dict(self.demand)[name]

    def right(self, uid: str, gone: frozenset[str]) -> Rank | None:
        """By which right the AppWrapper may be evicted when those are gone."""
        if (uid, gone) not in self._known:
            self._known[uid, gone] = self._right(uid, gone)
        return self._known[uid, gone]

    def _right(self, uid: str, gone: frozenset[str]) -> Rank | None:
        where, amounts = self.model.charges[uid]
        held = {name for name, n in amounts if n}
        reclaims, borrows_owned = self.reclaim, False
        preempts = self.preemption and self.priorities[uid] < self.priority
        borrows_any, is_own_leaf = False, True
        for tree in self.model.trees():
            mine, theirs = self.way(self.where, tree), self.way(where, tree)
            shared = next(node for node in mine if node in theirs)
            same = mine[0] == theirs[0]
            owned = self._owned(tree, mine[: mine.index(shared)])
            others = self.asked(tree).keys() - owned
            lent = {
                name
                for name in self.asked(tree).keys() & held
                if not same
                and all(
                    self.usage(tree, node, name, gone) > self.share(tree, node, name)
                    for node in theirs[: theirs.index(shared)]
                )
            }
            borrows_any |= bool(lent)
            borrows_owned |= bool(lent & owned)
            is_own_leaf &= same
            reclaims &= all(self._is_idle(tree, name) for name in others)
            preempts &= same or bool(lent) or not others
        if reclaims and borrows_owned:
            return Rank.RECLAIM
        if not preempts:
            return None
        return Rank.PRIORITY if borrows_any or is_own_leaf else Rank.OWN_SHARE

    def allowed(self, some: Iterable[str], worst: Rank = Rank.OWN_SHARE) -> bool:
        """Whether they may go one after the other, in some order, by no right below that."""
        return any(
            all(self._may(uid, frozenset(line[:i]), worst) for i, uid in enumerate(line))
            for line in permutations(some)
        )

    def _may(self, uid: str, gone: frozenset[str], worst: Rank) -> bool:
        right = self.right(uid, gone)
        return right is not None and right <= worst

    def victims(self, among: Iterable[str], worst: Rank = Rank.OWN_SHARE) -> tuple[str, ...] | None:
        """A smallest set that it may evict and that makes enough room; None if there is none."""
        some = [uid for uid in among if self._may(uid, frozenset(), worst)]
        if not self.fits(frozenset(some)):
            return None
        for n in range(len(some) + 1):
            for each in combinations(some, n):
                if self.fits(frozenset(each)) and self.allowed(each, worst):
                    return each
        return None
