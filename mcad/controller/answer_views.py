"""Answers of the core as JSON: why an AppWrapper waits, and what would start it now."""

from __future__ import annotations

from typing import Any

from mcad.controller.views import quantities
from mcad.core.answers.certificate import Certificate, Proof
from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.holding import Holding
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.answers.why import Why
from mcad.core.state.quantity import format_amount
from mcad.core.state.refusal import QuotaLimit

Json = dict[str, Any]

HOLDERS_SHOWN = 10
"""AppWrappers that hold the most; of the others only the number is shown."""


def why_view(run: DryRun, told: Why) -> Json:
    """The answer about one AppWrapper, without its row."""
    return {
        "startsNext": told.starts,
        "mayEvict": _titles(run, told.evicts),
        "heldBy": holding_view(told.holding),
        "wouldStart": [_remedy(run, one) for one in told.remedies],
        "allTried": told.all_tried,
        "certificate": certificate_view(told.certificate),
    }


def holding_view(held: Holding) -> Json | None:
    """Holders of the resource that binds; None if it is about none."""
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


def certificate_view(one: Certificate | None) -> Json | None:
    """Why it does not fit, as figures; None if it lets others go first."""
    if one is None:
        return None
    view: Json = {"proof": str(one.proof)}
    if one.resource:
        view["resource"] = one.resource
    if one.position >= 0:
        view["podSet"] = one.position
    if one.proof is Proof.SET:
        view |= {"requested": one.requested, "available": one.available}
    elif one.resource:
        amounts = {"requested": one.requested, "available": one.available}
        view |= {key: format_amount(one.resource, n) for key, n in amounts.items()}
    if one.share is not None:
        view |= _share(one.share)
    view["nodes"] = [
        {"name": node.name, "free": quantities(node.free)}
        | ({"pods": node.pods} if one.proof is Proof.SET else {})
        for node in one.nodes
    ]
    return view


def _share(limit: QuotaLimit) -> Json:
    if not limit.node:
        return {"tree": limit.tree, "leaf": limit.leaf}
    figures = {"nominal": limit.nominal, "used": limit.used}
    amounts = {key: format_amount(limit.resource, n) for key, n in figures.items()}
    return {"tree": limit.tree, "node": limit.node, **amounts}
