"""Two outcomes side by side as JSON: as it is, and with a change."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from mcad.controller.views import rows_view
from mcad.core.answers.outcome import Outcome
from mcad.core.state.units import Instant

Json = dict[str, Any]


def what_if_view(now: Outcome, then: Outcome, at: Instant, new: Container[str]) -> Json:
    """The AppWrappers for which something differs, and what is ``new``: in the order of the second
    outcome, and then those that are not there any more."""
    before, after = _fates(now, at), _fates(then, at)
    changes = [
        {"appwrapper": fate["appwrapper"], "now": before.get(uid), "then": fate}
        for uid, fate in after.items()
        if uid in new or before.get(uid) != fate
    ]
    gone = [
        {"appwrapper": fate["appwrapper"], "now": fate, "then": None}
        for uid, fate in before.items()
        if uid not in after
    ]
    return {"changes": [*changes, *gone]}


def _fates(outcome: Outcome, at: Instant) -> dict[str, Json]:
    """What becomes of each AppWrapper in the next cycles, by uid: those that start first."""
    view = rows_view(outcome.cluster, at, waiting_only=False, with_starts=True)
    rows = {row["uid"]: row for row in view["items"]}
    order = [*outcome.starting, *(uid for uid in rows if uid not in outcome.starting)]
    return {uid: _fate(rows[uid], outcome) for uid in order if uid in rows}


def _fate(row: Json, outcome: Outcome) -> Json:
    evicted = outcome.evicted.get(row["uid"])
    starts = row["starts"] or {}
    return {
        "appwrapper": f"{row['namespace']}/{row['name']}",
        "startsNext": row["uid"] in outcome.starting,
        "evictedFor": evicted.preemptor if evicted is not None else None,
        "evictionReason": evicted.reason if evicted is not None else None,
        "state": row["state"],
        "position": row["position"],
        "waitsFor": row["waitsFor"],
        "why": row["why"],
        "earliest": starts.get("earliest"),
        "latest": starts.get("latest"),
    }
