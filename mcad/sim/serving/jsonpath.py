"""JSONPath as the printer columns of CRDs that are wrapped use it: keys and indexes.

``.spec.a``, ``.metadata.labels.a\\.b``, ``['a b']``, ``.list[0]``. Filters, slices, wildcards and
unions are for a real cluster: a column with one of those shows nothing here.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

_CACHED = 512
_STEP = re.compile(r"\.((?:\\.|[^.\[\]\\*?@$])+)|\['([^']*)'\]|\[(\d+)\]")


class JsonPathError(ValueError):
    """A path that is not read here."""


@lru_cache(_CACHED)
def compiled(text: str) -> tuple[str | int, ...]:
    """The keys and indexes that lead to the value; raises JsonPathError."""
    steps: list[str | int] = []
    rest = text.removeprefix("$")
    while rest:
        found = _STEP.match(rest)
        if found is None:
            raise JsonPathError(f"{rest!r} is not a key or an index")
        key, quoted, index = found.groups()
        steps.append(int(index) if index else quoted or re.sub(r"\\(.)", r"\1", key))
        rest = rest[found.end() :]
    return tuple(steps)


def find(obj: Any, path: tuple[str | int, ...]) -> Any:
    """What a path leads to; None if there is nothing."""
    for step in path:
        if isinstance(step, str):
            obj = obj.get(step) if isinstance(obj, dict) else None
        else:
            obj = obj[step] if isinstance(obj, list) and step < len(obj) else None
    return obj


def text_of(value: Any) -> str:
    """How a value is printed: texts and numbers as they are, everything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
