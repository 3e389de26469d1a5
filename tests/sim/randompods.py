"""Pods at random, with everything that decides what they request, and such that they are admitted.

Quantities are in all the ways in which people write them, also those that make no sense (``100m``
of memory is a tenth of a byte).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

from mcad.kube.types import Json
from mcad.sim.objects.quantities import canonical, quantity
from mcad.sim.objects.requests import amounts, complete

CPU = ("100m", "0.1", 0.3, "1", 2, "1500m", "2e-1", "250000u", "1n", "0.0005", "1.0005", "+.5", "0")
BYTES = (
    *("128Mi", "1Gi", "0.5Gi", "100M", "1e6", "123456789", 4096, "0"),
    *("100m", "1.3Ki", "0.3Ki", "1500.5", "1025.0001Ki", "1n", "12345678901m"),
)
DEVICES = ("1", 2, "8", "0", "1k", "1e1")
PAGES = ("2Mi", "4Mi", "0.25Gi")
LARGE = {"cpu": ("64", "100500m", 96.25), "memory": ("1Ti", "1.5e12", "2000000000000500m")}
OVERHEADS = (
    {"cpu": "250m", "memory": "120Mi"},
    {"memory": "100m"},
    {"cpu": 0.1, "ephemeral-storage": "1Gi"},
)
RESOURCES: dict[str, tuple[Any, ...]] = {
    "cpu": CPU,
    "memory": BYTES,
    "ephemeral-storage": BYTES,
    "nvidia.com/gpu": DEVICES,
    "example.com/disk.io": DEVICES,
    "hugepages-2Mi": PAGES,
}
COARSE = {
    name: tuple(text for text in texts if (quantity(str(text)) * 1000).denominator == 1)
    for name, texts in RESOURCES.items()
}
_EQUAL = frozenset({"nvidia.com/gpu", "example.com/disk.io", "hugepages-2Mi"})
"""Cannot be overcommitted: a request needs a limit, and is equal to it."""


def random_spec(rng: Random) -> Json:
    """What a manifest says; names and images as the API server asks for them."""
    spec: Json = {"resources": _as_a_whole(rng)} if rng.random() < 0.3 else {}
    # The server adds up what is finer than a thousandth, and then finds the sum of what it has
    # rounded too large for the pod.
    texts = COARSE if spec else RESOURCES
    spec["containers"] = [_container(rng, texts, f"main-{i}") for i in range(rng.randint(1, 3))]
    if rng.random() < 0.5:
        inits = [_container(rng, texts, f"init-{i}") for i in range(rng.randint(1, 4))]
        for one in inits:
            if rng.random() < 0.5:
                one["restartPolicy"] = "Always"
        spec["initContainers"] = inits
    if rng.random() < 0.2:
        spec["overhead"] = rng.choice(OVERHEADS)
    return spec


def random_status(rng: Random, spec: Json) -> Json:
    """What a kubelet reports while containers, or the pod as a whole, are resized."""
    status: Json = {}
    for key, statuses in (
        ("containers", "containerStatuses"),
        ("initContainers", "initContainerStatuses"),
    ):
        some = [one["name"] for one in spec.get(key) or () if rng.random() < 0.7]
        status[statuses] = [{"name": name} | _given(rng) for name in some]
    if rng.random() < 0.3:
        reason = rng.choice(("Infeasible", "Deferred"))
        status["conditions"] = [
            {"type": "PodScheduled", "reason": "Infeasible"},
            {"type": "PodResizePending", "reason": reason},
        ]
    return status | (_given(rng) if rng.random() < 0.5 else {})


def stored(spec: Json) -> Json:
    """As the server keeps it, as far as requests go."""
    kept = canonical_lists(spec)
    complete(kept)
    return kept


def canonical_lists(value: Any) -> Any:
    """With every list of resources as it is written back."""
    if isinstance(value, list):
        return [canonical_lists(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {name: canonical(str(text)) for name, text in one.items()}
        if key in ("requests", "limits", "overhead", "allocatedResources")
        else canonical_lists(one)
        for key, one in value.items()
    }


def _container(rng: Random, all_texts: Mapping[str, tuple[Any, ...]], name: str) -> Json:
    requests: Json = {}
    limits: Json = {}
    for resource, texts in all_texts.items():
        if rng.random() < (0.4 if resource in ("cpu", "memory") else 0.85):
            continue
        request, limit = sorted(rng.choices(texts, k=2), key=_size)
        how = rng.choice(("requests", "limits", "both"))
        if resource in _EQUAL:
            limits[resource] = limit
            if how == "both":
                requests[resource] = limit
            continue
        if how != "limits":
            requests[resource] = request
        if how != "requests":
            limits[resource] = limit
    if "hugepages-2Mi" in limits:
        requests.setdefault("memory", "1Gi")
        limits.pop("memory", None)
    parts = {"requests": requests, "limits": limits}
    resources = {key: part for key, part in parts.items() if part}
    return {"name": name, "image": "busybox"} | ({"resources": resources} if resources else {})


def _as_a_whole(rng: Random) -> Json:
    """Larger than all containers together can be, as it has to be; or nothing but a limit."""
    resources: Json = {}
    for name, texts in LARGE.items():
        request, limit = sorted(rng.choices(texts, k=2), key=_size)
        for key, text in (("requests", request), ("limits", limit)):
            if rng.random() < 0.5:
                resources.setdefault(key, {})[name] = text
    return resources


def _given(rng: Random) -> Json:
    given: Json = {}
    if rng.random() < 0.8:
        given["resources"] = {"requests": _some(rng)} if rng.random() < 0.8 else {}
    if rng.random() < 0.7:
        given["allocatedResources"] = _some(rng)
    return given


def _some(rng: Random) -> Json:
    return {name: rng.choice(RESOURCES[name]) for name in ("cpu", "memory") if rng.random() < 0.7}


@cache
def _size(text: Any) -> int:
    return amounts({"": text})[""]
