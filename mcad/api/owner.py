"""The controller owner reference of an object, by which pods find their AppWrapper (C3)."""

from msgspec import Struct

from mcad.api.labels import GROUP, KIND
from mcad.api.wire import Map, as_list, as_map, as_text


class Owner(Struct, frozen=True):
    """A controller owner reference."""

    uid: str
    group: str
    version: str
    kind: str
    name: str

    @property
    def is_appwrapper(self) -> bool:
        """Whether the owner is an AppWrapper, of any version."""
        return self.group == GROUP and self.kind == KIND


def controller_of(obj: Map) -> Owner | None:
    """The controller owner reference of an object, None if it has none."""
    for reference in map(as_map, as_list(as_map(obj.get("metadata")).get("ownerReferences"))):
        if reference.get("controller") is True:
            group, _, version = as_text(reference.get("apiVersion")).rpartition("/")
            return Owner(
                as_text(reference.get("uid")),
                group,
                version,
                as_text(reference.get("kind")),
                as_text(reference.get("name")),
            )
    return None
