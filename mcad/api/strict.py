"""The base of all parts of the configuration: immutable, and unknown fields are refused."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from mcad.api.durations import parse_duration
from mcad.api.located_fields import describe
from mcad.api.wire import Json
from mcad.core.state.units import SECOND


class Strict(BaseModel):
    """A part of the configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _seconds(value: Json) -> Json:
    """The seconds of a number, or of a duration in Go's notation."""
    if not isinstance(value, str):
        return value
    duration = parse_duration(value)
    if duration is None:
        raise ValueError(
            f'must be a number of seconds or a duration like "1m30s", not {describe(value)}'
        )
    return duration / SECOND if duration % SECOND else duration // SECOND


@dataclass(frozen=True)
class Unit:
    """The unit of a number, for its documentation."""

    name: str


SECONDS, MILLISECONDS = Unit("s"), Unit("ms")

Seconds = Annotated[float, BeforeValidator(_seconds), SECONDS]
