"""Nodes with their books, and pools: the nodes that one placement constraint admits.

A pool keeps what saves most verdicts a look at nodes: the sum of what is free (each node clamped at
0, because an overcommitted node has nothing to lend), how many nodes it shares with other pools,
its nodes sorted (``tails``), and which of them gained room since the last look (``news``). A pool
that is another without a few nodes keeps none of that (pool_without.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from mcad.core.nodes.node_events import News
from mcad.core.nodes.pool_without import Label, PoolWithout
from mcad.core.nodes.resources import Books, book
from mcad.core.nodes.sorted_nodes import Tails
from mcad.core.state.model import Node
from mcad.core.state.work_bounds import MEMBERSHIPS_PER_POOL

if TYPE_CHECKING:
    from mcad.core.nodes.pod_signature import PodClass


@dataclass(slots=True, eq=False)
class Profile:
    """What nodes of one kind have allocatable; one for all of them, for there are few kinds."""

    amounts: Books
    nodes: int = 0


@dataclass(slots=True, eq=False)
class Row:
    """One node as the ledger knows it.

    ``rank`` is never reused: a node whose labels, taints or readiness change is removed and added
    under a new one (core rule R4). ``free`` is allocatable less use and assumed pods and may be
    negative; ``idle`` is allocatable less the use of pods that belong to no AppWrapper.
    ``reserved`` is the part of the assumed amounts that belongs to a reservation, whose owner has
    the uid ``reserved_for``: it is not free for others, but it takes nothing from pods that are
    there. ``sums`` and ``idle_sums`` are the books of its topology domains.
    """

    rank: int
    node: Node
    profile: Profile
    free: Books
    idle: Books
    pools: dict[KeptPool, None] = field(default_factory=dict)
    reserved_for: str = ""
    reserved: Books = field(default_factory=dict)
    sums: list[Books] = field(default_factory=list)
    idle_sums: list[Books] = field(default_factory=list)

    @property
    def overcommitted(self) -> bool:
        """Whether more is used and assumed than there is, reservations aside."""
        if not self.reserved:
            return min(self.free.values()) < 0
        return any(self.unreserved(name) < 0 for name in self.free)

    @property
    def has_room(self) -> bool:
        """Whether, reservations aside, there is room for some of each reserved resource."""
        free = self.free
        return all(free.get(name, 0) + n > 0 for name, n in self.reserved.items())

    def to_lend(self) -> list[tuple[str, int]]:
        """What is free, 0 where more is used than there is."""
        return [(name, n if n > 0 else 0) for name, n in self.free.items()]

    def unreserved(self, resource: str) -> int:
        """What would be free without the reservation on this node."""
        return self.free.get(resource, 0) + self.reserved.get(resource, 0)

    @property
    def owes_reservation(self) -> bool:
        """Whether others still use room that is reserved."""
        return any(n and self.free[name] < 0 for name, n in self.reserved.items())

    def introduce(self, resource: str) -> None:
        """Add an entry of 0 for a resource that the node does not have and a pod on it uses, here
        and in the sums, so that later changes need not check for it."""
        self.free[resource] = 0
        for pool in self.pools:
            pool.total.setdefault(resource, 0)


Draft = list[tuple[int, Row, int]]
"""(part, node, pods): where the pods of a gang go, by the parts of one prospect."""

Plan = list[tuple[tuple[int, ...], Row, int]]
"""(sets, node, pods): the same by pod sets, which are named by their positions in the gang; where
there are several their pods are equal. The parts of a gang are others in each of its domains."""


class KeptPool:
    """The nodes that ``admits`` selects, all of which have one of ``labels`` if these are known.

    ``risen`` is the change at which one of them last gained room, ``shifted`` the one at which a
    node joined or left or its allocatable changed. ``profiles`` counts the nodes of each kind, and
    ``neighbours`` the nodes shared with each pool that this one was compared with.
    """

    def __init__(
        self, admits: Callable[[Node], bool], labels: tuple[Label, ...] | None = None
    ) -> None:
        self.admits = admits
        self.labels = labels
        self.without: dict[int, Row] = {}
        self.rows: dict[int, Row] = {}
        self.total: Books = {}
        self.risen = 0
        self.shifted = 0
        self.profiles: dict[Profile, int] = {}
        self.tails = Tails(self.rows)
        self.news = News()
        self.rung: dict[PodClass, None] = {}
        self.neighbours: dict[KeptPool, int] = {}

    @property
    def base(self) -> KeptPool:
        """The pool that keeps the books of this one."""
        return self

    # -- membership ----------------------------------------------------------------------------

    def offer(self, row: Row, change: int) -> None:
        """Take the row in if its node is admitted."""
        if not self.admits(row.node):
            return
        for other in self.neighbours:
            if row.rank in other.rows:
                self._share(other, 1)
        self.rows[row.rank] = row
        row.pools[self] = None
        book(self.total, row.to_lend())
        self._count_profile(row.profile, 1)
        self.shifted = change
        self.rise(row, change)

    def withdraw(self, row: Row, change: int) -> None:
        """Let the row go; it must be in the pool."""
        del self.rows[row.rank]
        del row.pools[self]
        for other in self.neighbours:
            if row.rank in other.rows:
                self._share(other, -1)
        book(self.total, row.to_lend(), -1)
        self._forget_names(row)
        self.news.forget(row)
        self._count_profile(row.profile, -1)
        self.shifted = change

    def _forget_names(self, gone: Row) -> None:
        """Drop resources that none of the nodes has any more: names come and go for ever."""
        for name in gone.free:
            if not self.total[name] and not any(name in row.free for row in self.rows.values()):
                del self.total[name]

    def disband(self) -> None:
        """Let everything go: this pool is not asked for any more."""
        for row in self.rows.values():
            del row.pools[self]
        for other in self.neighbours:
            del other.neighbours[self]

    def shared(self, other: Pool) -> int:
        """How many nodes both pools hold."""
        if other is self:
            return len(self.rows)
        if isinstance(other, PoolWithout):
            return other.shared(self)
        known = self.neighbours.get(other)
        if known is None:
            known = len(self.rows.keys() & other.rows.keys())
            self.neighbours[other] = other.neighbours[self] = known
        return known

    def _share(self, other: KeptPool, more: int) -> None:
        self.neighbours[other] += more
        other.neighbours[self] += more

    def resized(self, old: Profile, new: Profile, change: int) -> None:
        """The allocatable of one of the nodes changed."""
        self._count_profile(old, -1)
        self._count_profile(new, 1)
        self.shifted = change

    def _count_profile(self, profile: Profile, more: int) -> None:
        left = self.profiles.get(profile, 0) + more
        if left:
            self.profiles[profile] = left
        else:
            del self.profiles[profile]

    def rise(self, row: Row, change: int) -> None:
        """The row gained room."""
        self.risen = change
        self.tails.rise(row)
        self.news.rise(row, change)

    def take_rung(self) -> list[PodClass]:
        """The classes of the pool that may have reached their alarm since the last call."""
        rung = list(self.rung)
        self.rung.clear()
        return rung


Pool: TypeAlias = KeptPool | PoolWithout


def largest(pool: Pool) -> Books:
    """The most that any of its nodes offers of each resource."""
    found: Books = {}
    for profile in pool.profiles:
        for name, n in profile.amounts.items():
            found[name] = max(n, found.get(name, 0))
    return found


# -- several pools -------------------------------------------------------------------------------


def meet(one: Pool, other: Pool) -> bool:
    """Whether both hold any node. This is asked of each pair of dozens of pools, so what both hold
    is counted only where they lack so many nodes that it may be none."""
    lacking = len(one.without) + len(other.without)
    return one.base.shared(other.base) > lacking or one.shared(other) > 0


def pools_sharing(pool: Pool, pools: Collection[KeptPool]) -> Collection[KeptPool]:
    """Those of all ``pools`` that hold a node of this one; all of them where that takes too long to
    find out. To compare this one with each of 15,000 would take 70 ms, and keep each answer."""
    found: dict[KeptPool, None] = {}
    left = len(pools) * MEMBERSHIPS_PER_POOL
    for row in pool.rows.values():
        left -= len(row.pools)
        if left < 0 or len(found) == len(pools):
            return pools
        found.update(row.pools)
    return found


def sum_of(pools: Sequence[Pool]) -> Mapping[str, int]:
    """What is free on all nodes of pools that share none."""
    if len(pools) == 1:
        return pools[0].total
    sums: Books = {}
    for pool in pools:
        book(sums, pool.total.items())
    return sums


def rough_total(pools: Sequence[Pool]) -> Books:
    """At most what is free on all nodes of the pools."""
    sums: Books = {}
    for pool in pools:
        for name, n in pool.total.items():
            sums[name] = max(n, sums.get(name, 0))
    return sums


def joint_total(pools: Sequence[Pool]) -> Books:
    """What is free on all nodes of the pools, node by node: O(nodes)."""
    lacking: dict[KeptPool, set[int]] = {}  # what none of the pools with the same base has
    for pool in pools:
        lacking.setdefault(pool.base, set(pool.without)).intersection_update(pool.without)
    rows = {
        rank: row
        for base, without in lacking.items()
        for rank, row in base.rows.items()
        if rank not in without
    }
    sums: Books = {}
    for row in rows.values():
        book(sums, row.to_lend())
    return sums


def widest(pools: tuple[Pool, ...]) -> tuple[Pool, ...] | None:
    """Those of the pools that hold all their nodes and share none; None if there are none such,
    because pools overlap in part: then only adding up nodes tells what they have together."""
    if len(pools) == 1:
        return pools
    found: list[Pool] = []
    sharing: list[tuple[Pool, Pool]] = []
    for pool in pools:
        shared = [(other, pool.shared(other)) for other in found]
        if len(pool.rows) not in [both for _, both in shared]:
            found = [other for other, both in shared if both < len(other.rows)]
            found.append(pool)
            sharing += [(pool, other) for other, both in shared if both]
    kept = set(found)
    apart = not any(one in kept and other in kept for one, other in sharing)
    return tuple(found) if apart else None
