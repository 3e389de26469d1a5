"""Translates pydantic's errors into plain messages: the expected value, and the given one."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from mcad.api.located_fields import describe

UNKNOWN = "is unknown."

_EXPECTED = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be a map",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "model_type": "must be a map",
    "string_type": "must be a string",
    "tuple_type": "must be a list",
}


def explain(error: ValidationError) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """(place, message) of every error; unknown names first, as they often cause the others."""
    faults = error.errors(include_url=False)
    for fault in sorted(faults, key=lambda one: one["type"] != "extra_forbidden"):
        yield fault["loc"], _message(fault)


def _message(fault: Any) -> str:
    kind, context, given = fault["type"], fault.get("ctx", {}), describe(fault["input"])
    match kind:
        case "missing":
            return "is required."
        case "extra_forbidden":
            return UNKNOWN
        case "value_error":
            return f"{str(context['error']).rstrip('.')}."
        case "enum":
            return f"must be {context['expected']}, not {given}."
        case "greater_than":
            return f"must be more than {_plain(context['gt'])}, not {given}."
        case "greater_than_equal":
            return f"must be at least {_plain(context['ge'])}, not {given}."
        case "less_than_equal":
            return f"must be at most {_plain(context['le'])}, not {given}."
        case "too_long":
            return f"has {context['actual_length']} entries; {context['max_length']} are allowed."
        case _:
            return f"{_EXPECTED.get(kind, fault['msg'])}, not {given}."


def _plain(bound: float) -> str:
    """The text of a bound, without an exponent."""
    return str(int(bound)) if bound == int(bound) else str(bound)
