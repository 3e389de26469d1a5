"""The nodes that pods of some shapes could go to, all in one: whether others want one of them is a
look at the smaller of two sets of nodes, however many shapes there are (core R5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcad.core.state.work_bounds import CLAIMED_MEMBERSHIPS_MAX

if TYPE_CHECKING:
    from mcad.core.nodes.pools import KeptPool, Pool, Row


class ClaimedNodes:
    """All nodes of some pools. Good as long as no node comes or goes.

    Each node knows its pools, which answers most questions at once. Where nodes are in thousands of
    pools that would take longer than to look at the nodes of a pool when it is asked for.
    """

    def __init__(self) -> None:
        self._ranks: dict[int, None] = {}
        self._unclaimed: dict[KeptPool, dict[int, Row]] = {}
        self._hit: set[Pool] = set()  # pools with one of the nodes
        self._missed: dict[Pool, int] = {}  # pools without one of the first so many
        self._left = CLAIMED_MEMBERSHIPS_MAX

    def claim(self, pools: tuple[Pool, ...]) -> None:
        """Add the nodes of these pools."""
        for pool in pools:
            unclaimed = self._unclaimed.get(pool.base)
            if unclaimed is None:
                unclaimed = self._unclaimed[pool.base] = pool.base.rows.copy()
            for rank in [each for each in unclaimed if each not in pool.without]:
                row = unclaimed.pop(rank)
                self._ranks[rank] = None
                self._left -= len(row.pools)
                if self._left >= 0:
                    self._hit.update(row.pools)

    def has_one_of(self, pools: tuple[Pool, ...]) -> bool:
        """Whether one of the nodes is in one of these pools."""
        if not self._ranks:
            return False
        return not self._hit.isdisjoint(pools) or any(map(self._has_one_of, pools))

    def _has_one_of(self, pool: Pool) -> bool:
        ranks, rows = self._ranks, pool.base.rows
        if pool.base is pool and self._left >= 0:
            return False  # each node has named all of its pools
        if self._missed.get(pool) == len(ranks):
            return False
        fewer, more = (ranks, rows) if len(ranks) < len(rows) else (rows, ranks)
        for rank in fewer:
            if rank in more and rank not in pool.without:
                self._hit.add(pool)
                return True
        self._missed[pool] = len(ranks)
        return False
