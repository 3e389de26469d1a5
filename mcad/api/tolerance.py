"""Fault tolerance of AppWrappers: the configuration, and the annotations that override it.

Names and bounds are those of v1beta2; the annotations have an effect in both dialects. A faulty one
is reported and the default is used, because it must not keep an AppWrapper from running.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Self

from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field, StrictInt, model_validator

from mcad.api.durations import YEAR, YEAR_S, parse_duration
from mcad.api.located_fields import describe, shorten
from mcad.api.strict import Seconds, Strict
from mcad.api.wire import Json, Map, as_map
from mcad.core.state.model import Dialect
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.spelling import did_you_mean
from mcad.core.state.units import SECOND, Duration, format_duration

PREFIX = "workload.codeflare.dev.appwrapper/"

MAX_SECONDS = 7 * 24 * 3600
MAX_RETRIES = 2**31 - 1
MAX_CODE = 2**31

_TEXT_MAX = 1024  # characters of an annotation that are read: a few hundred exit codes
_INT_DIGITS = 10
_UNKNOWN_MAX = 8  # unknown annotations that are reported
_SHAPES = 1024  # combinations of values in the cache


class FaultToleranceSettings(Strict):
    """Defaults in seconds for AppWrappers without annotations, and bounds of the annotations."""

    admission_grace_period: Seconds = Field(
        default=60,
        alias="admissionGracePeriod",
        ge=0,
        le=MAX_SECONDS,
        description="How long the controllers of wrapped kinds have to create the pods.",
    )
    warmup_grace_period: Seconds = Field(
        default=300,
        alias="warmupGracePeriod",
        ge=0,
        le=MAX_SECONDS,
        description="How long the pods have to become ready.",
    )
    failure_grace_period: Seconds = Field(
        default=60,
        alias="failureGracePeriod",
        ge=0,
        le=MAX_SECONDS,
        description=(
            "How long failed pods are tolerated, because their controller may replace them."
        ),
    )
    retry_pause_period: Seconds = Field(
        default=90,
        alias="retryPausePeriod",
        ge=0,
        le=MAX_SECONDS,
        description="The pause between a reset and the next attempt.",
    )
    retry_limit: StrictInt = Field(
        default=3,
        alias="retryLimit",
        ge=0,
        le=MAX_RETRIES,
        description="How often an AppWrapper is reset before it fails.",
    )
    forceful_deletion_grace_period: Seconds = Field(
        default=600,
        alias="forcefulDeletionGracePeriod",
        ge=0,
        le=MAX_SECONDS,
        description="How long a deletion may take before it is forced.",
    )
    deletion_on_failure_grace_period: Seconds = Field(
        default=0,
        alias="deletionOnFailureGracePeriod",
        ge=0,
        le=MAX_SECONDS,
        description="How long the objects of a failed AppWrapper are kept.",
    )
    success_ttl: Seconds = Field(
        default=MAX_SECONDS,
        alias="successTTL",
        gt=0,
        le=YEAR_S,
        description=(
            "How long the objects of a finished AppWrapper are kept, and the ceiling of that."
        ),
    )
    grace_period_ceiling: Seconds = Field(
        default=24 * 3600,
        alias="gracePeriodCeiling",
        ge=0,
        le=MAX_SECONDS,
        description="The ceiling of all grace periods in annotations.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Check the order of the values, as upstream does at its start."""
        ceiling = self.grace_period_ceiling
        for name in (
            "admission_grace_period",
            "warmup_grace_period",
            "failure_grace_period",
            "retry_pause_period",
            "forceful_deletion_grace_period",
            "deletion_on_failure_grace_period",
        ):
            value = getattr(self, name)
            if value > ceiling:
                raise ValueError(
                    f"{type(self).model_fields[name].alias} ({value:g}) must be at most "
                    f"gracePeriodCeiling ({ceiling:g})"
                )
        if self.admission_grace_period > self.warmup_grace_period:
            raise ValueError(
                f"admissionGracePeriod ({self.admission_grace_period:g}) must be at most "
                f"warmupGracePeriod ({self.warmup_grace_period:g}): pods are created before they "
                "run"
            )
        return self


class Tolerances(Struct, frozen=True):
    """The configuration in the core's units.

    ``lenient`` is for v1beta1, without forced deletion and without removal of finished AppWrappers.
    """

    tolerant: FaultTolerance
    lenient: FaultTolerance
    grace_max: Duration

    @classmethod
    def of(cls, settings: FaultToleranceSettings) -> Self:
        """From the settings."""
        tolerant = FaultTolerance(
            admission_grace=_micros(settings.admission_grace_period),
            warmup_grace=_micros(settings.warmup_grace_period),
            failure_grace=_micros(settings.failure_grace_period),
            retry_pause=_micros(settings.retry_pause_period),
            retry_limit=settings.retry_limit,
            forceful_deletion_grace=_micros(settings.forceful_deletion_grace_period),
            deletion_on_failure_grace=_micros(settings.deletion_on_failure_grace_period),
            success_ttl=_micros(settings.success_ttl),
        )
        return cls(
            tolerant=tolerant,
            lenient=replace(tolerant, forceful_deletion_grace=None, success_ttl=None),
            grace_max=_micros(settings.grace_period_ceiling),
        )


def _micros(seconds: float) -> Duration:
    return round(seconds * SECOND)


BY_DEFAULT = Tolerances.of(FaultToleranceSettings())


def read_tolerance(
    annotations: Json, dialect: Dialect, tolerances: Tolerances
) -> tuple[FaultTolerance, tuple[str, ...]]:
    """The fault tolerance of an AppWrapper with these annotations, and warnings about them."""
    base = tolerances.lenient if dialect is Dialect.V1BETA1 else tolerances.tolerant
    own = tuple(_own(as_map(annotations))) if annotations else ()
    return _read(own, base, tolerances) if own else (base, ())


def _own(annotations: Map) -> Iterator[tuple[str, str]]:
    """(name, value) of the annotations with our prefix, sorted; of unknown ones only a few."""
    unknown = 0
    names = (key for key in annotations if isinstance(key, str) and key.startswith(PREFIX))
    for key in sorted(names):
        name, value = key.removeprefix(PREFIX), annotations[key]
        unknown += name not in _ANNOTATIONS
        if name in _ANNOTATIONS or unknown <= _UNKNOWN_MAX:
            text = value if isinstance(value, str) else describe(value)
            yield shorten(name), shorten(text.strip(), _TEXT_MAX)


@lru_cache(_SHAPES)
def _read(
    own: tuple[tuple[str, str], ...], base: FaultTolerance, tolerances: Tolerances
) -> tuple[FaultTolerance, tuple[str, ...]]:
    """Read a combination of annotations; cached, as thousands of AppWrappers have the same one."""
    reader = _Reader(base, tolerances)
    for name, text in own:
        reader.read(name, text)
    return replace(base, **reader.found), tuple(reader.warnings)


class _Reader:
    """Reads annotations one by one, and collects warnings."""

    def __init__(self, base: FaultTolerance, tolerances: Tolerances) -> None:
        self.found: Map = {}
        self.warnings: list[str] = []
        self._base = base
        self._tolerances = tolerances

    def read(self, name: str, text: str) -> None:
        known = _ANNOTATIONS.get(name)
        if known is None:
            hint = did_you_mean(name, _ANNOTATIONS)
            self._warn(name, f"is unknown and has no effect. {hint}".rstrip())
            return
        read, field = known
        read(self, name, field, text)

    def grace(self, name: str, field: str, text: str) -> None:
        """A duration between 0 and the ceiling."""
        given, most = parse_duration(text), self._tolerances.grace_max
        if given is None:
            default = _span(getattr(self._base, field))
            self._use_default(name, text, 'a duration like "90s" or "1h30m"', default)
            return
        self.found[field] = used = min(max(given, 0), most)
        if used != given:
            self._cut(name, text, f"0s and {_span(most)}", _span(used))

    def lifetime(self, name: str, field: str, text: str) -> None:
        """A duration up to the configured one, or to a year if none is configured."""
        given, default = parse_duration(text), self._base.success_ttl
        if given is None or given <= 0:
            self._use_default(name, text, 'a duration longer than 0, like "24h"', _span(default))
            return
        most = YEAR if default is None else default
        self.found[field] = used = min(given, most)
        if used != given:
            self._cut(name, text, f"0s and {_span(most)}", _span(used))

    def retries(self, name: str, field: str, text: str) -> None:
        """A number between 0 and ``MAX_RETRIES``."""
        given, most = _number(text), MAX_RETRIES
        if given is None:
            self._use_default(name, text, 'a whole number like "3"', str(self._base.retry_limit))
            return
        self.found[field] = used = min(max(given, 0), most)
        if used != given:
            self._cut(name, text, f"0 and {most}", str(used))

    def codes(self, name: str, field: str, text: str) -> None:
        """A list of exit codes; blanks do not matter."""
        words = [word.strip() for word in text.split(",")] if text else []
        numbers = [_number(word) for word in words]
        wrong = [
            word
            for word, code in zip(words, numbers, strict=True)
            if code is None or not -MAX_CODE <= code < MAX_CODE
        ]
        if wrong:
            self._use_default(name, text, 'exit codes like "3,10,42"', "none")
        else:
            self.found[field] = tuple(sorted({code for code in numbers if code is not None}))

    def _use_default(self, name: str, text: str, expected: str, default: str) -> None:
        self._warn(name, f"is {describe(text)}, not {expected}; the default is used, {default}.")

    def _cut(self, name: str, text: str, bounds: str, used: str) -> None:
        self._warn(name, f"is {describe(text)}; between {bounds} is allowed, {used} is used.")

    def _warn(self, name: str, message: str) -> None:
        self.warnings.append(f"metadata.annotations.{PREFIX}{name}: {message}")


def _number(text: str) -> int | None:
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    is_one = digits.isascii() and digits.isdecimal() and len(digits.lstrip("0")) <= _INT_DIGITS
    return int(text) if digits and is_one else None


def _span(duration: Duration | None) -> str:
    return "never" if duration is None else format_duration(duration)


_ANNOTATIONS: Mapping[str, tuple[Callable[[_Reader, str, str, str], None], str]] = {
    "admissionGracePeriodDuration": (_Reader.grace, "admission_grace"),
    "warmupGracePeriodDuration": (_Reader.grace, "warmup_grace"),
    "failureGracePeriodDuration": (_Reader.grace, "failure_grace"),
    "retryPausePeriodDuration": (_Reader.grace, "retry_pause"),
    "retryLimit": (_Reader.retries, "retry_limit"),
    "forcefulDeletionGracePeriodDuration": (_Reader.grace, "forceful_deletion_grace"),
    "deletionOnFailureGracePeriodDuration": (_Reader.grace, "deletion_on_failure_grace"),
    "successTTLDuration": (_Reader.lifetime, "success_ttl"),
    "terminalExitCodes": (_Reader.codes, "terminal_exit_codes"),
    "retryableExitCodes": (_Reader.codes, "retryable_exit_codes"),
}
"""How each annotation of an AppWrapper is read, and its field in ``FaultTolerance``."""
