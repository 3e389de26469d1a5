"""Instants as the API writes them."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(now_us: int) -> str:
    """``metav1.Time``: RFC 3339 in whole seconds."""
    return _seconds(now_us // 1_000_000)


@lru_cache(64)  # many are written within the same second
def _seconds(since: int) -> str:
    return (EPOCH + timedelta(seconds=since)).strftime("%Y-%m-%dT%H:%M:%SZ")


def micros(now_us: int) -> str:
    """``metav1.MicroTime``: RFC 3339 with six digits behind the second."""
    return (EPOCH + timedelta(microseconds=now_us)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_us(text: str) -> int:
    """Microseconds since the epoch; raises ValueError."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment - EPOCH) // timedelta(microseconds=1)
