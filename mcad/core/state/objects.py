"""The wrapped objects that the watches show, by uid, AppWrapper and name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcad.core.state.bounds import READS_PER_SECOND, PerSecond
from mcad.core.state.model import Child, ObjectRef
from mcad.core.state.names import Names
from mcad.core.state.units import Instant
from mcad.core.state.unproven import Unproven
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from mcad.core.state.entry import Entry


class Objects:
    """Everything observed that belongs, or claims to belong, to an AppWrapper.

    ``by_uid`` and ``by_workload`` (uid of the AppWrapper -> its objects by uid) hold the same
    objects. ``disowned`` are objects of which only labels name an AppWrapper, ``unproven`` pods
    without a proven chain of controllers. ``unswept`` (an ordered set) are objects to be tested for
    orphans, ``swept`` says when the deletion of one may be requested again, and ``leftovers`` are
    the uids of AppWrappers that only their objects tell of. ``unwatched`` are the kinds (group,
    resource) whose objects cannot be watched, and why; ``item_reads`` bounds live reads.
    """

    def __init__(self) -> None:
        self.by_uid: dict[str, Child] = {}
        self.by_workload: dict[str, dict[str, Child]] = {}
        self.disowned: dict[str, Child] = {}
        self.unproven = Unproven()
        self.names = Names()
        self.unswept: dict[str, None] = {}
        self.swept: dict[str, Instant] = {}
        self.leftovers: dict[str, None] = {}
        self.unwatched: dict[tuple[str, str], str] = {}
        self.item_reads = PerSecond(READS_PER_SECOND)

    def put(self, child: Child) -> None:
        """Remember an object as it is now."""
        old = self.by_uid.get(child.uid)
        if old is not None and old.workload != child.workload:
            self._unlink(old)
        self.by_uid[child.uid] = child
        self.by_workload.setdefault(child.workload, {})[child.uid] = child
        self.names.observe(child)
        self.unswept[child.uid] = None

    def drop(self, uid: str) -> Child | None:
        """Forget an object; returns it as it was, None if it was not known."""
        child = self.by_uid.pop(uid, None)
        self.unswept.pop(uid, None)
        self.swept.pop(uid, None)
        if child is None:
            return None
        self._unlink(child)
        self.names.vanish(child)
        return child

    def _unlink(self, child: Child) -> None:
        siblings = self.by_workload[child.workload]
        del siblings[child.uid]
        if not siblings:
            del self.by_workload[child.workload]

    def is_watched(self, ref: ObjectRef) -> bool:
        """Whether objects of this kind can be watched."""
        return (ref.group, ref.resource) not in self.unwatched

    def of(self, entry: Entry) -> list[Child]:
        """The objects of the AppWrapper, of any attempt; a copy."""
        return list(self.by_workload.get(entry.uid, {}).values())

    def check(self) -> None:
        """The indexes agree; raises ``InvariantViolated``. O(all)."""
        self.names.check(self.by_uid)
        for uid, children in self.by_workload.items():
            for child in children.values():
                self.check_one(uid, child)
        linked = sum(map(len, self.by_workload.values()))
        check(linked == len(self.by_uid), "each-object-has-one-appwrapper", str(linked))

    def check_one(self, workload: str, child: Child) -> None:
        """One object is found by its uid and belongs to this AppWrapper."""
        check(self.by_uid.get(child.uid) is child, "objects-are-the-same", str(child.ref))
        check(child.workload == workload, "objects-are-of-their-appwrapper", str(child.ref))
