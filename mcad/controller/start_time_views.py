"""Start time estimates as JSON, part of the rows of waiting AppWrappers (views.py).

``restsOn`` is a word of ``mcad.core.views.start_times.Basis``; an unknown instant is None.
"""

from typing import Any

from mcad.api.wire import format_instant
from mcad.core.cluster import Cluster
from mcad.core.state.bounds import START_TIMES_AHEAD
from mcad.core.views.rows import Picture
from mcad.core.views.start_times import StartTime, start_times

Json = dict[str, Any]


def starts_of_line(cluster: Cluster, picture: Picture) -> dict[str, Json]:
    """Estimates by uid, for the first in the queue and for AppWrappers with reservations.

    Computed in one piece, because the state must not change meanwhile; the work is bounded.
    """
    line = picture.line(START_TIMES_AHEAD)
    found = start_times(cluster, line, [*line, *cluster.reservations])
    return {uid: _view(one) for uid, one in found.items()}


def starts_of_one(cluster: Cluster, picture: Picture, uid: str) -> Json | None:
    """The estimate of one AppWrapper; None if it does not wait."""
    start_time = start_times(cluster, picture.line(START_TIMES_AHEAD), [uid]).get(uid)
    return _view(start_time) if start_time is not None and start_time.why else None


def _view(start_time: StartTime) -> Json:
    return {
        "earliest": format_instant(start_time.earliest),
        "latest": format_instant(start_time.latest),
        "restsOn": str(start_time.basis),
        "why": start_time.why,
    }
