"""Durations on the command line."""

from __future__ import annotations

import re
from typing import Any

import click

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class SecondsType(click.ParamType[float]):
    """``90``, ``90s``, ``5m`` or ``1h`` in seconds."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the duration."""
        if isinstance(value, int | float):
            return float(value)
        match = re.fullmatch(r"([0-9]{1,9})([smh]?)", str(value), re.ASCII)
        if match is None or not int(match[1]):
            self.fail(f"{value!r} is not a duration such as 90s, 5m or 1h", param, ctx)
        return float(int(match[1]) * _UNITS[match[2]])


class TimeoutType(SecondsType):
    """The same, or 0 for none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the duration; 0.0 for none."""
        return 0.0 if str(value) in ("0", "0s") else super().convert(value, param, ctx)
