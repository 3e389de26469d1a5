"""The printer columns of a CRD (``additionalPrinterColumns``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from mcad.kube.types import Json
from mcad.sim.kinds import Column, Kind
from mcad.sim.serving.jsonpath import JsonPathError, compiled, find, text_of
from mcad.sim.serving.tables.printer import Printer, age, name, printer, since

_AGE = Column("Age", "date", ".metadata.creationTimestamp")


@lru_cache(256)
def _printer(columns: Sequence[Column]) -> Printer:
    described = [
        {
            "name": one.name,
            "type": one.type,
            "format": one.format,
            "description": one.description
            or f"Custom resource definition column (in JSONPath format): {one.json_path}",
            "priority": one.priority,
        }
        for one in columns
    ]

    def cells(obj: Json, now_us: int) -> list[Any]:
        return [name(obj), *(_cell(one, obj, now_us) for one in columns)]

    return Printer([*printer("Name", cells).columns, *described], cells, [])


def custom(kind: Kind) -> Printer:
    """By the columns of this version; without any, name and age."""
    return _printer(kind.columns or (_AGE,))


def _cell(column: Column, obj: Json, now_us: int) -> Any:
    """None where there is nothing, or something of another type; kubectl shows ``<none>``."""
    if column is _AGE:
        return age(obj, now_us)
    try:
        found = find(obj, compiled(column.json_path))
    except JsonPathError:
        return None
    if found is None:
        return None
    return text_of(found) if column.type == "string" else _typed(column.type, found, now_us)


def _typed(kind: str, value: Any, now_us: int) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "integer" if is_number:
            return int(value)
        case "number" if is_number:
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "date" if isinstance(value, str):
            return _since(value, now_us)
    return None


def _since(instant: str, now_us: int) -> str:
    try:
        return since(instant, now_us)
    except (ValueError, TypeError):  # no instant, or one without a zone
        return "<invalid>"
