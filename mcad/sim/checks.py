"""Whether an object is what its kind says: schemas, defaults and rules, brought together.

The order is the real server's: unknown fields are dropped (or refused), defaults filled in, then
the schema checks, and only what passes it is judged by rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcad.sim import failures
from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind
from mcad.sim.schema import Node, compiled, default, prune
from mcad.sim.values import validate

if TYPE_CHECKING:
    from mcad.sim.registry import Write

Json = dict[str, Any]


class Checks:
    """The checks of every kind, made when they are first needed."""

    def complete(self, kind: Kind, obj: Json, how: Write) -> Json:
        """The object with defaults and without unknown fields; raises Failure 400."""
        schema = _schema(kind)
        if schema is None:
            return obj
        known, unknown = prune(obj, schema)
        _tell_unknown(kind, unknown, how)
        return default(known, schema)

    def create_faults(self, kind: Kind, obj: Json) -> list[Cause]:
        """What is wrong with a new object."""
        schema = _schema(kind)
        return validate(obj, schema) if schema is not None else []

    def update_faults(self, kind: Kind, new: Json, old: Json, subresource: str) -> list[Cause]:  # noqa: ARG002
        """What is wrong with a change; what was wrong before and is the same may stay."""
        schema = _schema(kind)
        return validate(new, schema, old) if schema is not None else []


def _schema(kind: Kind) -> Node | None:
    return compiled(kind.schema) if kind.schema is not None else None


def _tell_unknown(kind: Kind, unknown: list[str], how: Write) -> None:
    if not unknown or how.validation == "Ignore":
        return
    told = [f'unknown field "{path}"' for path in unknown]
    if how.validation == "Warn":
        how.warnings += told
        return
    title = f"{kind.kind} in version {kind.version!r}".replace("'", '"')
    raise failures.bad_request(
        f"{title} cannot be handled as a {kind.kind}: strict decoding error: {', '.join(told)}"
    )
