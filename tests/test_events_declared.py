"""Kubernetes Events are recorded with the type that their reason declares."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mcad.core.attempts.teardown import _QUIET, _SETTLED
from mcad.core.state.model import Next
from mcad.core.state.reasons import EventReason, EventType, TeardownReason

SOURCES = sorted((Path(__file__).parents[1] / "mcad").rglob("*.py"))
DECLARED = Path(__file__).parents[1] / "mcad" / "core" / "state" / "reasons.py"


def _reasons(node: ast.AST) -> Iterator[str]:
    """``EventReason.X`` anywhere in a piece of code."""
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "EventReason":
            yield one.attr


def _recorded(tree: ast.AST) -> Iterator[tuple[EventReason, EventType]]:
    """Calls with a reason in place, and the type that they record."""
    for call in (one for one in ast.walk(tree) if isinstance(one, ast.Call)):
        function = ast.unparse(call.func).rpartition(".")[2]
        if function not in ("announce", "announce_remnant"):
            continue
        warns = any(one.arg == "warning" for one in call.keywords)
        kind = EventType.WARNING if warns or "remnant" in function else EventType.NORMAL
        yield from ((EventReason[name], kind) for one in call.args for name in _reasons(one))


def test_an_event_has_the_type_that_its_reason_declares() -> None:
    found = [one for path in SOURCES for one in _recorded(ast.parse(path.read_text()))]

    assert len(found) >= 15
    assert [(reason, kind) for reason, kind in found if reason.type is not kind] == []


def test_the_type_at_the_end_of_a_teardown_is_declared() -> None:
    quiet = {_SETTLED[Next.COMPLETED][1]}

    told_elsewhere = {TeardownReason.MISSING_RIGHT}
    assert told_elsewhere | {TeardownReason.SUCCESS_TTL, TeardownReason.TERMINATING} == _QUIET
    assert {one for _, one in _SETTLED.values() if one.type is not EventType.WARNING} == quiet


def test_every_reason_is_recorded_somewhere() -> None:
    used = {
        name
        for path in SOURCES
        if path != DECLARED
        for name in _reasons(ast.parse(path.read_text()))
    }
    assert used == {one.name for one in EventReason}
    assert all(one.meaning for one in EventReason)
