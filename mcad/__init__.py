"""A standalone AppWrapper dispatcher for Kubernetes, and its Python client.

The names below are the public ones of this package, by semantic versioning; all others are
private. They are imported on use, because the command line needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcad.version import __version__

if TYPE_CHECKING:
    from mcad.client.api.asynchronous import AsyncAppWrapper, AsyncClient
    from mcad.client.api.capacity import Capacity, NodeCapacity
    from mcad.client.api.events import Event, Events
    from mcad.client.api.logs import Log
    from mcad.client.api.progress import Progress
    from mcad.client.api.quota import Quota, QuotaNode
    from mcad.client.api.results import Difference, Fate, Queue, QueueRow, Remedy, WhatIf, Why
    from mcad.client.api.synchronous import AppWrapper, Client
    from mcad.client.errors import (
        FailedError,
        InvalidError,
        McadError,
        McadWarning,
        NotFoundError,
        TimedOutError,
        UnavailableError,
    )

_HOMES = {
    "mcad.client.api.asynchronous": ("AsyncAppWrapper", "AsyncClient"),
    "mcad.client.api.capacity": ("Capacity", "NodeCapacity"),
    "mcad.client.api.events": ("Event", "Events"),
    "mcad.client.api.logs": ("Log",),
    "mcad.client.api.progress": ("Progress",),
    "mcad.client.api.quota": ("Quota", "QuotaNode"),
    "mcad.client.api.results": (
        "Difference",
        "Fate",
        "Queue",
        "QueueRow",
        "Remedy",
        "WhatIf",
        "Why",
    ),
    "mcad.client.api.synchronous": ("AppWrapper", "Client"),
    "mcad.client.errors": (
        "FailedError",
        "InvalidError",
        "McadError",
        "McadWarning",
        "NotFoundError",
        "TimedOutError",
        "UnavailableError",
    ),
}

__all__ = [
    "AppWrapper",
    "AsyncAppWrapper",
    "AsyncClient",
    "Capacity",
    "Client",
    "Difference",
    "Event",
    "Events",
    "FailedError",
    "Fate",
    "InvalidError",
    "Log",
    "McadError",
    "McadWarning",
    "NodeCapacity",
    "NotFoundError",
    "Progress",
    "Queue",
    "QueueRow",
    "Quota",
    "QuotaNode",
    "Remedy",
    "TimedOutError",
    "UnavailableError",
    "WhatIf",
    "Why",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import a public name on its first use."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
