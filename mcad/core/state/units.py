"""Time in the core: integer microseconds, never a float."""

Instant = int
"""Microseconds since the epoch."""

Duration = int
"""Microseconds."""

SECOND: Duration = 1_000_000


def format_duration(duration: Duration) -> str:
    """The shortest text that is read as the same duration: ``168h``, ``1m30s``, ``0.25s``."""
    sign, micros = "-" * (duration < 0), abs(duration)
    minutes, rest = divmod(micros, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest // SECOND}.{rest % SECOND:06}".rstrip("0").rstrip(".") if rest else ""
    parts = ((hours or "", "h"), (minutes or "", "m"), (seconds, "s"))
    return sign + ("".join(f"{number}{unit}" for number, unit in parts if number) or "0s")


def format_clock(at: Instant) -> str:
    """The time of the day in UTC, for instants within a day of the reader: ``12:03:04Z``."""
    minutes, seconds = divmod(at // SECOND % 86_400, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z"
