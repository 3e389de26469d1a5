"""Amounts of a capacity view, for bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcad.core.state.quantity import CPU, MILLIS, UNITS, parse_quantity

STATES = {"Tainted": "tainted", "Cordoned": "cordoned", "NotReady": "not ready"}
"""The states of nodes that are not simply ready, in words."""

_FIRST, _LAST = ("cpu", "memory"), ("pods", "ephemeral-storage")


def number(total: Mapping[str, Any], name: str, book: str = "allocatable") -> int:
    """An amount of a capacity view, CPUs in thousandths."""
    scale = MILLIS if name == CPU else UNITS
    return parse_quantity(total[book].get(name, "0"), scale, negative=True)


def in_order(allocatable: Mapping[str, str]) -> list[str]:
    """CPU and memory first, then others (GPUs) by name, pods and ephemeral storage last."""
    others = sorted(set(allocatable).difference(_FIRST, _LAST))
    return [name for name in (*_FIRST, *others, *_LAST) if name in allocatable]
