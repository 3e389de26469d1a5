"""Commands and options that are gone, and what to type instead."""

from __future__ import annotations

import click
from click.exceptions import NoSuchCommand, NoSuchOption

_OF_FIGURES = (
    "figures are those of the running dispatcher;"
    " `mcad what-if --set KEY=VALUE` shows what another setting would change"
)

REMOVED = {
    **{
        f"{command} {option}": _OF_FIGURES
        for command in ("queue", "get", "describe", "why", "capacity", "quota show", "top", "ui")
        for option in ("--config", "--set")
    },
    **{
        f"quota check {option}": "the running dispatcher is asked, under its own settings"
        for option in ("--config", "--set")
    },
    "drain": "`mcad what-if --drain NODE` shows what a drain would move; `kubectl drain` drains",
    "replay --set": "a journal is replayed under its own settings;"
    " `mcad what-if --journal DIR --set KEY=VALUE` tries another one on the state at its end",
}
"""What was typed after ``mcad`` -> why it is gone, and what to type now."""


def advice(error: click.UsageError) -> str | None:
    """What to type instead of a command or an option that is gone; None for other mistakes."""
    match error:
        case NoSuchOption():
            last = error.option_name
        case NoSuchCommand():
            last = error.command_name
        case _:
            return None
    if error.ctx is None:
        return None
    program = error.ctx.find_root().command_path
    typed = f"{error.ctx.command_path.removeprefix(program)} {last}".strip()
    return f"`mcad {typed}` is gone: {REMOVED[typed]}" if typed in REMOVED else None
