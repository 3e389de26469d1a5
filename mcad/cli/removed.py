"""Commands and options that are gone or have another name elsewhere, and what to type instead."""

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
        for command in ("queue", "get", "describe", "why", "capacity", "quota show", "ui")
        for option in ("--config", "--set")
    },
    **{
        f"quota check {option}": "the running dispatcher is asked, under its own settings"
        for option in ("--config", "--set")
    },
    "drain": "`mcad what-if --drain NODE` shows what a drain would move; `kubectl drain` drains",
    "top": "`mcad ui` shows queue and capacity live in a browser;"
    " `mcad queue --watch` prints rows as they change",
    "replay --set": "a journal is replayed under its own settings;"
    " `mcad what-if --journal DIR --set KEY=VALUE` tries another one on the state at its end",
}
"""What was typed after ``mcad`` -> why it is gone, and what to type now."""


_CANCEL = "`mcad cancel` deletes AppWrappers with all of their objects"
_GET = "`mcad get` shows all AppWrappers, `mcad queue` those that wait"
_SUBMIT = "`mcad submit` creates AppWrappers"
_HOLD = "`mcad hold` keeps AppWrappers from starting"
OTHER_WORDS = {
    "delete": _CANCEL,
    "rm": _CANCEL,
    "kill": _CANCEL,
    "stop": _HOLD,
    "suspend": _HOLD,
    "list": _GET,
    "ls": _GET,
    "status": "`mcad describe` shows one AppWrapper in full",
    "apply": _SUBMIT,
    "create": _SUBMIT,
    "start": "`mcad release` lets AppWrappers on hold queue again",
}
"""Words for commands in kubectl, Slurm and other programs -> what to type here."""


def advice(error: click.UsageError) -> str | None:
    """What to type instead of a command or an option that is not here; None for other mistakes."""
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
    if typed in OTHER_WORDS:
        return f"`mcad {typed}` is no command: {OTHER_WORDS[typed]}"
    return f"`mcad {typed}` is gone: {REMOVED[typed]}" if typed in REMOVED else None
