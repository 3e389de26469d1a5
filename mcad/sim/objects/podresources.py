"""Rules for the resources of a container (``ValidateResourceRequirements``)."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import invalid, required
from mcad.sim.objects.quantities import quantity

_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE = "hugepages-"
_NATIVE = "kubernetes.io/"


def resource_faults(resources: Json, where: str) -> Iterator[Cause]:
    """Faults of requests and limits; quantities are decoded already."""
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _amount_faults(name, amount, f"{where}.{key}[{name}]")
    for name, amount in requests.items():
        yield from _pair_faults(name, amount, limits.get(name), where)


def _amount_faults(name: str, amount: str, field: str) -> Iterator[Cause]:
    faults = names.label_key(name)
    for fault in faults:
        yield invalid(field, name, fault)
    if "/" not in name and not faults and name not in _STANDARD and not name.startswith(_HUGE):
        yield invalid(field, name, "must be a standard resource type or fully qualified")
        yield invalid(field, name, "must be a standard resource for containers")
    size = quantity(amount)
    if size < 0:
        yield invalid(field, amount, "must be greater than or equal to 0")
    if "/" in name and not name.startswith(_NATIVE) and size.denominator != 1:
        yield invalid(field, amount, "must be an integer")


def _pair_faults(name: str, amount: str, limit: str | None, where: str) -> Iterator[Cause]:
    native = "/" not in name or name.startswith(_NATIVE)
    can_overcommit = native and not name.startswith(_HUGE)
    if limit is None:
        if not can_overcommit:
            detail = "Limit must be set for non overcommitable resources"
            yield required(f"{where}.limits", detail)
    elif not can_overcommit and quantity(amount) != quantity(limit):
        yield invalid(f"{where}.requests", amount, f"must be equal to {name} limit of {limit}")
    elif quantity(amount) > quantity(limit):
        detail = f"must be less than or equal to {name} limit of {limit}"
        yield invalid(f"{where}.requests", amount, detail)
