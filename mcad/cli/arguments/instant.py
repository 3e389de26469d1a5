"""``--until`` and ``--since``: instants."""

from __future__ import annotations

import re

import click

from mcad.api.wire import parse_instant
from mcad.cli.arguments.environment import environment
from mcad.core.state.units import SECOND, Instant

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


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


class SinceType(click.ParamType["Instant"]):
    """An RFC 3339 instant, or so long ago."""

    name = "TIME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Instant:
        """Microseconds since the epoch."""
        if found := parse_instant(str(value)):
            return found
        ago = re.fullmatch(r"([0-9]{1,9})([smhd])", str(value), re.ASCII)
        if ago is None:
            self.fail(
                f"{value!r} is neither a duration such as 12h or 7d nor a time such as"
                " 2026-01-31T12:00:00Z",
                param,
                ctx,
            )
        return environment().clock.now_us() - int(ago[1]) * UNITS_S[ago[2]] * SECOND
