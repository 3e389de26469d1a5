"""Leaves out what other objects of the same list own: their controllers make it again.

Of what ``kubectl get deployments,replicasets,pods -o yaml`` prints, the Deployments are left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from mcad.api.wire import Json, Map, as_list, as_map, as_text, plural
from mcad.client.errors import InvalidError, warn
from mcad.client.manifests.documents import Document

EACH = 20
"""More objects than this are not named one by one."""

NAMED = 5
"""Objects of a kind that are named then."""


class _Owned(Struct, frozen=True):
    """An object with an owner: the first one of the list, else what its reference names."""

    document: Document
    owner: str
    is_listed: bool


def without_owned(documents: Sequence[Document]) -> list[Document]:
    """The objects that no other one owns, with a warning that names those left out.

    Raises ``InvalidError`` if an object is owned by one that is not in the list.
    """
    known = _by_uid(documents), _by_name(documents)
    owned = [found for one in documents if (found := _owned(one, *known)) is not None]
    strangers = [one for one in owned if not one.is_listed]
    if strangers:
        count = plural(len(strangers), "fault")
        raise InvalidError(
            f"nothing was wrapped: {count} to correct first", tuple(_faults(strangers))
        )
    for text in _left_out(owned):
        warn(text)
    out = {id(one.document) for one in owned}
    return [one for one in documents if id(one) not in out]


def _owned(
    document: Document, by_uid: Mapping[str, Map], by_name: Mapping[tuple[str, ...], list[Map]]
) -> _Owned | None:
    """Its owner, None if it has none; a controller counts before other owners."""
    obj = document.content
    references = [as_map(one) for one in as_list(_metadata(obj).get("ownerReferences"))]
    references.sort(key=lambda one: one.get("controller") is not True)
    for one in references:
        named = by_name.get(_key(one, one.get("name")), [])
        listed = [by_uid[uid]] if (uid := as_text(one.get("uid"))) in by_uid else named
        if any(_may_own(owner, obj, uid) for owner in listed):
            return _Owned(document, _title(one), is_listed=True)
    return _Owned(document, _title(references[0]), is_listed=False) if references else None


def _may_own(owner: Map, obj: Map, uid: str) -> bool:
    """Whether the object that a reference names is this one; a list without uids tells by name."""
    metadata, own = _metadata(owner), _metadata(obj)
    if owner is obj or as_text(metadata.get("uid")) not in ("", uid):
        return False
    spaces = {as_text(one.get("namespace")) for one in (metadata, own)} - {""}
    return len(spaces) < 2


def _by_uid(documents: Iterable[Document]) -> dict[str, Map]:
    found = {as_text(_metadata(one.content).get("uid")): one.content for one in documents}
    return {uid: obj for uid, obj in found.items() if uid}


def _by_name(documents: Iterable[Document]) -> dict[tuple[str, ...], list[Map]]:
    found: dict[tuple[str, ...], list[Map]] = defaultdict(list)
    for one in documents:
        obj = one.content
        found[_key(obj, _metadata(obj).get("name"))].append(obj)
    return found


def _key(obj: Map, name: Json) -> tuple[str, ...]:
    """The API group, kind and name; the version does not matter."""
    group = as_text(obj.get("apiVersion")).rpartition("/")[0]
    return group, as_text(obj.get("kind")), as_text(name)


def _metadata(obj: Map) -> Map:
    return as_map(obj.get("metadata"))


def _title(obj: Map) -> str:
    """``Deployment web``, of an object or of a reference to it."""
    name = as_text(obj.get("name")) or as_text(_metadata(obj).get("name"))
    return f"{as_text(obj.get('kind')) or 'an object'} {name}".rstrip()


def _left_out(owned: Sequence[_Owned]) -> Iterator[str]:
    """One line for each object, or for each kind if there are many."""
    if len(owned) <= EACH:
        for one in owned:
            yield f"left out: {_title(one.document.content)}, owned by {one.owner}"
        return
    kinds: dict[str, list[str]] = defaultdict(list)
    for one in owned:
        obj = one.document.content
        kinds[as_text(obj.get("kind"))].append(as_text(_metadata(obj).get("name")))
    for kind, names in kinds.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        told = ", ".join(names[:NAMED])
        yield f"left out: {len(names)} of kind {kind}, owned by other objects: {told}{more}"


def _faults(strangers: Sequence[_Owned]) -> Iterator[str]:
    for one in strangers[:EACH]:
        yield (
            f"{one.document.origin}: {_title(one.document.content)} is owned by {one.owner}, which "
            "is not among these objects; add it, or leave the owned object out"
        )
    if len(strangers) > EACH:
        yield f"and {len(strangers) - EACH} more objects whose owners are not among these objects"
