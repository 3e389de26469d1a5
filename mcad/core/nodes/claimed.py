"""The nodes that pods of some shapes could go to, all in one: whether others want one of them is a
look at the smaller of two sets of nodes, however many shapes there are (core R5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcad.core.nodes.pools import Pool


class ClaimedNodes:
    """All nodes of some pools. Good as long as no node comes or goes."""

    def __init__(self) -> None:
        self._ranks: dict[int, None] = {}
        self._hit: dict[Pool, None] = {}  # pools with one of the nodes
        self._missed: dict[Pool, int] = {}  # pools without one of the first so many

    def claim(self, pools: tuple[Pool, ...]) -> None:
        """Add the nodes of these pools."""
        for pool in pools:
            self._ranks.update(dict.fromkeys(pool.rows))

    def has_one_of(self, pools: tuple[Pool, ...]) -> bool:
        """Whether one of the nodes is in one of these pools."""
        ranks, hit = self._ranks, self._hit
        if not ranks:
            return False
        for pool in pools:
            if pool in hit:
                return True
            if self._missed.get(pool) == len(ranks):
                continue
            rows, without = pool.base.rows, pool.without
            fewer, more = (ranks, rows) if len(ranks) < len(rows) else (rows, ranks)
            for rank in fewer:
                if rank in more and rank not in without:
                    hit[pool] = None
                    return True
            self._missed[pool] = len(ranks)
        return False
