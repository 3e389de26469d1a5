"""What one pass over the queue leaves for the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcad.core.queue.equivalence import EquivalenceClass, Turn
from mcad.core.state.units import Instant

Scope = tuple[str, str] | None
"""A node of a quota tree that an AppWrapper waits for, as (tree, node), or None for the nodes of
the cluster."""


@dataclass(slots=True)
class Walk:
    """Where the walk along the queue stands.

    ``resume_at`` is the turn at which the next pass continues, None at the first (R5).
    ``look_again_at`` is when refused classes are tested again at the latest. ``heads`` are the uids
    of the heads whose holding time runs, by what they wait for (R6). ``ask_back`` (an ordered set)
    are the classes that borrowers wait for (borrow_wait.py).
    """

    resume_at: Turn | None = None
    look_again_at: Instant = 0
    heads: dict[Scope, str] = field(default_factory=dict)
    ask_back: dict[EquivalenceClass, None] = field(default_factory=dict)
