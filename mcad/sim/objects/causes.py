"""Causes as kube-apiserver words them: one function per kind of error of ``field.Error``."""

import json
from collections.abc import Iterable
from typing import Any

from mcad.sim.failures import Cause


def quoted(text: str) -> str:
    """A text as Go's ``%q`` prints it (close enough: JSON without the escapes for letters)."""
    return json.dumps(text, ensure_ascii=False)


def shown(value: Any) -> str:
    """A value as a message shows it: compact JSON with sorted keys."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def invalid(field: str, value: Any, detail: str) -> Cause:
    """A value that is malformed or out of bounds."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", field)


def required(field: str, detail: str = "") -> Cause:
    """A value that is missing or empty."""
    return Cause("FieldValueRequired", _with("Required value", detail), field)


def forbidden(field: str, detail: str) -> Cause:
    """A value that would be right under other conditions."""
    return Cause("FieldValueForbidden", _with("Forbidden", detail), field)


def duplicate(field: str, value: Any) -> Cause:
    """A value that must be unique and is there twice."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> Cause:
    """A value outside of an enumeration; ``supported`` keeps its order."""
    names = ", ".join(map(quoted, supported))
    detail = f"supported values: {names}" if names else ""
    return Cause(
        "FieldValueNotSupported", _with(f"Unsupported value: {shown(value)}", detail), field
    )


def not_found(field: str, value: Any) -> Cause:
    """A value that refers to something that does not exist."""
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", field)


def too_long(field: str, limit: int, unit: str = "byte") -> Cause:
    """A text that is too long; the value is left out."""
    detail = f"may not be more than {limit} {_plural(unit, limit)}"
    return Cause("FieldValueTooLong", f"Too long: {detail}", field)


def too_many(field: str, actual: int, limit: int) -> Cause:
    """A list with too many items."""
    detail = f"must have at most {limit} {_plural('item', limit)}"
    return Cause("FieldValueTooMany", f"Too many: {actual}: {detail}", field)


def _with(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head


def _plural(unit: str, number: int) -> str:
    return unit if number == 1 else f"{unit}s"
