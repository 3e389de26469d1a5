"""Answers of the core as JSON: why an AppWrapper waits, and what would start it now."""

from __future__ import annotations

from typing import Any

from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.holding import Holding
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.answers.why import Why
from mcad.core.state.quantity import format_amount

Json = dict[str, Any]

HOLDERS_SHOWN = 10
"""AppWrappers that hold the most; of the others only the number is told."""


def why_view(run: DryRun, told: Why) -> Json:
    """The answer about one AppWrapper, without its row."""
    return {
        "startsNext": told.starts,
        "mayEvict": _titles(run, told.evicts),
        "heldBy": holding_view(told.holding),
        "wouldStart": [_remedy(run, one) for one in told.remedies],
        "allTried": told.all_tried,
    }


def holding_view(held: Holding) -> Json | None:
    """Who holds the resource that binds; None if it is about none."""
    if not held.resource:
        return None
    shown = held.by[:HOLDERS_SHOWN]
    return {
        "resource": held.resource,
        "appwrappers": [
            {"appwrapper": title, "amount": format_amount(held.resource, amount)}
            for title, amount in shown
        ],
        "more": len(held.by) - len(shown),
        "others": format_amount(held.resource, held.others),
    }


def _remedy(run: DryRun, one: Remedy) -> Json:
    return {
        "kind": str(one.kind),
        "text": one.text,
        "number": one.number,
        "appwrappers": _titles(run, one.uids),
        "startsAtOnce": one.kind is not Kind.EVICT,
    }


def _titles(run: DryRun, uids: tuple[str, ...]) -> list[str]:
    return [run.entry(uid).title for uid in uids]
