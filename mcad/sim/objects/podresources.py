"""What must hold of the resources of a container (``ValidateResourceRequirements``)."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.kube import names
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import forbidden, invalid, required
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
    both = [*requests, *limits]
    if any(name.startswith(_HUGE) for name in both) and not {"cpu", "memory"} & set(both):
        yield forbidden(where, "HugePages require cpu or memory")


def _amount_faults(name: str, amount: str, field: str) -> Iterator[Cause]:
    yield from _name_faults(name, field)
    size = quantity(amount)
    if size < 0:
        yield invalid(field, amount, "must be greater than or equal to 0")
    if _is_extended(name) and size.denominator != 1:
        yield invalid(field, amount, "must be an integer")


def _name_faults(name: str, field: str) -> Iterator[Cause]:
    faults = names.label_key(name)
    for fault in faults:
        yield invalid(field, name, fault)
    if "/" in name:
        if faults:
            yield invalid(field, name, "doesn't follow extended resource name standard")
    elif not faults and name not in _STANDARD and not name.startswith(_HUGE):
        if name not in _OF_CLUSTERS:
            yield invalid(field, name, "must be a standard resource type or fully qualified")
        yield invalid(field, name, "must be a standard resource for containers")


_OF_CLUSTERS = frozenset({"pods", "services", "storage", "secrets", "configmaps"})
"""Standard resources that quotas count and containers do not have."""


def _is_extended(name: str) -> bool:
    return "/" in name and not name.startswith(_NATIVE)


def _can_overcommit(name: str) -> bool:
    native = "/" not in name or name.startswith(_NATIVE)
    return native and not name.startswith(_HUGE)


def _pair_faults(name: str, amount: str, limit: str | None, where: str) -> Iterator[Cause]:
    if limit is None:
        if not _can_overcommit(name):
            detail = "Limit must be set for non overcommitable resources"
            yield required(f"{where}.limits", detail)
    elif not _can_overcommit(name) and quantity(amount) != quantity(limit):
        yield invalid(f"{where}.requests", amount, f"must be equal to {name} limit of {limit}")
    elif quantity(amount) > quantity(limit):
        detail = f"must be less than or equal to {name} limit of {limit}"
        yield invalid(f"{where}.requests", amount, detail)
