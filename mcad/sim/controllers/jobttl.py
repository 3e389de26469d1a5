"""Deletes Jobs that are finished and whose ``ttlSecondsAfterFinished`` is over.

After ``pkg/controller/ttlafterfinished`` of Kubernetes 1.36.
"""

from __future__ import annotations

from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.jobpods import finished_condition
from mcad.sim.controllers.pods import is_deleting
from mcad.sim.deletion import Deletion
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key
from mcad.sim.times import parse_us


class JobTTL(Controller):
    """Looks at finished Jobs."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._kind = registry.kind("batch/v1", "Job")

    def start(self) -> None:
        self.watch(self._kind, self._on_job)

    def _on_job(self, change: Change) -> None:
        if change.type != "DELETED" and "ttlSecondsAfterFinished" in change.obj["spec"]:
            self.enqueue(change.key)

    def reconcile(self, key: Key) -> None:
        """Delete a Job, or come again when its time is over."""
        job = self.registry.find(self._kind, key)
        end = finished_condition(job) if job is not None and not is_deleting(job) else None
        if job is None or end is None or job["spec"].get("ttlSecondsAfterFinished") is None:
            return
        due_us = parse_us(end["lastTransitionTime"])
        due_us += int(job["spec"]["ttlSecondsAfterFinished"]) * 1_000_000
        left_us = due_us - self.registry.clock.now_us()
        if left_us > 0:
            self.enqueue_after(key, left_us / 1e6)
        else:
            uid = job["metadata"]["uid"]
            self.registry.delete(self._kind, key, Deletion(uid=uid, propagation="Foreground"))
