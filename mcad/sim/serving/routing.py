"""Which object a request path means."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from mcad.sim.kinds import Kind, KindTable


@dataclass(frozen=True, slots=True)
class Target:
    """A collection (no name), one object, or a subresource of it."""

    kind: Kind
    namespace: str | None  # None: all namespaces, or a kind without
    name: str
    subresource: str

    @property
    def key(self) -> tuple[str, str]:
        """Where the object is in the store."""
        return self.namespace or "", self.name


def route(path: str, kinds: KindTable) -> Target | None:
    """The target of a path, or None if nothing is served there."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) >= 3 and not _is_own_subresource(group, rest):
        namespace, rest = rest[1], rest[2:]
    kind = kinds.find(group, version, rest[0])
    if kind is None or len(rest) > 3 or (namespace is not None and not kind.namespaced):
        return None
    name = rest[1] if len(rest) > 1 else ""
    if kind.namespaced and namespace is None and name:
        return None
    return Target(kind, namespace, name, rest[2] if len(rest) > 2 else "")


def _is_own_subresource(group: str, rest: list[str]) -> bool:
    """``/api/v1/namespaces/NAME/status`` is not a kind called status in a namespace."""
    return not group and len(rest) == 3 and rest[2] in {"status", "finalize"}


def is_known_group(path: str, kinds: KindTable) -> bool:
    """Whether a path leads into a built-in group, whose 404 is a Status and no plain page."""
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        return True
    return parts[0] == "apis" and len(parts) > 3 and kinds.is_builtin_group(parts[1])
