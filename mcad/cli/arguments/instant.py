"""``--until``: an instant of a journal."""

from __future__ import annotations

import click

from mcad.api.wire import parse_instant
from mcad.core.state.units import Instant


class InstantType(click.ParamType["Instant"]):
    """An RFC 3339 instant."""

    name = "TIME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Instant:
        """Microseconds since the epoch."""
        found = parse_instant(str(value))
        if not found:
            self.fail(f"{value!r} is not a time such as 2026-01-31T12:00:00Z", param, ctx)
        return found


until_option = click.option("--until", type=InstantType(), help="Ignore what came later.")
