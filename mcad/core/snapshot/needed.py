"""What was found to be needed, so that others need not be tried (nodes.py).

While no other leaves there is only less room than when one was tried: one that takes at least as
much of it is needed too. To compare two costs a hundredth of a search.
"""

from __future__ import annotations

from operator import le
from typing import NamedTuple

from mcad.core.state.work_bounds import NEEDED_KEPT_MAX

Kind = tuple[int, ...]
"""What of a node matters to the gang: which of its parts it admits, then the amounts free there."""


class Loss(NamedTuple):
    """What the nodes of one that has left have without it, and what they would have with it."""

    without: tuple[Kind, ...]
    beside: tuple[Kind, ...]

    def covers(self, other: Loss) -> bool:
        """Whether, if the gang needs that this one has left, it needs so of the other too: node by
        node there was no more without this one, and the other leaves no more of it. Then the nodes
        could change places, and nowhere would be more than when this one was tried. They admit the
        same: that is part of their kind, and compared both ways."""
        return (
            len(self.without) == len(other.without)
            and all(map(_is_no_more, self.without, other.without))
            and all(map(_is_no_more, other.beside, self.beside))
        )


class Needed:
    """The last of those that could not come back; good until another leaves."""

    def __init__(self) -> None:
        self._alike: set[object] = set()
        self._losses: list[Loss] = []

    def clear(self) -> None:
        """One leaves: perhaps they are needed no more."""
        self._alike.clear()
        self._losses.clear()

    def has(self, what: object) -> bool:
        """Whether one that had the same, or as much on nodes of the same kind, was needed."""
        return what in self._alike

    def note(self, *what: object) -> None:
        """Nor need those be tried that have that."""
        self._alike.update(what)

    def covers(self, loss: Loss) -> bool:
        """Whether one that took no more was needed."""
        return any(known.covers(loss) for known in self._losses)

    def add(self, loss: Loss) -> None:
        """One that took that was tried, and is needed."""
        self._losses = [loss, *self._losses[: NEEDED_KEPT_MAX - 1]]


def _is_no_more(one: Kind, other: Kind) -> bool:
    return all(map(le, one, other))
