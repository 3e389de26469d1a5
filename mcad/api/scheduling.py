"""``schedulingSpec``: when too few pods make an AppWrapper queue again, and how long it may run."""

from functools import lru_cache

from msgspec import Struct

from mcad.api.models import DispatchDuration, SchedulingSpec
from mcad.api.models import Requeuing as RequeuingWire
from mcad.api.parts import Fault, count_fault, describe
from mcad.core.rules import AS_DOCUMENTED, Growth, Requeuing
from mcad.core.units import SECOND, Duration

MAX_NUMBER = 2**31 - 1
"""The largest number of the wire. People write one like it where they mean "never"."""

_FORMS = 256


class Scheduling(Struct, frozen=True):
    """What was understood; the paths of ``faults`` and ``warnings`` begin at ``schedulingSpec``."""

    min_available: int = 0
    requeuing: Requeuing = AS_DOCUMENTED
    run_limit: Duration = 0
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()


NOTHING = Scheduling()


def read_scheduling(spec: SchedulingSpec | None) -> Scheduling:
    """The rules of an AppWrapper; what is at fault has its default."""
    if spec is None:
        return NOTHING
    least = spec.min_available or 0
    reader = _Reader()
    if message := count_fault(least):
        reader.faults.append(Fault("schedulingSpec.minAvailable", message))
    requeuing = reader.requeuing(spec.requeuing) if spec.requeuing else AS_DOCUMENTED
    limit = reader.run_limit(spec.dispatch_duration) if spec.dispatch_duration else 0
    return Scheduling(least, requeuing, limit, tuple(reader.faults), tuple(reader.warnings))


class _Reader:
    """Reads numbers, and notes what is wrong with them."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.warnings: list[str] = []

    def requeuing(self, wire: RequeuingWire) -> Requeuing:
        where = "schedulingSpec.requeuing"
        said = self._number(f"{where}.timeInSeconds", wire.time_in_seconds)
        first = self._number(f"{where}.initialTimeInSeconds", wire.initial_time_in_seconds)
        longest = self._number(f"{where}.maxTimeInSeconds", wire.max_time_in_seconds)
        times = self._number(f"{where}.maxNumRequeuings", wire.max_num_requeuings)
        wait = first or said
        if not wait:
            wait = AS_DOCUMENTED.wait // SECOND
            if wire.time_in_seconds == 0:
                self.warnings.append(
                    f"{where}.timeInSeconds: is 0, which leaves pods no time to start; "
                    f"{wait} is used."
                )
        return _shared(wait, self._growth(f"{where}.growthType", wire.growth_type), longest, times)

    def run_limit(self, wire: DispatchDuration) -> Duration:
        return self._number("schedulingSpec.dispatchDuration.limit", wire.limit) * SECOND

    def _number(self, path: str, value: int | None) -> int:
        """A number that is not negative, 0 if it is not given or wrong."""
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
        """MCAD let the wait not grow for any word that it did not know."""
        if word is None:
            return AS_DOCUMENTED.growth
        try:
            return Growth(word)
        except ValueError:
            self.warnings.append(
                f"{path}: is {describe(word)}; exponential, linear and none are known. The wait "
                "does not grow."
            )
            return Growth.NONE


@lru_cache(_FORMS)
def _shared(wait: int, growth: Growth, longest: int, times: int) -> Requeuing:
    """Equal rules are one object: thousands of AppWrappers have the same ones. Seconds."""
    return Requeuing(wait * SECOND, growth, longest * SECOND, times)
