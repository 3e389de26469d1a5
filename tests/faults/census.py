"""What a process holds: every object of ours that is alive, and how much is in its containers.

Whatever grows with the number of things that came and went grows here first, whoever forgot to
let go of it and wherever it is kept.
"""

from __future__ import annotations

import asyncio
import functools
import gc
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import chain

from sortedcontainers import SortedDict, SortedList

SIZED = (dict, list, set, frozenset, tuple, deque, SortedDict, SortedList)
OURS, NOT_OURS = "mcad.", ("mcad.sim.", "mcad.cli.")


def census() -> Counter[str]:
    """``Class`` -> how many are alive, and ``Class.attribute`` -> how many elements they hold."""
    gc.unfreeze()  # what was there before the test may grow, too (tests/conftest.py)
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper):  # each is bounded, by its maxsize
            one.cache_clear()
    gc.collect()
    counts: Counter[str] = Counter(tasks=len(asyncio.all_tasks()))
    for one in gc.get_objects():
        kind = type(one)
        module = kind.__module__
        if (
            not isinstance(module, str)
            or not module.startswith(OURS)
            or module.startswith(NOT_OURS)
        ):
            continue
        counts[kind.__qualname__] += 1
        for name, value in _attributes(one):
            if isinstance(value, SIZED):
                counts[f"{kind.__qualname__}.{name}"] += _size(value)
    return counts


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """What there is more of."""
    return {
        name: (before.get(name, 0), count)
        for name, count in sorted(after.items())
        if count > before.get(name, 0)
    }


def _attributes(one: object) -> Iterator[tuple[str, object]]:
    slots = chain.from_iterable(getattr(kind, "__slots__", ()) for kind in type(one).__mro__)
    for name in slots:
        if not name.startswith("__") and hasattr(one, name):
            yield name, getattr(one, name)
    yield from getattr(one, "__dict__", {}).items()


def _size(value: object) -> int:
    """Its elements and those of the containers in it; objects in it are counted by themselves."""
    if not isinstance(value, SIZED):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return len(value) + sum(map(_size, inner))
