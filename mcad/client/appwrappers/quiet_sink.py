"""A sink of a reflector that ignores everything but failures, for sinks that need a few calls."""

from __future__ import annotations

from typing import Any

from mcad.client.errors import warn
from mcad.kube.errors import KubeError

Json = dict[str, Any]


class QuietSink:
    """See ``mcad.kube.reflector.Sink``. A failure is a warning; the reflector tries again."""

    def listing(self) -> None:
        """Ignored."""

    def upserted(self, obj: Json) -> None:
        """Ignored."""

    def gone(self, uid: str, namespace: str, name: str, last: Json | None) -> None:
        """Ignored."""

    def synced(self, *, relist: bool) -> None:
        """Ignored."""

    def alive(self, at: float) -> None:
        """Ignored."""

    def failing(self, error: KubeError) -> None:
        """Warn."""
        warn(f"no news from the API server: {error}")
