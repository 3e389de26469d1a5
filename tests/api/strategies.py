"""Arbitrary JSON, and JSON that looks enough like manifests to get far."""

from __future__ import annotations

import copy
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


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside."""
    children: Any = value.items() if isinstance(value, dict) else ()
    children = enumerate(value) if isinstance(value, list) else children
    return [path, *(place for key, child in children for place in _places(child, (*path, key)))]


@st.composite
def mutated(draw: st.DrawFn, originals: list[Any]) -> Any:
    """A valid object with a few of its values replaced, dropped or doubled."""
    value = copy.deepcopy(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 3))):
        places = _places(value)[1:]
        if not places:
            break
        *way, key = draw(st.sampled_from(places))
        owner = value
        for step in way:
            owner = owner[step]
        match draw(st.sampled_from(["replace", "drop", "copy"])):
            case "replace":
                owner[key] = draw(JSON)
            case "drop":
                del owner[key]
            case _:
                source: Any = value
                for step in draw(st.sampled_from(_places(value))):
                    source = source[step]
                owner[key] = copy.deepcopy(source)
    return value
