"""Arbitrary JSON, JSON that looks enough like manifests to get far, and extremes of numbers."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["1", "-1", "1Gi", "v1", "Pod", "apps/v1", "Always", "template", "x" * 300])
)

JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)


def shaped(*keys: str) -> st.SearchStrategy[Any]:
    """JSON whose keys are often these."""
    key = st.sampled_from(keys)
    return st.recursive(
        JSON,
        lambda inner: st.dictionaries(key, inner, max_size=5) | st.lists(inner, max_size=3),
        max_leaves=20,
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside."""
    children: Any = value.items() if isinstance(value, dict) else ()
    children = enumerate(value) if isinstance(value, list) else children
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


@st.composite
def mutated(draw: st.DrawFn, originals: list[Any]) -> Any:
    """A valid object with a few of its values replaced, dropped or doubled."""
    value = copy.deepcopy(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 3))):
        inside = places(value)[1:]
        if not inside:
            break
        *way, key = draw(st.sampled_from(inside))
        owner = follow(value, way)
        match draw(st.sampled_from(["replace", "drop", "copy"])):
            case "replace":
                owner[key] = draw(JSON)
            case "drop":
                del owner[key]
            case _:
                owner[key] = copy.deepcopy(follow(value, draw(st.sampled_from(places(value)))))
    return value


NUMBERS = (
    *(0, 1, -1, 10**6, 2**31 - 1, 2**31, -(2**31), 366 * 86_400, 2**62, 2**63 - 1, -(2**63)),
)
"""Extremes of integers in fields with a schema."""

BEYOND = (2**63, 2**64, 10**20, -(10**20), 1e300)
"""Extremes in fields without a schema, like those of a wrapped object: the API server holds them as
floats of 64 bits, and writes those below 10^21 like integers."""

QUANTITIES = (
    *("0", "1n", "9223372036854775807", "9223372036854775808", "9223372036854775807m", "1e-40"),
    *("8E", "8Ei", "999999999999999999999999Ei", "1e40", "4Pi", 2**63 - 1, 10**20, 0.5),
)
DURATIONS = (
    "0",
    "-1s",
    "999ns",
    "8784h",
    "8785h",
    "2562047h",
    "-2562047h",
    "9223372036854775807ns",
)
COUNTS = ("0", "-1", "+1", "2147483648", "9999999999", "-9999999999", "9" * 30, "3,9999999999")
TIMES = (
    "0001-01-01T00:00:00Z",
    "0999-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999Z",
    "1970-01-01",
)

_KINDS_OF_TEXT = (
    (re.compile(r"\d{4}-\d{2}-\d{2}T.*"), TIMES),
    (re.compile(r"(\d+(h|m|s|ms|ns))+"), DURATIONS),
    (re.compile(r"\d+(,\d+)*|\d+(\.\d+)?([mkMG]|[KMG]i)"), (*QUANTITIES, *COUNTS)),
)


_OF_AMOUNTS = {"requests", "limits", "overhead", "allocatable", "allocatedResources"}
_OF_WRAPPED = {"template", "generictemplate"}


def extremes_of(root: Any, place: tuple[Any, ...]) -> tuple[Any, ...]:
    """The extremes of a number, or of a text that is a quantity, a duration or a time."""
    value = follow(root, place)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not _OF_AMOUNTS.isdisjoint(place):
            return QUANTITIES
        return NUMBERS if _OF_WRAPPED.isdisjoint(place) else (*NUMBERS, *BEYOND)
    if not isinstance(value, str):
        return ()
    return next((found for form, found in _KINDS_OF_TEXT if form.fullmatch(value)), ())


@st.composite
def extreme(draw: st.DrawFn, originals: list[Any]) -> Any:
    """A valid object in which some numbers, quantities, durations and times are extreme."""
    value = json.loads(json.dumps(draw(st.sampled_from(originals))))  # no part is in two places
    found = {place: extremes_of(value, place) for place in places(value)}
    numbers = [place for place, extremes in found.items() if extremes]
    few = min(4, len(numbers))
    for place in draw(st.permutations(numbers))[: draw(st.integers(few, max(few, 12)))]:
        *way, key = place
        follow(value, way)[key] = draw(st.sampled_from(found[place]))
    return value


def follow(value: Any, path: Any) -> Any:
    """The value at this path."""
    for step in path:
        value = value[step]
    return value
