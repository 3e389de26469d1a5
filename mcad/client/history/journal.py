"""AppWrappers that ended while a journal was kept, with all of their attempts.

Their statuses are those that the dispatcher wrote; an AppWrapper that was deleted before its end
counts as Deleted at that moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mcad.api.status import render_status
from mcad.api.wire import as_int, as_map, format_instant, parse_instant
from mcad.client.errors import McadError
from mcad.client.history.ended import Ended, Run, is_underway, read_ended
from mcad.core.cluster import Cluster
from mcad.core.commands import WriteStatus
from mcad.core.events import AppWrapperGone, AppWrapperSeen
from mcad.core.state.model import Workload
from mcad.core.state.quantity import format_amount
from mcad.core.state.reasons import State
from mcad.core.state.status_view import StatusView
from mcad.core.state.units import Instant
from mcad.core.status.status import derive
from mcad.journal.reader import Gap, sessions
from mcad.journal.replay import Made, replay

Json = dict[str, Any]

DELETED = "AppWrapperDeleted"
"""The reason of an AppWrapper that was deleted before its end."""


def journal_history(folder: Path, until: Instant | None = None) -> tuple[list[Ended], list[str]]:
    """Those that had ended by an instant, and the parts of the journal that cannot be read."""
    found, wrong = sessions(folder)
    if not found and not wrong:
        raise McadError(f"no journal in {folder}: `mcad run --journal {folder}` writes one")
    lives: dict[str, _Life] = {}
    cluster: Cluster | None = None  # of the latest step
    for session in found:
        for made in replay(session, until):
            if isinstance(made, Gap):
                wrong.append(made.why)
                continue
            if made.cluster is not cluster:  # the first step, or a file is missing before it
                cluster = made.cluster
                for uid in cluster.entries.keys() - lives.keys():
                    lives[uid] = _Life()
                    lives[uid].see(cluster.entries[uid].workload, made)
            _follow(made, lives)
    ended = (life.ended() for life in lives.values())
    return [one for one in ended if one is not None], wrong


def _follow(made: Made, lives: dict[str, _Life]) -> None:
    """Take what a step says about AppWrappers."""
    event = made.step.event
    if isinstance(event, AppWrapperSeen):
        uid = event.workload.uid
        life = lives.setdefault(uid, _Life())
        life.see(event.workload, made)
    for uid, status in _written(made):
        if uid in lives:
            lives[uid].write(status)
    if isinstance(event, AppWrapperGone) and event.uid in lives:
        lives[event.uid].delete(made.step.now)


def _written(made: Made) -> Iterator[tuple[str, StatusView]]:
    for command in made.commands:
        if isinstance(command, WriteStatus):
            yield command.uid, command.status


class _Life:
    """What a journal says of one AppWrapper."""

    def __init__(self) -> None:
        self._obj: Json = {"status": {}}
        self._demand: dict[str, str] = {}
        self._runs: dict[int, Run] = {}  # by attempt
        self._deleted: Instant = 0

    def see(self, work: Workload, made: Made) -> None:
        """It was observed, in this step."""
        self._obj["metadata"] = {
            "namespace": work.namespace,
            "name": work.name,
            "uid": work.uid,
            "creationTimestamp": format_instant(work.created),
        }
        self._obj["spec"] = {"priority": work.priority}
        cluster = made.cluster
        demand = cluster.admission.demand(cluster.capacity.shape(work.sets))
        self._demand = {name: format_amount(name, size) for name, size in demand}
        entry = cluster.entries.get(work.uid)
        if not self._obj["status"] and entry is not None:
            self.write(derive(entry))

    def write(self, status: StatusView) -> None:
        """Its status was written."""
        metadata = self._obj["metadata"]
        self._obj["status"] = {
            key: value
            for key, value in render_status(status, metadata["uid"]).items()
            if value is not None
        }
        record = as_map(self._obj["status"].get("dispatch"))
        attempt, begun = as_int(record.get("attempt")), parse_instant(record.get("intentTime"))
        if not attempt or self._has_end(attempt):
            return
        ended = 0 if is_underway(record) else parse_instant(record.get("phaseTime"))
        self._runs[attempt] = Run(begun, ended)

    def _has_end(self, attempt: int) -> bool:
        return attempt in self._runs and bool(self._runs[attempt].ended)

    def delete(self, now: Instant) -> None:
        """It is gone."""
        self._deleted = now

    def ended(self) -> Ended | None:
        """The AppWrapper, None if it has not ended."""
        status = self._obj["status"]
        attempt = as_int(as_map(status.get("dispatch")).get("attempt"))
        before = [run for number, run in sorted(self._runs.items()) if number != attempt]
        found = read_ended(self._obj, self._demand, before)
        if found is None and self._deleted:
            found = self._cancelled(before)
        return replace(found, labels=None) if found is not None else None

    def _cancelled(self, before: list[Run]) -> Ended | None:
        """As it was when it was deleted."""
        status = dict(self._obj["status"])
        record = dict(as_map(status.get("dispatch")))
        was = status.get("state") or State.PENDING
        record |= {
            "reason": DELETED,
            "message": f"It was deleted while it was {was}.",
            "phaseTime": format_instant(self._deleted),
        }
        status |= {"state": str(State.DELETED), "dispatch": record}
        return read_ended(self._obj | {"status": status}, self._demand, before)
