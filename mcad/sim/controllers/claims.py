"""Ownership: objects that a selector matches are adopted, others are released.

After ``pkg/controller/controller_ref_manager.go``: what another controller owns is left alone, and
an owner that is being deleted neither adopts nor releases.
"""

from __future__ import annotations

from collections.abc import Callable

from mcad.kube.types import Json
from mcad.sim.controllers.index import OwnedIndex, matcher
from mcad.sim.controllers.pods import is_deleting, labels_of, reference_to
from mcad.sim.registry import key_of


def claim(
    index: OwnedIndex,
    owner: Json,
    selector: Json | None,
    *,
    only: Callable[[Json], bool] | None = None,
    finalizer: str = "",
) -> list[Json]:
    """What belongs to ``owner`` (of those that ``only`` lets through); may raise Failure.

    What is adopted gets the ``finalizer``, what is released loses it.
    """
    matches, claimed = matcher(selector), []
    for obj in index.owned(owner["metadata"]["uid"]):
        if only is not None and not only(obj):
            continue
        if matches(labels_of(obj)):
            claimed.append(obj)
        elif not is_deleting(owner):
            _release(index, obj, owner, finalizer)
    if is_deleting(owner):
        return claimed
    return claimed + [
        _adopt(index, obj, owner, finalizer)
        for obj in index.orphans(owner["metadata"]["namespace"], selector)
        if not is_deleting(obj) and (only is None or only(obj))
    ]


def _adopt(index: OwnedIndex, obj: Json, owner: Json, finalizer: str) -> Json:
    def adopted(live: Json) -> Json:
        references = [*(live["metadata"].get("ownerReferences") or ()), reference_to(owner)]
        finalizers = live["metadata"].get("finalizers") or []
        more: Json = {"ownerReferences": references}
        if finalizer and finalizer not in finalizers:
            more["finalizers"] = [*finalizers, finalizer]
        return live | {"metadata": live["metadata"] | more}

    return index.registry.patch(index.kind, key_of(obj), adopted)


def _release(index: OwnedIndex, obj: Json, owner: Json, finalizer: str) -> None:
    uid = owner["metadata"]["uid"]

    def released(live: Json) -> Json:
        references = live["metadata"].get("ownerReferences") or ()
        metadata = dict(live["metadata"])
        metadata["ownerReferences"] = [one for one in references if one["uid"] != uid]
        if not metadata["ownerReferences"]:
            del metadata["ownerReferences"]
        return without_finalizer(live | {"metadata": metadata}, finalizer)

    index.registry.patch(index.kind, key_of(obj), released)


def without_finalizer(obj: Json, finalizer: str) -> Json:
    """A copy without that finalizer, or the object itself if it has none."""
    present = obj["metadata"].get("finalizers") or []
    if not finalizer or finalizer not in present:
        return obj
    metadata = dict(obj["metadata"])
    metadata["finalizers"] = [one for one in present if one != finalizer]
    if not metadata["finalizers"]:
        del metadata["finalizers"]
    return obj | {"metadata": metadata}
