"""What is asked: which API server, with which configuration, about which namespaces."""

from __future__ import annotations

from msgspec import Struct


class Target(Struct, frozen=True):
    """The API server and how it is asked: --kubeconfig, --context, --as, --as-group and
    --request-timeout (seconds for each request, None for those of the program)."""

    kubeconfig: str | None = None
    context: str | None = None
    as_user: str | None = None
    as_groups: tuple[str, ...] = ()
    request_timeout_s: float | None = None


class Settings(Struct, frozen=True):
    """The dispatcher's configuration: --config and --set."""

    config: str | None = None
    assignments: tuple[str, ...] = ()


class Scope(Struct, frozen=True):
    """Which namespaces: -n, -A, or that of the context."""

    namespace: str | None = None
    all_namespaces: bool = False

    def choose(self, default: str) -> str | None:
        """The namespace, None for all of them."""
        return None if self.all_namespaces else self.namespace or default


class Source(Target, frozen=True):
    """Where figures come from: the dispatcher of a cluster, or its HTTP port (--server)."""

    server: str | None = None

    @property
    def target(self) -> Target:
        """The API server."""
        return self
