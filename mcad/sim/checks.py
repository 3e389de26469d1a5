"""Whether an object is what its kind says: schemas, defaults and rules, brought together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind

if TYPE_CHECKING:
    from mcad.sim.registry import Write

Json = dict[str, Any]


class Checks:
    """Compiled schemas of every kind, made when they are first needed."""

    def complete(self, kind: Kind, obj: Json, how: Write) -> Json:  # noqa: ARG002
        """The object with defaults and without unknown fields; raises Failure 400."""
        return obj

    def create_faults(self, kind: Kind, obj: Json) -> list[Cause]:  # noqa: ARG002
        """What is wrong with a new object."""
        return []

    def update_faults(
        self,
        kind: Kind,  # noqa: ARG002
        new: Json,  # noqa: ARG002
        old: Json,  # noqa: ARG002
        subresource: str,  # noqa: ARG002
    ) -> list[Cause]:
        """What is wrong with a change."""
        return []
