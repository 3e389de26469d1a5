"""Victims that are known to be needed, so that similar ones need not be tried (nodes.py).

While no further AppWrapper is removed, a candidate that would take at least as much room as a
known-needed victim is needed too. A comparison costs a hundredth of a search.
"""

from __future__ import annotations

from operator import le
from typing import NamedTuple

from mcad.core.state.work_bounds import NEEDED_KEPT_MAX

Kind = tuple[int, ...]
"""What matters of a node to the gang: which of its parts the node admits, then the amounts free
there."""


class Loss(NamedTuple):
    """The nodes of a removed AppWrapper without it, and with it."""

    without: tuple[Kind, ...]
    beside: tuple[Kind, ...]

    def covers(self, other: Loss) -> bool:
        """Whether the other AppWrapper is needed if this one is.

        That is so if node by node there was no more room without this one, and the other leaves no
        more. Then the nodes could change places, and nowhere would be more room than when this one
        was tried. Their kinds are compared both ways, so both nodes admit the same parts.
        """
        return (
            len(self.without) == len(other.without)
            and all(map(_is_no_more, self.without, other.without))
            and all(map(_is_no_more, other.beside, self.beside))
        )


class Needed:
    """The AppWrappers that could not be restored last; valid until another one is removed."""

    def __init__(self) -> None:
        self._alike: set[object] = set()
        self._losses: list[Loss] = []

    def clear(self) -> None:
        """Another AppWrapper is removed: none of them may be needed any more."""
        self._alike.clear()
        self._losses.clear()

    def has(self, what: object) -> bool:
        """Whether an AppWrapper that had the same, or as much on nodes of the same kind, was
        needed."""
        return what in self._alike

    def note(self, *what: object) -> None:
        """AppWrappers that have this need not be tried either."""
        self._alike.update(what)

    def covers(self, loss: Loss) -> bool:
        """Whether an AppWrapper that took no more was needed."""
        return any(known.covers(loss) for known in self._losses)

    def add(self, loss: Loss) -> None:
        """An AppWrapper that took this was tried, and is needed."""
        self._losses = [loss, *self._losses[: NEEDED_KEPT_MAX - 1]]


def _is_no_more(one: Kind, other: Kind) -> bool:
    return all(map(le, one, other))
