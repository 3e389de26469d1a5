"""AppWrappers that have ended, as tables and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcad.cli.pages.human_amounts import human_amount
from mcad.cli.pages.tables import NONE, UNKNOWN, age
from mcad.client.history.ended import Ended
from mcad.core.state.quantity import EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY, format_amount
from mcad.kube.durations import human

Json = dict[str, Any]

HOUR_S = 3600
SECOND_DIGITS = len("2026-01-01T00:00:00")
LEAST = 0.001  # hours that are shown
TITLES = ("NAME", "STATE", "REASON", "ATTEMPTS", "WAITED", "RAN", "REQUESTED-HOURS", "ENDED")
WIDE_TITLES = ("LEAF", "PRIORITY", "SUBMITTED", "STARTED", "ENDED-AT", "MESSAGE")
SUM_TITLES = (
    *("NAMESPACE", "LEAF", "APPWRAPPERS", "COMPLETED", "FAILED", "DELETED"),
    *("ATTEMPTS", "MEAN-WAIT", "RAN", "REQUESTED-HOURS"),
)
TOTAL = "<total>"
_NESTED = ("leaves", "labels", "demand", "requestedSeconds", "tree", "leaf")


def titles(*, namespaces: bool, wide: bool) -> tuple[str, ...]:
    """The column titles: NAMESPACE first if several are shown, wide ones last."""
    return ("NAMESPACE",) * namespaces + TITLES + WIDE_TITLES * wide


def cells(one: Ended, now_us: int, *, namespaces: bool, wide: bool) -> tuple[str, ...]:
    """The cells of an AppWrapper."""
    view = one.view()
    plain = (
        one.name,
        one.state,
        one.reason or NONE,
        str(one.attempts),
        _lasted(one.waited_s),
        _lasted(one.ran_s) if one.runs else NONE,
        hours(one.requested_s),
        age(view["ended"], now_us),
    )
    more = (
        leaf_text(one.leaves),
        str(one.priority),
        *(_second(view[key]) for key in ("submitted", "started", "ended")),
        one.message or NONE,
    )
    return (one.namespace,) * namespaces + plain + more * wide


def sum_cells(row: Json) -> tuple[str, ...]:
    """The cells of a row of totals."""
    leaf = f"{row['tree']}/{row['leaf']}" if row["leaf"] else NONE
    counts = ("appwrappers", "completed", "failed", "deleted", "attempts")
    return (
        row["namespace"],
        leaf,
        *(str(row[key]) for key in counts),
        _lasted(row["meanWaitSeconds"]),
        _lasted(row["ranSeconds"]),
        hours(row["requestedSeconds"]),
    )


def hours(seconds: Mapping[str, float] | None) -> str:
    """``cpu=2.5,memory=12Gi``: each resource but pods multiplied by hours; None is unknown."""
    if seconds is None:
        return UNKNOWN
    shown = ((name, value / HOUR_S) for name, value in seconds.items() if value and name != "pods")
    return ",".join(f"{name}={_amount(name, value)}" for name, value in shown) or NONE


def leaf_text(leaves: Iterable[tuple[str, str]]) -> str:
    """``teams/red``; several are separated by commas."""
    return ",".join(f"{tree}/{leaf}" for tree, leaf in leaves) or NONE


def csv_text(rows: Sequence[Json]) -> str:
    """The rows of -o json as CSV: a column for each resource, empty where a value is unknown."""
    resources = sorted({name for row in rows for name in row["requestedSeconds"] or {}})
    plain = [key for key in (rows[0] if rows else {}) if key not in _NESTED]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*plain, "leaf", *(f"requestedSeconds.{name}" for name in resources)])
    for row in rows:
        requested = row["requestedSeconds"] or {}
        amounts = (_number(requested.get(name)) for name in resources)
        writer.writerow([*(_number(row[key]) for key in plain), _csv_leaf(row), *amounts])
    return out.getvalue()


def _csv_leaf(row: Json) -> str:
    leaves = row.get("leaves", [row] if row.get("leaf") else [])
    return " ".join(f"{one['tree']}/{one['leaf']}" for one in leaves)


def _number(value: Any) -> Any:
    """A whole number without a decimal point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _lasted(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else human(int(seconds))


def _second(instant: str | None) -> str:
    """An instant without its fraction."""
    return f"{instant[:SECOND_DIGITS]}Z" if instant else UNKNOWN


def _amount(resource: str, value: float) -> str:
    """Bytes in their units, CPUs and counts in three digits."""
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES):
        return human_amount(resource, format_amount(resource, round(value)))
    return _figure(value)


def _figure(value: float) -> str:
    if value < LEAST:
        return f"<{LEAST}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
