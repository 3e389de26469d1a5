"""What must hold of a claim for storage, wherever its spec stands."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import forbidden, invalid, not_supported, required
from mcad.sim.objects.quantities import quantity

_ACCESS = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def claim_faults(spec: Json, field: str) -> Iterator[Cause]:
    """Faults of the spec of a PersistentVolumeClaim."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{field}.accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in _ACCESS:
            yield not_supported(f"{field}.accessModes", mode, _ACCESS)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield forbidden(
            f"{field}.accessModes", "may not use ReadWriteOncePod with other access modes"
        )
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required(f"{field}.resources[storage]")
    elif quantity(storage) <= 0:
        yield invalid(f"{field}.resources[storage]", storage, "must be greater than zero")
    name = spec.get("storageClassName")
    for fault in names.dns_subdomain(name) if name else ():
        yield invalid(f"{field}.storageClassName", name, fault)
