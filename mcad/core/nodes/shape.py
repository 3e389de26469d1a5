"""Shapes: what equal gangs have in common, so that equal gangs share their verdicts.

A shape is a value: the demand of a gang, and nothing of its fate. The classes and the last verdict
of a shape in one capacity are its ``Prospect``; every capacity has its own prospects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from mcad.core.nodes.resources import total, with_pod_slot
from mcad.core.state.model import Constraint, HostPort, PodSet, Resources, Topology
from mcad.core.state.records import replace

_SHAPES = 4096  # how many are cached: thousands of AppWrappers come from one generator


class ClassKey(NamedTuple):
    """The properties that make pods equal for kube-scheduler; a ``cap`` of 0 is no cap."""

    request: Resources
    constraint: Constraint
    cap: int
    ports: tuple[HostPort, ...] = ()

    @classmethod
    def of(cls, pod_set: PodSet) -> ClassKey:
        """The class of the set's pods."""
        cap = 1 if pod_set.per_node else pod_set.cap
        return cls(pod_set.request, pod_set.constraint, cap, pod_set.ports)


Neighbours = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The pods of the gang that may be beside the pods of a set."""


def neighbours(pod_set: PodSet) -> Neighbours:
    """Which pods of the gang may be beside this set's pods; pods of one class are interchangeable
    if these are equal. A cap counts its own set, unless equal sets exclude each other as well."""
    is_alone = pod_set.per_node or (pod_set.cap and not pod_set.excludes(pod_set))
    own = (pod_set.item, pod_set.index) if is_alone else ()
    return (pod_set.repels, pod_set.repelled, own)


class Alike(NamedTuple):
    """All pods of a gang that are interchangeable and of one topology group, from any of its sets.

    ``positions`` are the indices of these sets within the gang. With ``per_node`` the pods are
    those of one DaemonSet, one per node that admits them, and ``declared`` is 0. ``apart`` are the
    indices in ``Shape.alike`` of the pods that share no node with these pods.
    """

    key: ClassKey
    declared: int
    positions: tuple[int, ...]
    per_node: bool
    apart: frozenset[int] = frozenset()


class TopologyGroup(NamedTuple):
    """Sets of a gang for which one topology domain has to be chosen: the indices of the sets, and
    of their pods in ``Shape.alike``. The topology is that of the first set."""

    topology: Topology
    positions: tuple[int, ...]
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The demand of a gang; shapes are equal if their ``sets`` are, which have no paths here.

    ``unmodelled`` names the predicates that no fit test looks at, ``fixed`` is the demand that does
    not depend on the number of nodes, with the ``pods`` slots and without host ports, ``demanded``
    are the resources of ``fixed``, and ``per_node`` tells whether the gang has DaemonSets.
    ``groups`` have no topology domain yet.
    """

    sets: tuple[PodSet, ...]
    alike: tuple[Alike, ...] = ()
    unmodelled: tuple[str, ...] = ()
    fixed: Resources = ()
    per_node: bool = False
    groups: tuple[TopologyGroup, ...] = ()
    demanded: frozenset[str] = frozenset()
    _hash: int | None = field(default=None, repr=False)

    @classmethod
    def of(cls, sets: tuple[PodSet, ...]) -> Shape:
        """The shape of these sets; mostly the identical object for equal sets."""
        return _of(tuple(replace(s, path="") if s.path else s for s in sets))

    def __reduce__(self) -> tuple[Callable[[tuple[PodSet, ...]], Shape], tuple[tuple[PodSet, ...]]]:
        """Pickle the sets only: the hash of a text differs between processes."""
        return _of, (self.sets,)

    def __hash__(self) -> int:
        if self._hash is None:  # hashed in every pass, and the sets are long
            object.__setattr__(self, "_hash", hash(self.sets))
        return self._hash  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Shape):
            return NotImplemented
        return self.sets == other.sets


@lru_cache(_SHAPES)
def _of(bare: tuple[PodSet, ...]) -> Shape:
    alike = _alike(bare)
    fixed = total((with_pod_slot(a.key.request), a.declared) for a in alike if not a.per_node)
    return Shape(
        bare,
        alike,
        tuple(dict.fromkeys(name for s in bare for name in s.unmodelled)),
        fixed,
        any(a.per_node for a in alike),
        _groups(bare, alike) if any(s.topology for s in bare) else (),
        frozenset(name for name, _ in fixed),
    )


def _group(position: int, pod_set: PodSet) -> str | int | None:
    """The topology group of a set, None without topology or if per node."""
    if pod_set.topology is None or pod_set.per_node:
        return None
    return pod_set.topology.group or position


def _groups(sets: tuple[PodSet, ...], alike: tuple[Alike, ...]) -> tuple[TopologyGroup, ...]:
    found: dict[str | int, list[int]] = {}
    for position, pod_set in enumerate(sets):
        group = _group(position, pod_set)
        if group is not None and pod_set.domain is None and pod_set.replicas > 0:
            found.setdefault(group, []).append(position)
    return tuple(
        TopologyGroup(
            topology,
            tuple(positions),
            tuple(n for n, one in enumerate(alike) if one.positions[0] in positions),
        )
        for positions in found.values()
        if (topology := sets[positions[0]].topology) is not None
    )


def _alike(sets: tuple[PodSet, ...]) -> tuple[Alike, ...]:
    together: dict[tuple[ClassKey, Neighbours, str | int | None], list[int]] = {}
    for position, pod_set in enumerate(sets):
        if pod_set.per_node or pod_set.replicas > 0:
            key = ClassKey.of(pod_set), neighbours(pod_set), _group(position, pod_set)
            together.setdefault(key, []).append(position)
    found = []
    for positions in together.values():
        first = sets[positions[0]]
        declared = 0 if first.per_node else sum(sets[position].replicas for position in positions)
        found.append(Alike(ClassKey.of(first), declared, tuple(positions), first.per_node))
    if not any(one.repels for one in sets):
        return tuple(found)
    firsts = [sets[one.positions[0]] for one in found]
    return tuple(
        one._replace(apart=frozenset(n for n, each in enumerate(firsts) if each.excludes(first)))
        for one, first in zip(found, firsts, strict=True)
    )
