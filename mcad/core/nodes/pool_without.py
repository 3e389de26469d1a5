"""Pools that are another pool without a few nodes: what ``NotIn`` makes of it.

Each of thousands of AppWrappers may name nodes of its own that it does not want. A pool of all
others would be as large as the cluster, and every change of a node would concern all of these
pools. So such a pool keeps nothing but the nodes that it lacks: it looks at the other pool, its
``base``, and leaves them out. What rises in the base counts as risen here, which at worst is a look
too many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from typing import TYPE_CHECKING

from mcad.core.nodes.filters import admits
from mcad.core.state.model import Constraint, Node, Requirement
from mcad.core.state.records import replace

if TYPE_CHECKING:
    from mcad.core.nodes.ledger import Ledger
    from mcad.core.nodes.pools import KeptPool, Pool, Profile, Row

Label = tuple[str, str]


def without_not_in(constraint: Constraint) -> Constraint:
    """The constraint without its ``NotIn`` on labels, so that it admits at least the same nodes."""
    if constraint.affinity is None:
        return constraint
    terms = tuple(tuple(one for one in term if not _is_not_in(one)) for term in constraint.affinity)
    if terms == constraint.affinity:
        return constraint
    # A term of NotIn alone lets in every node without these labels; an empty term, none.
    lets_all_in = any(
        before and not after for before, after in zip(constraint.affinity, terms, strict=True)
    )
    return replace(constraint, affinity=None if lets_all_in else tuple(dict.fromkeys(terms)))


def unwanted(constraint: Constraint) -> tuple[Label, ...]:
    """The labels that its ``NotIn`` name: a node that only these keep out has one of them."""
    found = (one for term in constraint.affinity or () for one in term if _is_not_in(one))
    return tuple(dict.fromkeys((one.key, value) for one in found for value in one.values))


def _is_not_in(one: Requirement) -> bool:
    return one.operator == "NotIn" and not one.field and bool(one.values)


class PoolWithout:
    """The nodes of ``base`` that the constraint admits.

    ``labels`` are those of which each node that it lacks has one; when a node with one of them
    comes or goes, what is ``without`` it ``is_stale``.
    """

    def __init__(self, base: KeptPool, constraint: Constraint, ledger: Ledger) -> None:
        self.base = base
        self.constraint = constraint
        self.labels = unwanted(constraint)
        self.is_stale = True
        self.tails, self.news, self.rung = base.tails, base.news, base.rung
        self.rows: Mapping[int, Row] = _Rows(self)
        self.total: Mapping[str, int] = _Total(self)
        self.profiles: Mapping[Profile, int] = _Profiles(self)
        self._ledger = ledger
        self._without: dict[int, Row] = {}

    @property
    def risen(self) -> int:
        """The change at which a node of the base last gained room."""
        return self.base.risen

    @property
    def shifted(self) -> int:
        """The change at which the nodes of the base last changed."""
        return self.base.shifted

    @property
    def without(self) -> dict[int, Row]:
        """The nodes of the base that the constraint does not admit, by rank."""
        if self.is_stale:
            self.is_stale = False
            base = self.base.rows
            self._without = {
                row.rank: row
                for row in self._ledger.with_labels(self.labels)
                if row.rank in base and not self.admits(row.node)
            }
        return self._without

    def admits(self, node: Node) -> bool:
        """Whether the pool takes the node."""
        return admits(node, self.constraint)

    def shared(self, other: Pool) -> int:
        """How many nodes both pools hold."""
        mine, others = self.base.rows, other.base.rows
        lacking = {**self.without, **other.without}
        gone = [rank for rank in lacking if rank in mine and rank in others]
        return self.base.shared(other.base) - len(gone)


class _Rows(Mapping[int, "Row"]):
    """The rows of the pool by rank."""

    __slots__ = ("_pool",)

    def __init__(self, pool: PoolWithout) -> None:
        self._pool = pool

    def __contains__(self, rank: object) -> bool:
        return rank in self._pool.base.rows and rank not in self._pool.without

    def __getitem__(self, rank: int) -> Row:
        if rank in self._pool.without:
            raise KeyError(rank)
        return self._pool.base.rows[rank]

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._pool.base.rows) - len(self._pool.without)

    def values(self) -> ValuesView[Row]:
        """The rows in the order of their ranks; a copy, which is faster than a walk."""
        return self._all().values()

    def _all(self) -> dict[int, Row]:
        rows = self._pool.base.rows.copy()
        for rank in self._pool.without:
            del rows[rank]
        return rows


class _Total(Mapping[str, int]):
    """The sum of what is free, each node clamped at 0."""

    __slots__ = ("_pool",)

    def __init__(self, pool: PoolWithout) -> None:
        self._pool = pool

    def __getitem__(self, name: str) -> int:
        left = self._pool.base.total[name]
        for row in self._pool.without.values():
            free = row.free.get(name, 0)
            left -= free if free > 0 else 0
        return left

    def __iter__(self) -> Iterator[str]:
        return iter(self._pool.base.total)

    def __len__(self) -> int:
        return len(self._pool.base.total)


class _Profiles(Mapping["Profile", int]):
    """How many of the nodes are of each kind."""

    __slots__ = ("_pool",)

    def __init__(self, pool: PoolWithout) -> None:
        self._pool = pool

    def __getitem__(self, profile: Profile) -> int:
        lacking = self._pool.without.values()
        left = self._pool.base.profiles[profile] - sum(row.profile is profile for row in lacking)
        if not left:
            raise KeyError(profile)
        return left

    def __iter__(self) -> Iterator[Profile]:
        few = len(self._pool.without)
        base = self._pool.base.profiles.items()
        return (profile for profile, nodes in base if nodes > few or profile in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
