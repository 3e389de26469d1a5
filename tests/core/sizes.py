"""How much every container of a core holds, found by walking over all that it refers to."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sortedcontainers import SortedDict, SortedList

_PLAIN = (str, bytes, int, float, bool, type(None), type)
_CONTAINERS = (dict, list, set, deque, SortedDict, SortedList)


def sizes(root: object) -> Counter[str]:
    """Elements by the path of the container that has them, of those that change; containers of one
    attribute are summed."""
    found: Counter[str] = Counter()
    known: set[int] = set()
    todo: list[tuple[str, Any]] = [(type(root).__name__, root)]
    while todo:
        path, one = todo.pop()
        if isinstance(one, _PLAIN) or id(one) in known or callable(one):
            continue
        known.add(id(one))
        if isinstance(one, _CONTAINERS):
            found[path] += len(one)
        todo.extend(_parts(path, one))
    return +found


def _parts(path: str, one: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(one, Mapping) and isinstance(one, Collection):
        for key, value in list(one.items()):
            yield f"{path}[]", key
            yield f"{path}[]", value
    elif isinstance(one, (list, tuple, set, frozenset, deque, SortedList)):
        for part in one:
            yield f"{path}[]", part
    if type(one).__module__.startswith("mcad."):
        for name in _names(one):
            yield f"{type(one).__name__}.{name}", getattr(one, name, None)


def _names(one: object) -> set[str]:
    if dataclasses.is_dataclass(one):
        return {each.name for each in dataclasses.fields(one)}
    slots = (name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ()))
    return {*getattr(one, "__dict__", {}), *slots}
