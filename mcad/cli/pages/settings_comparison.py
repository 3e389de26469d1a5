"""Compares a journal with what other settings would have done, as a table (mcad replay --set)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcad.api.config import overridden
from mcad.api.sources import ConfigError, load
from mcad.api.wire import format_instant
from mcad.cli.pages.tables import NONE, table
from mcad.client.errors import McadError
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND, Duration, Instant
from mcad.journal import script
from mcad.journal.alternative import play
from mcad.journal.lives import Life, Lives
from mcad.journal.reader import Session
from mcad.kube.durations import human

_SHOWN = ("cpu", "memory")
"""The resources that are shown first."""


def compare(
    sessions: Iterable[Session], assignments: Sequence[str], until: Instant | None
) -> tuple[list[str], list[str]]:
    """The lines to print, and the parts of the journal that could not be read."""
    found, wrong = script.read(sessions, until)
    if not found.begun:
        raise McadError("the journal contains no decision to compare with")
    other = _settings(found.settings, assignments)
    columns = {
        "RECORDED": found.lives,
        "REPLAYED": play(found, found.settings),
        "WITH " + " ".join(assignments): play(found, other),
    }
    rows = _rows(list(columns.values()))
    when = f"{format_instant(found.begun)} to {format_instant(found.ended)}"
    return [when, *table(("", *columns), rows)], wrong


def _settings(settings: Settings, assignments: Sequence[str]) -> Settings:
    try:
        return overridden(settings, load(None, {}, assignments))
    except (ConfigError, ValueError) as error:
        raise McadError(str(error)) from error


def _rows(columns: Sequence[Lives]) -> Iterable[list[str]]:
    lives = [list(one.by_uid.values()) for one in columns]
    yield ["AppWrappers", *(str(len(one)) for one in lives)]
    yield ["dispatched", *(str(sum(bool(life.first) for life in one)) for one in lives)]
    yield ["completed", *(str(sum(_completed(life) for life in one)) for one in lives)]
    yield ["failed", *(str(sum(life.failed for life in one)) for one in lives)]
    yield ["evictions", *(str(sum(life.evictions for life in one)) for one in lives)]
    waits = [one.waits() for one in columns]
    yield ["wait, mean", *(_mean(one) for one in waits)]
    for title, share in (("median", 50), ("90th percentile", 90), ("longest", 100)):
        yield [f"wait, {title}", *(_percentile(one, share) for one in waits)]
    for name in _resources(columns):
        yield [f"{name} in use", *(_use(one, name) for one in columns)]


def _completed(life: Life) -> bool:
    return bool(life.ended) and not life.failed


def _resources(columns: Sequence[Lives]) -> list[str]:
    asked = {name for one in columns for name, amount in one.used.items() if amount}
    return [name for name in (*_SHOWN, *sorted(asked - {*_SHOWN, "pods"})) if name in asked]


def _use(lives: Lives, name: str) -> str:
    offered = lives.offered[name]
    return f"{100 * lives.used[name] / offered:.1f} %" if offered else NONE


def _mean(waits: Sequence[Duration]) -> str:
    return human(sum(waits) // len(waits) // SECOND) if waits else NONE


def _percentile(waits: Sequence[Duration], share: int) -> str:
    """The nearest rank."""
    if not waits:
        return NONE
    return human(waits[max(0, -(-len(waits) * share // 100) - 1)] // SECOND)
