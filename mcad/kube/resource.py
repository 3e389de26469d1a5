"""What an API server calls a resource, and the paths under which it serves it."""

from urllib.parse import quote

from msgspec import Struct

from mcad.kube.errors import ApiError


class Resource(Struct, frozen=True):
    """One served kind: where its objects live. ``group`` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """The request path: of all objects, of one namespace, of one object or its subresource.

        ``namespace`` is ignored where the kind has none. Raises ``ApiError`` 422 for a name that
        cannot be a path segment: an empty one would turn the deletion of an object into that of
        a collection, and ``..`` would reach another resource.
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name is not None:
            if self.namespaced and namespace is None:
                raise ApiError(422, "Invalid", f"{self.kind} {name!r} needs a namespace")
            parts.append(_segment(name))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


def _segment(name: str) -> str:
    if not name or name in {".", ".."} or "/" in name or "%" in name:
        raise ApiError(422, "Invalid", f"{name[:256]!r} cannot be the name of an object")
    return quote(name, safe="")
