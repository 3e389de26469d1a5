"""Two normalised answers side by side: where they differ, as paths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

_NOTHING = object()


@dataclass(frozen=True)
class Difference:
    """One place where the answers are not alike."""

    path: str
    real: Any
    embedded: Any

    def __str__(self) -> str:
        sides = (("real    ", self.real), ("embedded", self.embedded))
        return "\n      ".join((self.path, *(f"{name}  {_shown(one)}" for name, one in sides)))


def compared(real: Any, embedded: Any) -> Iterator[Difference]:
    """Of two whole answers; if not even the status is the same, that is the one difference."""
    if real["status"] == embedded["status"]:
        yield from differences(real, embedded)
        return
    yield Difference("status", _summary(real), _summary(embedded))


def _summary(answer: Any) -> Any:
    body = answer["body"]
    told = body.get("message") if isinstance(body, dict) else body
    return [answer["status"], told]


def differences(real: Any, embedded: Any, path: str = "") -> Iterator[Difference]:
    """Depth first, the smallest parts that differ."""
    if isinstance(real, dict) and isinstance(embedded, dict):
        for key in sorted(real.keys() | embedded.keys()):
            where = f"{path}.{key}" if path else key
            yield from differences(real.get(key, _NOTHING), embedded.get(key, _NOTHING), where)
    elif isinstance(real, list) and isinstance(embedded, list):
        for number, (left, right) in enumerate(zip_longest(real, embedded, fillvalue=_NOTHING)):
            yield from differences(left, right, f"{path}[{number}]")
    elif type(real) is not type(embedded) or real != embedded:
        yield Difference(path, real, embedded)


def _shown(value: Any) -> str:
    return "(nothing)" if value is _NOTHING else json.dumps(value, ensure_ascii=False)
