"""Durations as kubectl writes them."""

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 365 * 86_400


def human(seconds: int) -> str:
    """Two units at most, fewer as it gets longer.

    ``seconds`` is 0 or more. Source: ``k8s.io/apimachinery/pkg/util/duration``, HumanDuration.
    """
    if seconds < 2 * MINUTE:
        return f"{seconds}s"
    if seconds < 10 * MINUTE:
        return _two(seconds, MINUTE, "m", 1, "s")
    if seconds < 3 * HOUR:
        return f"{seconds // MINUTE}m"
    if seconds < 8 * HOUR:
        return _two(seconds, HOUR, "h", MINUTE, "m")
    if seconds < 2 * DAY:
        return f"{seconds // HOUR}h"
    if seconds < 8 * DAY:
        return _two(seconds, DAY, "d", HOUR, "h")
    if seconds < 2 * YEAR:
        return f"{seconds // DAY}d"
    if seconds < 8 * YEAR:
        return _two(seconds, YEAR, "y", DAY, "d")
    return f"{seconds // YEAR}y"


def _two(seconds: int, large: int, name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{name}" + (f"{rest}{small_name}" if rest else "")
