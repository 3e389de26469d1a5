"""Reads durations in Go's notation: ``1h30m``, ``90s``, ``1.5h``."""

import re
from functools import lru_cache

from mcad.core.state.units import SECOND, Duration

YEAR_S = 366 * 24 * 3600
"""Seconds of a year, which may be a leap year: no duration that users declare counts as longer.

The API server takes 2^63-1 seconds for many of them. The core adds durations to times, and a time
that nothing can write would end the process.
"""

YEAR: Duration = YEAR_S * SECOND


def clamp_seconds(seconds: int) -> int:
    """A declared number of seconds within 0 and a year."""
    return min(max(0, seconds), YEAR_S)


def clamp_limit(seconds: int) -> int:
    """A declared limit in seconds, 0 for none. A limit of a year or more is none as well: users
    write such numbers to mean "never", and work that is meant to go on must not end after a year.
    """
    return seconds if 0 < seconds < YEAR_S else 0


_NANOS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # the micro sign
    "μs": 1_000,  # the Greek letter
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_NANOS_MAX = 2**63 - 1  # Go counts in 64 bits
_TEXT_MAX = 64
_KNOWN = 256

_UNIT = "|".join(sorted(_NANOS, key=len, reverse=True))
_PART = rf"(\d+\.?\d*|\.\d+)({_UNIT})"
_PARTS = re.compile(_PART, re.ASCII)
_WHOLE = re.compile(rf"([-+]?)(?:0|(?:{_PART})+)", re.ASCII)


@lru_cache(_KNOWN)
def parse_duration(text: str) -> Duration | None:
    """The microseconds, rounded towards zero; None if Go would not accept the text."""
    whole = _WHOLE.fullmatch(text) if len(text) <= _TEXT_MAX else None
    if whole is None:
        return None
    nanos = sum(_nanos(number, unit) for number, unit in _PARTS.findall(text))
    if nanos > _NANOS_MAX:
        return None
    micros = nanos // 1_000
    return -micros if whole[1] == "-" else micros


def _nanos(number: str, unit: str) -> int:
    whole, _, part = number.partition(".")
    scale: int = 10 ** len(part)
    return int(whole or "0") * _NANOS[unit] + int(part or "0") * _NANOS[unit] // scale
