"""The table of ``mcad what-if`` (JSON of ``mcad.controller.what_if_views``)."""

from __future__ import annotations

from typing import Any

from mcad.api.wire import plural
from mcad.cli.pages.start_times import start_column
from mcad.cli.pages.tables import NONE, table

Json = dict[str, Any]

TITLES = ("APPWRAPPER", "NOW", "THEN")
ROWS_MAX = 30
SAME = "Nothing would differ in the next cycles."


def page(told: Json, now_us: int) -> list[str]:
    """A row for each AppWrapper for which something differs, and why a new one waits."""
    changes = sorted(told["changes"], key=_matters)
    if not changes:
        return [SAME]
    rows = [
        (one["appwrapper"], _fate(one["now"], now_us), _fate(one["then"], now_us))
        for one in changes[:ROWS_MAX]
    ]
    lines = table(TITLES, rows)
    if len(changes) > ROWS_MAX:
        lines.append(f"... and {plural(len(changes) - ROWS_MAX, 'AppWrapper')} more")
    for one in changes[:ROWS_MAX]:
        if one["now"] is None and one["then"]["why"]:
            lines += ["", f"{one['appwrapper']}: {one['then']['why']}"]
    return lines


def _matters(change: Json) -> int:
    """What starts, ends or is evicted comes first, and those that only move in the line last."""
    before, after = change["now"], change["then"]
    if before is None or after is None:
        return 0
    if any(before[key] != after[key] for key in ("startsNext", "evictedFor", "state")):
        return 0
    return 1 if before["waitsFor"] != after["waitsFor"] else 2


def _fate(fate: Json | None, now_us: int) -> str:
    """What becomes of it, in a few words."""
    if fate is None:
        return NONE
    if fate["evictedFor"]:
        return f"evicted for {fate['evictedFor']} ({fate['evictionReason']})"
    if fate["startsNext"]:
        return "starts"
    if fate["position"]:
        waits = f"number {fate['position']} in line ({fate['waitsFor'] or 'it fits'})"
        starts = start_column(fate | {"restsOn": ""}, now_us)
        return waits if starts == NONE else f"{waits}, starts {starts}"
    return f"{fate['state']} ({fate['waitsFor']})" if fate["waitsFor"] else fate["state"]
