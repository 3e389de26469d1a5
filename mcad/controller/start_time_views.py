"""Forecasts as JSON, beside the rows of those that wait (views.py); ``starts`` of others is None.

``restsOn`` is a word of ``mcad.core.views.start_times.Basis``; an unknown instant is None.
"""

from typing import Any

from mcad.api.wire import format_instant
from mcad.core.cluster import World
from mcad.core.state.bounds import FORECAST_AHEAD
from mcad.core.views.rows import Picture
from mcad.core.views.start_times import Forecast, forecasts

Json = dict[str, Any]


def starts_of_line(world: World, picture: Picture) -> dict[str, Json]:
    """By uid, of the first in line and of those that have claims. Bounded work, in one piece: what
    it rests on must not change meanwhile."""
    line = picture.line(FORECAST_AHEAD)
    found = forecasts(world, line, [*line, *world.claims])
    return {uid: _view(one) for uid, one in found.items()}


def starts_of_one(world: World, picture: Picture, uid: str) -> Json | None:
    """Of one AppWrapper, None if it does not wait."""
    forecast = forecasts(world, picture.line(FORECAST_AHEAD), [uid]).get(uid)
    return _view(forecast) if forecast is not None and forecast.why else None


def _view(forecast: Forecast) -> Json:
    return {
        "earliest": format_instant(forecast.earliest),
        "latest": format_instant(forecast.latest),
        "restsOn": str(forecast.basis),
        "why": forecast.why,
    }
