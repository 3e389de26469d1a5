"""Finished Jobs are deleted in the end (``pkg/controller/ttlafterfinished``, KEP-592)."""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.jobpods import finished_condition
from mcad.sim.controllers.pods import is_deleting
from mcad.sim.deletion import Deletion
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key
from mcad.sim.times import parse_us

Json = dict[str, Any]


class TtlAfterFinished(Controller):
    """Deletes Jobs, with what they own, some time after they have finished."""

    def __init__(self, registry: Registry) -> None:
        """Nothing happens before ``start``."""
        super().__init__(registry)
        self._jobs = registry.kind("batch/v1", "Job")

    def start(self) -> None:
        """Follow all Jobs."""
        self.watch(self._jobs, self._on_job)

    def _on_job(self, change: Change) -> None:
        if change.type != "DELETED" and _ttl_s(change.obj) is not None:
            self.enqueue(change.key)

    def reconcile(self, key: Key) -> None:
        """Delete the Job, or come back when it is time."""
        job = self.registry.find(self._jobs, key)
        ttl_s = _ttl_s(job) if job is not None else None
        if job is None or ttl_s is None:
            return
        end = finished_condition(job) or {}
        due_us = parse_us(end["lastTransitionTime"]) + ttl_s * 1_000_000
        wait_us = due_us - self.registry.clock.now_us()
        if wait_us > 0:
            self.enqueue_after(key, wait_us / 1e6)
            return
        options = Deletion(uid=job["metadata"]["uid"], propagation="Foreground")
        self.registry.delete(self._jobs, key, options)


def _ttl_s(job: Json) -> int | None:
    """The time to live of a Job that has finished and is not being deleted yet."""
    if is_deleting(job) or finished_condition(job) is None:
        return None
    ttl_s: int | None = job["spec"].get("ttlSecondsAfterFinished")
    return ttl_s
