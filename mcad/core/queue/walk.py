"""Where the walk along the queue stands between two passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcad.core.queue.equivalence import EquivalenceClass, Turn
from mcad.core.state.units import Instant

if TYPE_CHECKING:
    from mcad.core.nodes.reserved_free import Spare

Scope = tuple[str, str] | None
"""A node of a quota tree that an AppWrapper waits for, as (tree, node), or None for the nodes of
the cluster."""


@dataclass(slots=True)
class Offer:
    """An offer of reserved room that takes several passes (backfill.py): to the refused classes in
    ``line``, the first one last, what was ``relieved``; all that is free to those that are
    ``new``."""

    line: list[EquivalenceClass]
    new: dict[EquivalenceClass, None]
    relieved: Spare


@dataclass(slots=True)
class Walk:
    """Where the walk stands.

    ``resume_at`` is the turn at which the next pass continues, None at the first (R5).
    ``look_again_at`` is when refused classes are tested again at the latest. ``heads`` are the uids
    of the heads whose holding time runs, by what they wait for (R6). ``in_flight`` are the uids of
    those that were dispatched lately, the first one first, and when (binding_wait.py). It
    ``gives_way`` to what is looked at now and then, if a pass had no time for that. ``offer`` is
    the offer of reserved room that is under way.
    """

    resume_at: Turn | None = None
    look_again_at: Instant = 0
    heads: dict[Scope, str] = field(default_factory=dict)
    in_flight: dict[str, Instant] = field(default_factory=dict)
    gives_way: bool = False
    offer: Offer | None = None
