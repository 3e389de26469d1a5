"""The state of a core as bytes, and back.

The bytes are a pickle. Only classes of the core, of its containers and of plain Python types are
loaded, so that a foreign file runs no code. They are readable by the same version only. Texts with
words of others are persistent ids of the pickle, because only those can replace a text.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Iterator
from enum import Enum
from typing import Any

from mcad.core.cluster import Cluster
from mcad.core.state.quotation import BEGIN
from mcad.journal.words import without_words

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
    """The bytes are no snapshot of this version."""


def take(cluster: Cluster) -> bytes:
    """The state of a core as bytes."""
    content = io.BytesIO()
    _Taker(content).dump(cluster)
    return content.getvalue()


def restore(payload: bytes) -> Cluster:
    """The state of a core from bytes; raises ``CannotRestoreError``."""
    try:
        found = _Restorer(io.BytesIO(payload)).load()
    except Exception as error:
        raise CannotRestoreError(f"not a snapshot of this version: {error}") from error
    if not isinstance(found, Cluster):
        raise CannotRestoreError("not a snapshot of this version")
    return found


class _Taker(pickle.Pickler):
    def __init__(self, content: io.BytesIO) -> None:
        super().__init__(content, protocol=5)
        self.dispatch_table = copyreg.dispatch_table | dict.fromkeys(_enums(Enum), _by_value)

    def persistent_id(self, obj: Any) -> str | None:
        return without_words(obj) if type(obj) is str and BEGIN in obj else None


def _enums(base: type[Enum]) -> Iterator[type[Enum]]:
    """The enumerations that there are, below a base."""
    for one in base.__subclasses__():
        yield one
        yield from _enums(one)


def _by_value(member: Enum) -> tuple[type[Enum], tuple[Any]]:
    """Python 3.11.2, that of Debian 12, would write ``getattr``, which no snapshot may name."""
    return type(member), (member.value,)


class _Restorer(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> str:
        """A text that stands for another one."""
        if not isinstance(pid, str):
            raise CannotRestoreError("a text is no text")
        return pid

    def find_class(self, module: str, name: str) -> Any:
        """Refuse names that a module imports, and nested ones."""
        if name in _PLAIN.get(module, ()):
            return super().find_class(module, name)
        found = super().find_class(module, name) if _is_of_core(module, name) else None
        if getattr(found, "__module__", "") != module:
            raise CannotRestoreError(f"{module}.{name} is not of the core")
        return found


def _is_of_core(module: str, name: str) -> bool:
    return module.startswith(_CORE) and "." not in name
