"""Everything that can be reached from an object, as text: equal if and only if nothing differs.

What it is for: to prove that a question changes nothing, not even a cache, but for two that hold
only what is computed anew otherwise: the nodes that two pools share, and what an AppWrapper has on
nodes. Identity counts, so an object that is known in two places is told from two equal ones; the
order of dicts counts, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType

_CACHES = frozenset({"Pool._neighbours", "Assumed.held"})

_ATOMS = (type(None), bool, int, str, bytes, float, Enum, type, FunctionType, BuiltinFunctionType)


def digest(root: object) -> list[str]:
    """One line per object that is reached, in the order of reaching."""
    lines: list[str] = []
    numbers: dict[int, int] = {}
    kept: list[object] = []  # so that no id is used twice
    todo = [root]
    while todo:
        one = todo.pop()
        if id(one) in numbers:
            continue
        numbers[id(one)] = len(numbers)
        kept.append(one)
        parts = list(_parts(one))
        todo += [part for part in parts if not isinstance(part, _ATOMS)]
        named = [repr(p) if isinstance(p, _ATOMS) else f"#{id(p)}" for p in parts]
        lines.append(f"#{id(one)} {type(one).__name__}: {' '.join(named)}")
    return lines


def _parts(one: object) -> Iterator[object]:
    if isinstance(one, dict):
        for key, value in one.items():
            yield key
            yield value
    elif isinstance(one, (list, tuple, set, frozenset)):
        yield from one
    elif isinstance(one, MethodType):
        yield one.__self__
    else:
        for name, value in vars(one).items() if hasattr(one, "__dict__") else ():
            if f"{type(one).__name__}.{name}" not in _CACHES:
                yield value
        for kind in type(one).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if name not in ("__weakref__", "__dict__") and hasattr(one, name):
                    yield getattr(one, name)
