"""The AppWrappers that hold room, as a search for evictions sees them (core R10)."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from mcad.core.state.model import Workload

_HIGHEST = 2**31
"""Above any priority."""


class Survey(NamedTuple):
    """The AppWrappers that hold room: the ``candidates`` for eviction by uid, in order; the uids
    ``releasing_soon``, which leave soon without an eviction and are counted on; and the
    ``promised`` uids, whose eviction has begun and whose room is for another preemptor."""

    candidates: dict[str, Workload]
    releasing_soon: list[str]
    promised: list[str]

    @property
    def lowest(self) -> int:
        """The lowest priority of all candidates."""
        return min((one.priority for one in islice(self.candidates.values(), 1)), default=_HIGHEST)
