"""All checks of an object by its kind: types, defaults, schemas and rules.

The order is the real server's: the object is decoded, unknown fields are dropped (or refused),
defaults filled in; then come validation and, on what has the right types, the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.failures import Cause
from mcad.sim.kinds import EVENTS, Kind
from mcad.sim.objects import builtin, decoding, defaults, validation
from mcad.sim.objects.cel import Rules
from mcad.sim.objects.custom import decode_custom, embedded_faults
from mcad.sim.objects.decoding import DecodeError
from mcad.sim.objects.schema import Node, compiled, default, prune
from mcad.sim.objects.values import validate

if TYPE_CHECKING:
    from mcad.sim.writes import Write


class Checks:
    """The checks of every kind, made when they are first needed."""

    def __init__(self) -> None:
        self._rules: dict[Kind, Rules] = {}

    def complete(self, kind: Kind, obj: Json, how: Write) -> Json:
        """The object with defaults and without unknown fields; raises Undecodable."""
        try:
            known, unknown = _decoded(kind, obj)
        except DecodeError as error:
            raise failures.Undecodable(kind, str(error)) from error
        _tell_unknown(kind, unknown, how)
        schema = _schema(kind)
        return defaults.default(kind, known) if schema is None else default(known, schema)

    def as_read(self, kind: Kind, obj: Json) -> Json:
        """A stored object as its schema would have it now, which is how it is read from etcd."""
        schema = _schema(kind)
        return obj if schema is None else default(prune(obj, schema)[0], schema)

    def create_faults(self, kind: Kind, obj: Json) -> list[Cause]:
        """What is wrong with a new object."""
        if kind.storage == EVENTS:
            return []
        return [*validation.validate_create(kind, obj), *self._custom_faults(kind, obj, None)]

    def update_faults(self, kind: Kind, new: Json, old: Json, subresource: str) -> list[Cause]:
        """What is wrong with a change; what was wrong before and is the same may stay."""
        if kind.storage == EVENTS:
            return []
        own = self._custom_faults(kind, new, old, only_status=subresource == "status")
        return [*validation.validate_update(kind, new, old), *own]

    def _custom_faults(
        self, kind: Kind, obj: Json, old: Json | None, *, only_status: bool = False
    ) -> list[Cause]:
        schema = _schema(kind)
        if schema is None:
            return []
        if only_status:
            found = _status_faults(obj, schema, old or {})
        else:
            found = [*validate(obj, schema, old), *embedded_faults(obj, schema)]
        return [*found, *self._rules_of(kind, schema).check(obj, old, found)]

    def _rules_of(self, kind: Kind, schema: Node) -> Rules:
        rules = self._rules.get(kind)
        if rules is None:
            rules = self._rules[kind] = Rules(schema)
        return rules


def _schema(kind: Kind) -> Node | None:
    return compiled(kind.schema) if kind.schema is not None else None


def _status_faults(obj: Json, schema: Node, old: Json) -> list[Cause]:
    """Those of the status alone; the messages name its fields as if it were the object."""
    node = schema.properties.get("status")
    if node is None or "status" not in obj:
        return []
    return [
        Cause(one.reason, one.message, ".".join(filter(None, ("status", one.field))))
        for one in validate(obj["status"], node, old.get("status"))
    ]


def _decoded(kind: Kind, obj: Json) -> tuple[Json, list[str]]:
    """The decoded object, and the paths of its unknown fields."""
    if kind.schema is not None:
        return decode_custom(obj, kind.schema)
    struct = builtin.type_of(kind)
    return (obj, []) if struct is None else decoding.decode(obj, struct)


def _tell_unknown(kind: Kind, unknown: list[str], how: Write) -> None:
    if not unknown or how.validation == "Ignore":
        return
    told = [f'unknown field "{path}"' for path in unknown]
    if how.validation == "Warn":
        how.warnings += told
        return
    raise failures.Undecodable(kind, f"strict decoding error: {', '.join(told)}")
