"""Reads ``schedulingSpec``: the run time limit, and requeuing when too few pods run.

AppWrappers of v1beta2 have none; their wrapped objects may have a limit (``attempt_limit``).
"""

from collections.abc import Collection
from functools import lru_cache

from msgspec import Struct

from mcad.api.durations import clamp_limit, clamp_seconds
from mcad.api.located_fields import Fault, count_fault, describe
from mcad.api.models import DispatchDuration, SchedulingSpec
from mcad.api.models import Requeuing as RequeuingWire
from mcad.core.state.run_policy import AS_DOCUMENTED, Growth, Requeuing
from mcad.core.state.units import SECOND, Duration

MAX_NUMBER = 2**31 - 1
"""The largest number in the API."""

_FORMS = 256


class Scheduling(Struct, frozen=True):
    """The rules that were read; paths of faults and warnings begin at ``schedulingSpec``."""

    min_available: int = 0
    requeuing: Requeuing = AS_DOCUMENTED
    run_limit: Duration = 0
    run_expected: Duration = 0
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()


NOTHING = Scheduling()
_NO_DURATION = DispatchDuration()


def read_scheduling(spec: SchedulingSpec | None) -> Scheduling:
    """Read the rules of an AppWrapper; a field with a fault gets its default."""
    if spec is None:
        return NOTHING
    least = spec.min_available or 0
    reader = _Reader()
    if message := count_fault(least):
        reader.faults.append(Fault("schedulingSpec.minAvailable", message))
        least = 0
    requeuing = reader.requeuing(spec.requeuing) if spec.requeuing else AS_DOCUMENTED
    limit, expected = reader.durations(spec.dispatch_duration or _NO_DURATION)
    return Scheduling(
        least, requeuing, limit, expected, tuple(reader.faults), tuple(reader.warnings)
    )


def attempt_limit(deadlines: Collection[int], resets: int) -> Duration:
    """The maximum run time of an attempt by its wrapped objects; 0 if there is none.

    ``deadlines`` are the ``activeDeadlineSeconds`` of every item with pods, 0 for one without. A
    reset starts the time again with the same room, so an AppWrapper that may be reset has no limit.
    """
    if not deadlines or not all(deadlines) or resets:
        return 0
    return max(deadlines) * SECOND


class _Reader:
    """Reads the fields, and collects faults and warnings."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.warnings: list[str] = []

    def requeuing(self, wire: RequeuingWire) -> Requeuing:
        where = "schedulingSpec.requeuing"
        usual = self._number(f"{where}.timeInSeconds", wire.time_in_seconds)
        first = self._number(f"{where}.initialTimeInSeconds", wire.initial_time_in_seconds)
        longest = self._number(f"{where}.maxTimeInSeconds", wire.max_time_in_seconds)
        times = self._number(f"{where}.maxNumRequeuings", wire.max_num_requeuings)
        wait = first or usual
        if not wait:
            wait = AS_DOCUMENTED.wait // SECOND
            if wire.time_in_seconds == 0:
                self.warnings.append(
                    f"{where}.timeInSeconds: is 0, which leaves the pods no time to start; "
                    f"{wait} is used."
                )
        return _shared(wait, self._growth(f"{where}.growthType", wire.growth_type), longest, times)

    def durations(self, wire: DispatchDuration) -> tuple[Duration, Duration]:
        """(limit, expected); the expected run time is at most the limit."""
        where = "schedulingSpec.dispatchDuration"
        limit = self._number(f"{where}.limit", wire.limit)
        expected = self._number(f"{where}.expected", wire.expected)
        if limit and expected > limit:
            self.warnings.append(
                f"{where}.expected: is {expected}, but the limit is {limit}; {limit} is used."
            )
            expected = limit
        return clamp_limit(limit) * SECOND, clamp_seconds(expected) * SECOND

    def _number(self, path: str, value: int | None) -> int:
        """A number that is not negative, 0 if it is missing or invalid."""
        if not value:
            return 0
        if value < 0:
            self.faults.append(Fault(path, f"must not be negative, but is {describe(value)}."))
        elif value > MAX_NUMBER:
            message = f"is {describe(value)}; at most {MAX_NUMBER} is allowed."
            self.faults.append(Fault(path, message))
        else:
            return value
        return 0

    def _growth(self, path: str, word: str | None) -> Growth:
        """How the wait grows; as in MCAD, it does not grow if the word is unknown."""
        if word is None:
            return AS_DOCUMENTED.growth
        try:
            return Growth(word)
        except ValueError:
            self.warnings.append(
                f"{path}: is {describe(word)}; use exponential, linear or none. The wait does not "
                "grow."
            )
            return Growth.NONE


@lru_cache(_FORMS)
def _shared(wait: int, growth: Growth, longest: int, times: int) -> Requeuing:
    """A record in seconds; equal rules are one object, as thousands of AppWrappers share them."""
    return Requeuing(clamp_seconds(wait) * SECOND, growth, clamp_seconds(longest) * SECOND, times)
