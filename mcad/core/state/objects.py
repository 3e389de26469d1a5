"""The wrapped objects that the watches show, by uid, AppWrapper and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from mcad.core.state.bounds import READS_PER_SECOND, WARNING_READS_PER_SECOND, PerSecond
from mcad.core.state.model import Child, NameKey, ObjectRef, Pod
from mcad.core.state.units import Instant
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from mcad.core.state.entry import Entry


class Names:
    """Names of wrapped objects: observed names, and names taken by attempts (P6).

    A name is *taken* from the intent until all objects of the attempt are gone: between a create
    and its watch event nothing else shows that the name is taken.
    """

    def __init__(self) -> None:
        self._observed: dict[NameKey, str] = {}
        self._taken: dict[NameKey, str] = {}

    def observe(self, child: Child) -> None:
        """Note an object with its name; the latest object counts."""
        self._observed[child.ref.key] = child.uid

    def vanish(self, child: Child) -> None:
        """Note that the object is gone."""
        if self._observed.get(child.ref.key) == child.uid:
            del self._observed[child.ref.key]

    def observed(self, ref: ObjectRef) -> str | None:
        """The uid of the object that has the name, None if none is known."""
        return self._observed.get(ref.key)

    def take(self, uid: str, refs: Iterable[ObjectRef]) -> None:
        """Take the names for an attempt of this AppWrapper; the first to take a name keeps it."""
        for ref in refs:
            self._taken.setdefault(ref.key, uid)

    def give_back(self, uid: str, refs: Iterable[ObjectRef]) -> None:
        """Give back the names: nothing of the attempt is left."""
        for ref in refs:
            if self._taken.get(ref.key) == uid:
                del self._taken[ref.key]

    def taken_by(self, ref: ObjectRef) -> str | None:
        """The uid of the AppWrapper whose attempt has taken the name, None if none does."""
        return self._taken.get(ref.key)

    def check(self, children: Mapping[str, Child]) -> None:
        """Check that observed names have known objects; raises ``InvariantViolated``. O(all)."""
        for key, uid in self._observed.items():
            child = children.get(uid)
            check(child is not None and child.ref.key == key, "names-are-of-objects", uid)
        for child in children.values():
            check(child.ref.key in self._observed, "objects-have-names", str(child.ref))


class Unproven:
    """Pods that name an AppWrapper, with a chain of controllers that does not prove it: they are
    judged again when the object at the root of their chain becomes known (C3)."""

    def __init__(self) -> None:
        self._by_root: dict[str, dict[str, Pod]] = {}
        self._root_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._root_of)

    def put(self, pod: Pod) -> None:
        """Keep the pod as it is now, with the AppWrapper that it names."""
        self.drop(pod.uid)
        self._by_root.setdefault(pod.root, {})[pod.uid] = pod
        self._root_of[pod.uid] = pod.root

    def drop(self, uid: str) -> None:
        """Drop a pod that is gone, or whose chain is proven."""
        root = self._root_of.pop(uid, None)
        if root is None:
            return
        pods = self._by_root[root]
        del pods[uid]
        if not pods:
            del self._by_root[root]

    def below(self, root: str) -> Iterable[Pod]:
        """The pods whose chain contains this object."""
        return tuple(self._by_root.get(root, {}).values())


class Objects:
    """All observed objects that belong, or claim to belong, to an AppWrapper.

    ``by_uid`` and ``by_workload`` (uid of the AppWrapper -> its objects by uid) hold the same
    objects. ``disowned`` are objects of which only labels name an AppWrapper, ``unproven`` pods
    without a proven chain of controllers. ``unswept`` (an ordered set) are objects to be tested for
    orphans, ``swept`` says when the deletion of an object may be requested again, and ``leftovers``
    are the uids of AppWrappers known only by their objects. ``unwatched`` are the kinds (group,
    resource) whose objects cannot be watched, and why; ``item_reads`` and ``warning_reads`` bound
    live reads.
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
        self.warning_reads = PerSecond(WARNING_READS_PER_SECOND)

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
        """Check that the indexes agree; raises ``InvariantViolated``. O(all)."""
        self.names.check(self.by_uid)
        for uid, children in self.by_workload.items():
            for child in children.values():
                self.check_one(uid, child)
        linked = sum(map(len, self.by_workload.values()))
        check(linked == len(self.by_uid), "each-object-has-one-appwrapper", str(linked))

    def check_one(self, workload: str, child: Child) -> None:
        """Check that one object is found by its uid and belongs to this AppWrapper."""
        check(self.by_uid.get(child.uid) is child, "objects-are-the-same", str(child.ref))
        check(child.workload == workload, "objects-are-of-their-appwrapper", str(child.ref))
