"""The DispatchPauses, and which of them concerns an AppWrapper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.model import Workload
from mcad.core.state.quota_records import Designation
from mcad.core.state.waiting_reason import Hold, WaitingReason

if TYPE_CHECKING:
    from mcad.core.quota.usage import Forest


class DispatchPauses:
    """Owns the DispatchPauses by scope. Where several concern an AppWrapper, the widest counts.

    After a change every AppWrapper is checked once more, in as many cycles as that takes
    (``pending``); nothing is dispatched meanwhile.
    """

    def __init__(self, forest: Forest) -> None:
        self.by_uid: dict[str, DispatchPause] = {}
        self._forest = forest
        self._changed = False
        self._left: list[str] = []

    def seen(self, pause: DispatchPause) -> None:
        """Add or replace a DispatchPause."""
        if self.by_uid.get(pause.uid) != pause:
            self.by_uid[pause.uid] = pause
            self._changed = True

    def gone(self, uid: str) -> None:
        """Remove a DispatchPause."""
        if self.by_uid.pop(uid, None) is not None:
            self._changed = True

    def trees_changed(self) -> None:
        """Check again after a change of trees: leaves may be below other nodes."""
        self._changed = self._changed or any(one.tree for one in self.by_uid.values())

    @property
    def pending(self) -> bool:
        """Whether some AppWrappers have not been checked since the last change."""
        return self._changed or bool(self._left)

    def take(self, uids: Iterable[str], most: int) -> Iterator[str]:
        """Take the next AppWrappers to check; ``uids`` are all AppWrappers."""
        if self._changed:
            self._changed, self._left = False, list(uids)
        for _ in range(min(most, len(self._left))):
            yield self._left.pop()

    def hold(self, work: Workload) -> Hold | None:
        """The hold of the DispatchPause that concerns the AppWrapper, None if none does."""
        if not self.by_uid:
            return None
        found = [one for one in self.by_uid.values() if self._concerns(one, work)]
        if not found:
            return None
        widest = min(found, key=lambda one: (bool(one.tree), bool(one.namespace), one.name))
        return Hold(WaitingReason.DISPATCH_PAUSED, widest.text)

    def _concerns(self, pause: DispatchPause, work: Workload) -> bool:
        if pause.namespace:
            return pause.namespace == work.namespace
        return not pause.tree or pause.node in self._nodes(pause.tree, work)

    def _nodes(self, tree: str, work: Workload) -> Iterator[str]:
        """The nodes of the tree at which the AppWrapper would be charged."""
        for name, leaf in self._forest.path(Designation(work.quota)):
            if name == tree:
                yield from (node.name for node in self._forest.trees[tree].node_of(leaf).chain)
