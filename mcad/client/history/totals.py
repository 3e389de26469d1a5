"""Sums of AppWrappers that have ended, by namespace and leaf."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from mcad.client.history.ended import Ended
from mcad.core.state.reasons import State

Json = dict[str, Any]

_COUNTS = {"completed": State.COMPLETED, "failed": State.FAILED, "deleted": State.DELETED}


def totals(found: Iterable[Ended]) -> list[Json]:
    """One row per namespace and leaf; an AppWrapper of several trees counts at each leaf."""
    groups: dict[tuple[str, str, str], list[Ended]] = defaultdict(list)
    for one in found:
        for tree, leaf in one.leaves or (("", ""),):
            groups[one.namespace, tree, leaf].append(one)
    return [
        {"namespace": namespace, "tree": tree or None, "leaf": leaf or None} | sums(group)
        for (namespace, tree, leaf), group in sorted(groups.items())
    ]


def sums(group: Sequence[Ended]) -> Json:
    """The figures of some AppWrappers; requests of unknown demand are left out."""
    requested: dict[str, float] = defaultdict(float)
    for one in group:
        for name, seconds in (one.requested_s or {}).items():
            requested[name] += seconds
    waits = [one.waited_s for one in group if one.waited_s is not None]
    return {
        "appwrappers": len(group),
        **{word: sum(one.state == end for one in group) for word, end in _COUNTS.items()},
        "attempts": sum(one.attempts for one in group),
        "meanWaitSeconds": fmean(waits) if waits else None,
        "ranSeconds": sum(one.ran_s for one in group),
        "requestedSeconds": dict(requested),
    }
