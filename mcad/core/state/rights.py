"""Missing rights to create objects, and the AppWrappers that wait for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mcad.core.state.model import HeldResource, ObjectRef
from mcad.core.state.units import Instant

RightKey = tuple[str, str, str]
"""(namespace, group, resource): the scope of a right to create."""


def right_key(ref: ObjectRef) -> RightKey:
    """The right that is needed to create the object."""
    return (ref.namespace, ref.group, ref.resource)


@dataclass(slots=True)
class MissingRight:
    """A held resource: ``ref`` is one object of it; ``concerned`` are the uids that wait."""

    resource: HeldResource
    ref: ObjectRef
    test_at: Instant = 0
    tests: int = 0
    concerned: dict[str, None] = field(default_factory=dict)


class Rights:
    """The missing rights, and the rights under review: uid -> (attempt, item)."""

    def __init__(self) -> None:
        self.held: dict[RightKey, MissingRight] = {}
        self.asked: dict[RightKey, dict[str, tuple[int, int]]] = {}

    def concern(self, uid: str, refs: Iterable[ObjectRef]) -> None:
        """Let an AppWrapper wait for every held resource that it contains."""
        for ref in refs:
            held = self.held.get(right_key(ref))
            if held is not None:
                held.concerned[uid] = None
