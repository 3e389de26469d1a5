"""Instants as the API writes them."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(now_us: int) -> str:
    """``metav1.Time``: RFC 3339 in whole seconds."""
    return (EPOCH + timedelta(microseconds=now_us)).strftime("%Y-%m-%dT%H:%M:%SZ")


def micros(now_us: int) -> str:
    """``metav1.MicroTime``: RFC 3339 with six digits behind the second."""
    return (EPOCH + timedelta(microseconds=now_us)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_us(text: str) -> int:
    """Microseconds since the epoch; raises ValueError."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment - EPOCH) // timedelta(microseconds=1)
