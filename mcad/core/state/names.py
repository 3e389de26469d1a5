"""Names of wrapped objects: which are in use, and which are about to be (P6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcad.core.state.model import Child, ObjectRef
from mcad.core.state.violations import check

NameKey = tuple[str, str, str, str]


def name_key(ref: ObjectRef) -> NameKey:
    """What the API server keeps unique."""
    return (ref.group, ref.resource, ref.namespace, ref.name)


class Names:
    """Two indexes by name: observed objects, and names taken by attempts.

    A name is *taken* from the intent until everything of the attempt is gone: between a create and
    the watch event that tells of it nothing else says that the name is taken.
    """

    def __init__(self) -> None:
        self._observed: dict[NameKey, str] = {}
        self._taken: dict[NameKey, str] = {}

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

    def check(self, children: Mapping[str, Child]) -> None:
        """Each observed name is that of a known object; raises ``InvariantViolated``. O(all)."""
        for key, uid in self._observed.items():
            child = children.get(uid)
            check(child is not None and name_key(child.ref) == key, "names-are-of-objects", uid)
        for child in children.values():
            check(name_key(child.ref) in self._observed, "objects-have-names", str(child.ref))
