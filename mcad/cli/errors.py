"""Errors and warnings as the command line prints them: one line on stderr, and an exit code."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from mcad.cli.invocation import pasteable
from mcad.client.errors import (
    InvalidError,
    McadError,
    McadWarning,
    NotFoundError,
    TimedOutError,
    UnavailableError,
    one_line,
)
from mcad.client.figures.progress import clear

FAILED, USAGE, UNAVAILABLE, NOT_FOUND = 1, 2, 3, 4
TIMED_OUT, INTERRUPTED, TERMINATED = 124, 130, 143
"""Exit codes besides 0."""

EXIT_CODES = {
    0: "success",
    FAILED: "error",
    USAGE: "wrong usage",
    UNAVAILABLE: "the dispatcher cannot be asked",
    NOT_FOUND: "not found",
    TIMED_OUT: "timed out",
    INTERRUPTED: "interrupted (the usual end of --watch)",
    TERMINATED: "ended by SIGTERM",
}
"""All exit codes; ``mcad --help`` and docs/reference/cli.md list them."""


def exit_code(error: McadError) -> int:
    """The exit code of a command that ends with this error."""
    if isinstance(error, NotFoundError):
        return NOT_FOUND
    if isinstance(error, UnavailableError):
        return UNAVAILABLE
    return TIMED_OUT if isinstance(error, TimedOutError) else FAILED


def show(error: McadError) -> None:
    """Print an error, after the faults that it is about."""
    for fault in error.faults if isinstance(error, InvalidError) else ():
        show_error(fault)
    show_error(error.message)


def show_error(text: str) -> None:
    """Print what is wrong."""
    _print(f"error: {text}")


def warn(text: str) -> None:
    """Print a warning."""
    _print(f"warning: {text}")


def _print(line: str) -> None:
    """Print a line on stderr; if that is closed, the exit code has to do."""
    clear()
    with suppress(OSError):
        click.echo(pasteable(one_line(line)), err=True)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print warnings of ``mcad.client``, each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", McadWarning)
        python_shows: Callable[..., None] = warnings.showwarning

        def show_warning(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, McadWarning):
                warn(str(message))
            else:
                python_shows(message, category, *place, **more)

        warnings.showwarning = show_warning
        yield


def fail_for_missing(names: Sequence[str], message: str) -> None:
    """Print an error for each name, and end the command if there is any.

    ``message`` contains ``{}`` for the name.
    """
    for name in names:
        show_error(message.format(name))
    if names:
        raise click.exceptions.Exit(NOT_FOUND)
