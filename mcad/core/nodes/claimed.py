"""The nodes of many pools as one set.

Whether another pool has one of these nodes is asked of ten thousand equivalence classes in a pass,
so it must not depend on how many pools there are (core R5).
"""

from __future__ import annotations

from mcad.core.nodes.pool_without import PoolWithout
from mcad.core.nodes.pools import KeptPool, Pool, Row
from mcad.core.state.work_bounds import CLAIMED_MEMBERSHIPS_MAX


class ClaimedNodes:
    """All nodes of the claimed pools. Good as long as no node comes or goes.

    A claimed node names the pools that hold it, so a later question is one lookup. Where nodes are
    in thousands of pools naming them has a bound, and beyond it a question looks at the nodes.
    ``hit`` has the pools that are known to have one of the nodes.
    """

    def __init__(self) -> None:
        self._rows: dict[int, Row] = {}
        self._claimed: set[Pool] = set()
        self._unclaimed: dict[KeptPool, dict[int, Row]] = {}  # of each base, for pools without
        self.hit: set[Pool] = set()
        self._missed: dict[Pool, int] = {}  # pools without one of the first so many
        self._left = CLAIMED_MEMBERSHIPS_MAX

    def claim(self, pools: tuple[Pool, ...]) -> None:
        """Add the nodes of these pools."""
        for pool in pools:
            if pool in self._claimed:
                continue
            self._claimed.add(pool)
            rows = pool.rows if isinstance(pool, KeptPool) else self._take(pool)
            self._rows.update(rows)
            for row in rows.values() if self._left >= 0 else ():
                self._left -= len(row.pools)
                if self._left < 0:
                    break
                self.hit.update(row.pools)

    def has_claimed(self, pools: tuple[Pool, ...]) -> bool:
        """Whether all of these pools are claimed, so that to claim them changes nothing."""
        return self._claimed.issuperset(pools)

    def _take(self, pool: PoolWithout) -> dict[int, Row]:
        """Its nodes that no other pool with the same base has claimed: of thousands of such pools
        all but the first have few."""
        unclaimed = self._unclaimed.get(pool.base)
        if unclaimed is None:
            unclaimed = self._unclaimed[pool.base] = pool.base.rows.copy()
        ranks = [rank for rank in unclaimed if rank not in pool.without]
        return {rank: unclaimed.pop(rank) for rank in ranks}

    def has_one_of(self, pools: tuple[Pool, ...]) -> bool:
        """Whether one of the nodes is in one of these pools."""
        if not self.hit.isdisjoint(pools):
            return True
        return bool(self._rows) and any(map(self._has_one_of, pools))

    def _has_one_of(self, pool: Pool) -> bool:
        claimed, rows = self._rows, pool.base.rows
        if pool.base is pool and self._left >= 0:
            return False  # each node has named all of its pools
        if self._missed.get(pool) == len(claimed):
            return False
        fewer, more = (claimed, rows) if len(claimed) < len(rows) else (rows, claimed)
        for rank in fewer:
            if rank in more and rank not in pool.without:
                self.hit.add(pool)
                return True
        self._missed[pool] = len(claimed)
        return False
