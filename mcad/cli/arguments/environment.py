"""The clock and the connections of the command that is running."""

from __future__ import annotations

import click

from mcad.client.session import Environment


def environment() -> Environment:
    """The environment; tests pass another one as click's ``obj``."""
    found = click.get_current_context().find_object(Environment)
    return found if found is not None else Environment()
