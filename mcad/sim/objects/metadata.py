"""Rules of updates of ``metadata``, for every kind.

Modelled after ``rest.BeforeUpdate`` and ``ValidateObjectMetaAccessorUpdate`` of apimachinery.
"""

from __future__ import annotations

from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.failures import Cause, Failure
from mcad.sim.kinds import CRDS, Kind
from mcad.sim.objects import causes

_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_KEPT = (*_OWNED, "generation", "selfLink")
_NEEDS_VERSION = {
    CRDS,
    ("coordination.k8s.io", "leases"),
    ("node.k8s.io", "runtimeclasses"),
    ("policy", "poddisruptionbudgets"),
}
"""Built-in kinds that are not updated unconditionally (``AllowUnconditionalUpdate``)."""


def disown(metadata: Json) -> None:
    """Take away, in place, what a client cannot set on a new object."""
    for name in (*_OWNED, "selfLink", "managedFields"):
        metadata.pop(name, None)


def check_version(kind: Kind, new: Json, old: Json, *, trusted: bool) -> None:
    """A given resourceVersion must be the present one. Raises Failure 409, 422, 500."""
    name = old["metadata"]["name"]
    version = new["metadata"].get("resourceVersion") or "0"
    if version == old["metadata"]["resourceVersion"]:
        return
    if not version.isdecimal():
        raise Failure(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if version != "0":
        raise failures.conflict(kind, name)
    if not trusted and (kind.is_custom or kind.storage in _NEEDS_VERSION):
        raise failures.unversioned(kind, name)


def update_faults(new: Json, old: Json) -> list[Cause]:
    """Finalizers that come too late, and fields that never change.

    The generic code of a real server finds them, and then the kind's own checks do it again. Here
    these see the fields only after ``keep``, so that they are listed twice at once.
    """
    given, live = new["metadata"], old["metadata"]
    faults = []
    if live.get("deletionTimestamp"):
        known = live.get("finalizers") or ()
        added = sorted({one for one in given.get("finalizers") or () if one not in known})
        if added:
            listed = ", ".join(map(causes.quoted, added))
            detail = (
                "no new finalizers can be added if the object is being deleted, found new"
                f" finalizers []string{{{listed}}}"
            )
            faults.append(causes.forbidden("metadata.finalizers", detail))
    for name in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        value = given.get(name)
        if name == "deletionTimestamp" and live.get(name):
            continue  # an update cannot bring it forward, nor take it back
        if value not in {None, "", live.get(name)}:
            faults += 2 * [causes.invalid(f"metadata.{name}", value, "field is immutable")]
    return faults


def keep(new: Json, old: Json) -> None:
    """Set, in place, what only the server writes to what it was."""
    given, live = new["metadata"], old["metadata"]
    given.pop("managedFields", None)
    for name in _KEPT:
        if name in live:
            given[name] = live[name]
        else:
            given.pop(name, None)
