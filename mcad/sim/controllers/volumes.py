"""Claims of volumes are bound at once, as if there were always a volume.

A real cluster has a provisioner for that; here there are no PersistentVolume objects.
"""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.pods import is_deleting
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key
from mcad.sim.writes import Write

Json = dict[str, Any]


class ClaimBinder(Controller):
    """Binds PersistentVolumeClaims."""

    def __init__(self, registry: Registry) -> None:
        """Nothing happens before ``start``."""
        super().__init__(registry)
        self._claims = registry.kind("v1", "PersistentVolumeClaim")

    def start(self) -> None:
        """Follow all claims."""
        self.watch(self._claims, self._on_claim)

    def _on_claim(self, change: Change) -> None:
        if change.type == "ADDED":
            self.enqueue(change.key)

    def reconcile(self, key: Key) -> None:
        """Bind one claim, if it is not bound yet."""
        claim = self.registry.find(self._claims, key)
        if claim is None or is_deleting(claim):
            return
        spec, status = claim.get("spec") or {}, claim.get("status") or {}
        if status.get("phase") == "Bound":
            return
        if not spec.get("volumeName"):
            spec = spec | {"volumeName": f"pvc-{claim['metadata']['uid']}"}
            self.registry.patch(self._claims, key, lambda live: live | {"spec": spec})
        bound = {
            "phase": "Bound",
            "accessModes": spec.get("accessModes") or [],
            "capacity": (spec.get("resources") or {}).get("requests") or {},
        }
        how = Write(trusted=True, subresource="status")
        self.registry.patch(self._claims, key, lambda live: live | {"status": bound}, how)
