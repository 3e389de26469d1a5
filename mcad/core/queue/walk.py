"""The position of the walk along the queue between two passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcad.core.queue.equivalence import EquivalenceClass, Turn
from mcad.core.state.units import Instant

if TYPE_CHECKING:
    from mcad.core.nodes.reserved_free import Spare

Scope = tuple[str, str] | None
"""The node of a quota tree, as (tree, node), for which an AppWrapper waits; None for the nodes of
the cluster."""


@dataclass(slots=True)
class Offer:
    """An offer of reserved room that takes several passes (backfill.py): the ``relieved`` room to
    the refused classes in ``line``, from its end, and all free reserved room to the ``new``
    classes."""

    line: list[EquivalenceClass]
    new: dict[EquivalenceClass, None]
    relieved: Spare


@dataclass(slots=True)
class Walk:
    """The position of the walk.

    ``resume_at`` is the turn at which the next pass continues, None for the first (R5).
    ``look_again_at`` is the latest time to test refused classes again. ``heads`` are the uids of
    the heads whose holding time runs, by what they wait for (R6). ``in_flight`` are the uids of
    recently dispatched AppWrappers, oldest first, and when (binding_wait.py). The walk
    ``gives_way`` to the periodic steps if a pass had no time for these. ``offer`` is the current
    offer of reserved room.
    """

    resume_at: Turn | None = None
    look_again_at: Instant = 0
    heads: dict[Scope, str] = field(default_factory=dict)
    in_flight: dict[str, Instant] = field(default_factory=dict)
    gives_way: bool = False
    offer: Offer | None = None
