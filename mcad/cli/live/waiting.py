"""A wait whose reasons and failures are printed on stderr as they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mcad.cli.errors import show
from mcad.client.appwrappers.watch import Goal, Wait

Json = dict[str, Any]


def printed_wait(goal: Goal, report: Callable[[Json], None], timeout_s: float | None) -> Wait:
    """The wait; ``report`` prints an AppWrapper that has reached the goal."""
    return Wait(goal, report, show, lambda text: click.echo(text, err=True), timeout_s)
