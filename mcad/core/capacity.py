"""The capacity half of the core behind one facade: what is there, what is promised, what fits.

STUB: signatures only, being filled in.
"""

from dataclasses import dataclass

from mcad.core.model import Node, Pod, PodCounts, PodSet, Refusal, Resources, Settings


class Shape:
    """The interned demand of a gang."""

    sets: tuple[PodSet, ...]

    @property
    def demand(self) -> Resources:
        """Total declared demand, with the ``pods`` slots."""
        raise NotImplementedError

    def rises(self) -> int:
        """Changes whenever something rose in one of its pools (core rule R4)."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node's books; ``free`` may be negative."""

    name: str
    allocatable: Resources
    used: Resources
    reserved: Resources
    free: Resources


@dataclass(frozen=True, slots=True)
class CapacityReport:
    """All nodes by name, their sum (free clamped per node), and reservations without a node."""

    nodes: tuple[NodeReport, ...]
    totals: NodeReport
    adrift: Resources


class Capacity:
    """Observations change the books and never decide; questions never change what they answer."""

    def __init__(self, settings: Settings) -> None:
        raise NotImplementedError

    def node_seen(self, node: Node) -> None:
        raise NotImplementedError

    def node_gone(self, name: str) -> None:
        raise NotImplementedError

    def pod_seen(self, pod: Pod) -> None:
        raise NotImplementedError

    def pod_gone(self, uid: str) -> None:
        raise NotImplementedError

    def shape(self, sets: tuple[PodSet, ...]) -> Shape:
        raise NotImplementedError

    def refusal(self, shape: Shape) -> Refusal | None:
        raise NotImplementedError

    def compete(self, one: Shape, other: Shape) -> bool:
        raise NotImplementedError

    def reserve(
        self, uid: str, attempt: int, shape: Shape, sets: tuple[PodSet, ...]
    ) -> Refusal | None:
        raise NotImplementedError

    def adopt(self, uid: str, attempt: int, shape: Shape, sets: tuple[PodSet, ...]) -> None:
        raise NotImplementedError

    def want(self, uid: str, item: int, index: int, want: int | None) -> None:
        raise NotImplementedError

    def freeze(self, uid: str) -> None:
        raise NotImplementedError

    def release(self, uid: str) -> None:
        raise NotImplementedError

    def expire(self, uid: str) -> int:
        raise NotImplementedError

    def holds(self, uid: str) -> bool:
        raise NotImplementedError

    def pod_counts(self, uid: str) -> PodCounts:
        raise NotImplementedError

    def outstanding(self, uid: str) -> tuple[int, ...]:
        raise NotImplementedError

    def rehome(self) -> None:
        raise NotImplementedError

    def would_fit_emptied(self, shape: Shape) -> bool:
        raise NotImplementedError

    def totals(self) -> CapacityReport:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError
