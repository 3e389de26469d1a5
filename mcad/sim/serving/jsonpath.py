"""JSONPath as the printer columns of CRDs that are wrapped use it: keys, indexes and equality.

``.spec.a``, ``.metadata.labels.a\\.b``, ``['a b']``, ``.list[0]``, ``.list[?(@.type=="a")].b``.
Other filters, slices, wildcards and unions are for a real cluster: a column with one of those shows
nothing here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct

_CACHED = 512
_KEY = r"\.((?:\\.|[^.\[\]\\*?@$])+)|\['([^']*)'\]"
_STEP = re.compile(
    _KEY + r"|\[(\d+)\]" + r"|\[\?\(@((?:\.[\w-]+)+)\s*==\s*(?:\"([^\"]*)\"|'([^']*)')\)\]"
)


class JsonPathError(ValueError):
    """A path that is not read here."""


class Where(Struct, frozen=True):
    """Chooses the members of a list that have this text at a path."""

    path: tuple[str, ...]
    text: str


Step = str | int | Where


@lru_cache(_CACHED)
def compiled(text: str) -> tuple[Step, ...]:
    """The steps that lead to the value; raises JsonPathError."""
    steps: list[Step] = []
    rest = text.removeprefix("$")
    while rest:
        found = _STEP.match(rest)
        if found is None:
            raise JsonPathError(f"{rest!r} is not a key, an index or a comparison with a text")
        steps.append(_step(found))
        rest = rest[found.end() :]
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    key, quoted, index, path, text, other = found.groups()
    if path:
        return Where(tuple(path[1:].split(".")), text if text is not None else other)
    return int(index) if index else quoted or re.sub(r"\\(.)", r"\1", key)


def find(obj: Any, path: tuple[Step, ...]) -> Any:
    """The first value that a path leads to; None if there is none."""
    return next(_values(obj, path), None)


def _values(obj: Any, path: tuple[Step, ...]) -> Iterator[Any]:
    if not path:
        yield obj
        return
    step, *rest = path
    for one in _after(obj, step):
        yield from _values(one, tuple(rest))


def _after(obj: Any, step: Step) -> Iterator[Any]:
    match step:
        case Where() if isinstance(obj, list):
            yield from (one for one in obj if find(one, step.path) == step.text)
        case str() if isinstance(obj, dict) and step in obj:
            yield obj[step]
        case int() if isinstance(obj, list) and step < len(obj):
            yield obj[step]


def text_of(value: Any) -> str:
    """How a value is printed: texts and numbers as they are, everything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
