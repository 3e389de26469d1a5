"""Time in the core: integer microseconds, never a float."""

Instant = int
"""Microseconds since the epoch."""

Duration = int
"""Microseconds."""

SECOND: Duration = 1_000_000
