"""Names of wrapped objects: which are taken, which are about to be, and what waits for them
(P6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcad.core.state.model import Child, ObjectRef
from mcad.core.state.violations import check

NameKey = tuple[str, str, str, str]


def name_key(ref: ObjectRef) -> NameKey:
    """What the API server keeps unique."""
    return (ref.group, ref.resource, ref.namespace, ref.name)


class Names:
    """Three indexes by name: observed objects, names taken by attempts, AppWrappers that wait.

    A name is *taken* from the intent until everything of the attempt is gone: between a create and
    the watch event that tells of it nothing else says that the name is taken.
    """

    def __init__(self) -> None:
        self._observed: dict[NameKey, str] = {}
        self._taken: dict[NameKey, str] = {}
        self._waiting: dict[NameKey, dict[str, None]] = {}

    def observe(self, child: Child) -> None:
        """An object has this name; the latest one counts."""
        self._observed[name_key(child.ref)] = child.uid

    def vanish(self, child: Child) -> None:
        """The object is gone."""
        if self._observed.get(name_key(child.ref)) == child.uid:
            del self._observed[name_key(child.ref)]

    def observed(self, ref: ObjectRef) -> str | None:
        """The uid of the object that has the name, None if none is known."""
        return self._observed.get(name_key(ref))

    def take(self, uid: str, refs: Iterable[ObjectRef]) -> None:
        """An attempt of this AppWrapper is going to use the names; the first to take one keeps
        it."""
        for ref in refs:
            self._taken.setdefault(name_key(ref), uid)

    def give_back(self, uid: str, refs: Iterable[ObjectRef]) -> None:
        """Nothing of the attempt is left."""
        for ref in refs:
            if self._taken.get(name_key(ref)) == uid:
                del self._taken[name_key(ref)]

    def taken_by(self, ref: ObjectRef) -> str | None:
        """The uid of the AppWrapper whose attempt has taken the name, None if none does."""
        return self._taken.get(name_key(ref))

    def wait(self, uid: str, refs: Iterable[ObjectRef]) -> None:
        """An AppWrapper waits until the names are free."""
        for ref in refs:
            self._waiting.setdefault(name_key(ref), {})[uid] = None

    def stop_waiting(self, uid: str, refs: Iterable[ObjectRef]) -> None:
        """It waits no more."""
        for ref in refs:
            waiters = self._waiting.get(name_key(ref), {})
            waiters.pop(uid, None)
            if not waiters:
                self._waiting.pop(name_key(ref), None)

    def waiters(self, ref: ObjectRef) -> list[str]:
        """What waits for the name, first come first."""
        return list(self._waiting.get(name_key(ref), ()))

    def check(self, children: Mapping[str, Child]) -> None:
        """Each observed name is that of a known object; raises ``InvariantViolated``. O(all)."""
        for key, uid in self._observed.items():
            child = children.get(uid)
            check(child is not None and name_key(child.ref) == key, "names-are-of-objects", uid)
        for child in children.values():
            check(name_key(child.ref) in self._observed, "objects-have-names", str(child.ref))
