"""The answer of ``mcad what-if --drain``: which pods of AppWrappers a drain moves, and where they
fit."""

from __future__ import annotations

from typing import Any

from mcad.api.wire import plural
from mcad.cli.pages.tables import NONE, table

Json = dict[str, Any]

TITLES = ("APPWRAPPER", "PODS", "FIT ON", "NO PLACE")


def page(found: Json) -> list[str]:
    """The moves as a table, and how many pods are not planned."""
    rows = [
        (one["appwrapper"], str(one["pods"]), _places(one), str(one["unplaced"] or NONE))
        for one in found["moves"]
    ]
    lines = table(TITLES, rows) if rows else ["No pods of AppWrappers are there."]
    if others := found["others"]:
        have = "has" if others == 1 else "have"
        lines.append(f"{plural(others, 'pod')} there {have} no AppWrapper: not planned.")
    return lines


def _places(move: Json) -> str:
    told = [f"{name} ({count})" for name, count in sorted(move["places"].items())]
    if move["bare"]:
        told.append(f"{plural(move['bare'], 'bare pod')}: not created anew")
    return ", ".join(told) or NONE
