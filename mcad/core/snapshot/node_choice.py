"""Which nodes a snapshot looks at, and whether a gang would fit on them without AppWrappers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mcad.core.fit.feasible import Part
from mcad.core.fit.greedy import size
from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pools import Row
from mcad.core.nodes.resources import total


def choose(
    parts: Sequence[Part], rows: Iterable[Row], pairs: int, weights: Mapping[str, int]
) -> tuple[list[Row], int]:
    """So few of the nodes that their pairs with the parts are at most half of ``pairs`` (of dozens
    of parts each is put somewhere again in every search), and how many looks that took. Of what the
    gang demands most, these nodes have most free.

    Each part, the largest first, gets nodes of its own on which twice its pods would fit without
    AppWrappers. So a gang that gets all of these surely fits on them in the end.
    """
    demand = total((part.pods.request, part.replicas) for part in parts)
    name = max(demand, key=lambda one: (size((one,), weights), one[0]))[0]
    order = sorted(rows, key=lambda row: (-row.free.get(name, 0), row.rank))
    by_rank = {row.rank: row for row in order}
    most, looks, looked = max(1, pairs // 2 // len(parts)), pairs, 0
    chosen: dict[int, Row] = {}
    for part in sorted(parts, key=lambda part: -size(part.pods.request, weights)):
        missing = 2 * part.replicas
        for row in _admitted(part.pods, by_rank):
            if missing <= 0 or len(chosen) >= most or looked >= looks:
                break
            if row.rank in chosen:
                continue
            looked += 1
            if fit := _idle_slots(part.pods, row):
                chosen[row.rank] = row
                missing -= fit
    return list(chosen.values()), looked


def with_room(parts: Sequence[Part], rows: Sequence[Row]) -> list[Row]:
    """The nodes on which any part has room without AppWrappers."""
    left = {row.rank: row for row in rows}
    # The part that asks for least comes first: it has room on nearly every node.
    for pods in (part.pods for part in sorted(parts, key=lambda part: part.pods.request)):
        for row in _admitted(pods, left):
            if _idle_slots(pods, row):
                del left[row.rank]
    return [row for row in rows if row.rank not in left]


def suffice(parts: Iterable[Part], rows: Iterable[Row]) -> bool:
    """Whether each part by itself has enough room there without AppWrappers."""
    by_rank = {row.rank: row for row in rows}
    return all(_has_room(part, _admitted(part.pods, by_rank)) for part in parts)


def _has_room(part: Part, rows: Iterable[Row]) -> bool:
    missing = part.replicas
    for row in rows:
        if missing <= 0:
            return True
        missing -= _idle_slots(part.pods, row)
    return missing <= 0


def _admitted(pods: PodClass, rows: Mapping[int, Row]) -> list[Row]:
    """Those of the rows, by rank, that pods of the class may go to, in their order; or all, where
    the pool is not smaller: a constraint may name a few nodes only."""
    base = pods.pool.base.rows
    if len(base) >= len(rows):
        return list(rows.values())
    return [row for rank, row in rows.items() if rank in base]


def _idle_slots(pods: PodClass, row: Row) -> int:
    """For how many such pods the node would have room without AppWrappers."""
    pool, rank = pods.pool, row.rank
    if rank not in pool.base.rows or rank in pool.without:
        return 0
    return slots(row.idle, pods.request, pods.cap)
