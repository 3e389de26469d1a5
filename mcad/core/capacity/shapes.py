"""Shapes: what equal gangs have in common, interned, so that equal gangs share their verdicts.

Two gangs are of one shape if their pod sets are equal in everything but the path they were read
from. Pools that no living shape and no reservation uses are dropped from time to time: users invent
constraints for ever, and every pool costs something at every change of a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple
from weakref import WeakValueDictionary

from mcad.core.capacity.ledger import Ledger
from mcad.core.capacity.limits import POOLS_KEPT_MIN
from mcad.core.capacity.placement import admits, in_service
from mcad.core.capacity.podclass import PodClass
from mcad.core.capacity.pools import Pool
from mcad.core.capacity.ports import is_port
from mcad.core.capacity.resources import total
from mcad.core.model import Constraint, Node, PodSet, Refusal, Resources

ClassKey = tuple[Resources, Constraint, int]


@dataclass(slots=True, eq=False)
class Part:
    """All pods of a gang that are of one class, whichever sets they belong to.

    ``positions`` are the indices of those sets within the gang. A ``per_node`` part is one
    DaemonSet: it has as many pods as there are nodes that admit them.
    """

    pods: PodClass
    declared: int
    positions: tuple[int, ...]
    per_node: bool

    @property
    def replicas(self) -> int:
        """How many pods the part has now."""
        return len(self.pods.pool.rows) if self.per_node else self.declared


class Short(NamedTuple):
    """A resource that is short in the sum of pools: as long as it is, nothing else matters.

    Pools that stand for others do so only as long as ``membership`` is what it was; -1 says that
    they stand for themselves.
    """

    pools: Sequence[Pool]
    ledger: Ledger
    membership: int
    resource: str
    needed: int
    risen: int

    def lasts(self) -> bool:
        """Whether it is still short, and surely so."""
        if self.membership not in (-1, self.ledger.membership):
            return False
        left = self.needed
        for pool in self.pools:
            left -= pool.total.get(self.resource, 0)
        return left > 0


class Few(NamedTuple):
    """Pods that do not find enough slots even by themselves: as long as that is so, likewise."""

    pods: PodClass
    replicas: int
    risen: int

    def lasts(self) -> bool:
        """Whether there are still too few slots; a few nodes are looked at if some changed."""
        return self.pods.missing(self.replicas) > 0


@dataclass(slots=True, eq=False, weakref_slot=True)
class Shape:
    """The demand of a gang. Compared by identity: ``Shapes`` interns.

    ``pools`` are those whose rises concern it, ``fixed`` is the demand that does not depend on the
    number of nodes, ``per_node`` tells whether there is another.

    The rest is what its last tests found out. ``watched`` is the part that refused it, to be asked
    first (R4), and ``obstacle`` what surely keeps it out. ``searched`` and ``found`` are
    ``latest_rise()`` at its last search on nodes and the verdict, which stands until something
    rises; ``again`` counts as a rise, too. ``widest`` are the pools whose sums are that of all its
    nodes, None if there are none such, and the membership of pools that this holds for.
    ``emptied`` is the change at which it was tried on emptied nodes, and whether it fitted.
    """

    sets: tuple[PodSet, ...]
    parts: tuple[Part, ...]
    pools: tuple[Pool, ...]
    unmodelled: tuple[str, ...]
    fixed: Resources
    per_node: bool
    watched: int = 0
    obstacle: Short | Few | None = None
    searched: int = -1
    found: Refusal | None = None
    again: int = 0
    widest: tuple[int, Sequence[Pool] | None] = (-1, None)
    emptied: tuple[int, bool] = (-1, False)

    @property
    def demand(self) -> Resources:
        """What the whole gang declares, with the ``pods`` slots."""
        if not self.per_node:
            return self.fixed
        return total((part.pods.request, part.replicas) for part in self.parts)

    def rises(self) -> int:
        """A number that changes whenever something rose that may let the refused shape in (R4).

        Compare it with what it was right after ``refusal``: while it is the same, the gang is
        refused, although the figures of the refusal grow old.
        """
        latest, obstacle = self.latest_rise(), self.obstacle
        if obstacle is None or latest == obstacle.risen or not obstacle.lasts():
            return latest
        return obstacle.risen

    def latest_rise(self) -> int:
        """The change at which something last rose in one of its pools."""
        latest = self.again
        for pool in self.pools:
            latest = max(latest, pool.risen)
            # A node less is a pod less: what is a fall for others may let a DaemonSet in.
            if self.per_node and pool.shifted > latest:
                latest = pool.shifted
        return latest


class Shapes:
    """Interns shapes, pod classes and pools. Shapes and classes live as long as somebody holds
    them; ``everywhere`` holds every node in service and stays."""

    def __init__(self, ledger: Ledger, *, on_nodes: bool) -> None:
        self._ledger = ledger
        self._on_nodes = on_nodes
        self.everywhere = ledger.pool(in_service)
        self._pools: dict[Constraint, Pool] = {}
        self._pools_max = POOLS_KEPT_MIN
        self._classes: WeakValueDictionary[ClassKey, PodClass] = WeakValueDictionary()
        self._shapes: WeakValueDictionary[tuple[PodSet, ...], Shape] = WeakValueDictionary()

    def shape(self, sets: tuple[PodSet, ...]) -> Shape:
        """The shape of these sets; equal sets have the same one."""
        key = tuple(replace(s, path="") for s in sets)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = self._make(key)
            self._drop_unused_pools()
        return shape

    def pod_class(self, pod_set: PodSet) -> PodClass:
        """The class of the set's pods."""
        cap = 1 if pod_set.per_node else pod_set.cap
        load = self._ledger.load(pod_set.request, pod_set.ports)
        if pod_set.ports and not any(is_port(name) for name, _ in load):
            cap = 1  # the books do not have them, but they exclude each other in any case
        key = (load, pod_set.constraint, cap)
        pods = self._classes.get(key)
        if pods is None:
            pool = self._pool(pod_set.constraint)
            pods = PodClass(load, pool, cap, self._ledger.log)
            self._classes[key] = pods
        return pods

    def classes(self) -> list[PodClass]:
        """The classes that somebody uses, in the order of their making."""
        return list(self._classes.values())

    def _make(self, sets: tuple[PodSet, ...]) -> Shape:
        parts = self._parts(sets)
        pools = dict.fromkeys(part.pods.pool for part in parts)
        names = dict.fromkeys(name for s in sets for name in s.unmodelled)
        fixed = total((p.pods.request, p.declared) for p in parts if not p.per_node)
        watched = tuple(pools) if self._on_nodes else (self.everywhere,)
        per_node = any(part.per_node for part in parts)
        return Shape(sets, parts, watched, tuple(names), fixed, per_node)

    def _parts(self, sets: tuple[PodSet, ...]) -> tuple[Part, ...]:
        parts: list[Part] = []
        merged: dict[PodClass, Part] = {}
        for position, pod_set in enumerate(sets):
            if pod_set.replicas <= 0 and not pod_set.per_node:
                continue
            pods = self.pod_class(pod_set)
            part = None if pod_set.per_node else merged.get(pods)
            if part is not None:
                part.declared += pod_set.replicas
                part.positions += (position,)
                continue
            declared = 0 if pod_set.per_node else pod_set.replicas
            parts.append(Part(pods, declared, (position,), pod_set.per_node))
            if not pod_set.per_node:
                merged[pods] = parts[-1]
        return tuple(parts)

    def _pool(self, constraint: Constraint) -> Pool:
        pool = self._pools.get(constraint)
        if pool is None:
            pool = self._ledger.pool(partial(_admitted, constraint))
            self._pools[constraint] = pool
        return pool

    def _drop_unused_pools(self) -> None:
        if len(self._pools) <= self._pools_max:
            return
        used = dict.fromkeys(pods.pool for pods in self._classes.values())
        self._pools = {key: pool for key, pool in self._pools.items() if pool in used}
        self._ledger.keep_pools({self.everywhere: None, **used})
        self._pools_max = max(POOLS_KEPT_MIN, 2 * len(self._pools))


def _admitted(constraint: Constraint, node: Node) -> bool:
    return admits(node, constraint)
