"""The memory of a core as bytes, and back.

Bytes are pickled, which names classes: only those of the core, of its containers and of Python's
plain types are made, so that a file from elsewhere runs no code. They are of one version alone.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from mcad.core.cluster import Cluster

_CORE = "mcad.core."
_PLAIN = {
    "sortedcontainers.sorteddict": {"SortedDict"},
    "sortedcontainers.sortedlist": {"SortedKeyList", "SortedList"},
    "sortedcontainers.sortedset": {"SortedSet"},
    "array": {"_array_reconstructor", "array"},
    "builtins": {"set", "frozenset"},
    "collections": {"deque", "OrderedDict", "defaultdict", "Counter"},
    "functools": {"partial"},
}


class CannotRestoreError(Exception):
    """Bytes that are no snapshot of this version."""


def take(cluster: Cluster) -> bytes:
    """All that a core knows."""
    return pickle.dumps(cluster, protocol=5)


def restore(payload: bytes) -> Cluster:
    """A core's memory as it was taken; raises ``CannotRestoreError``."""
    try:
        found = _Restorer(io.BytesIO(payload)).load()
    except Exception as error:
        raise CannotRestoreError(f"not a snapshot of this version: {error}") from error
    if not isinstance(found, Cluster):
        raise CannotRestoreError("not a snapshot of this version")
    return found


class _Restorer(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """What a module has only imported, or what is within something else, is refused."""
        if name in _PLAIN.get(module, ()):
            return super().find_class(module, name)
        found = super().find_class(module, name) if _is_of_core(module, name) else None
        if getattr(found, "__module__", "") != module:
            raise CannotRestoreError(f"{module}.{name} is not of the core")
        return found


def _is_of_core(module: str, name: str) -> bool:
    return module.startswith(_CORE) and "." not in name
