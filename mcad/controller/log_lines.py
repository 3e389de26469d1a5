"""Logs one line for each transition of an AppWrapper that the core records an Event for.

Texts of the API server and of manifests are only in the status and the Events, because they may
quote data that does not belong in a log.
"""

import logging

from mcad.core.cluster import Cluster
from mcad.core.commands import Command, RecordEvent
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import PODS_COMPLETED, RUNNABLE, ConditionType, EventReason
from mcad.core.state.units import Instant

_log = logging.getLogger(__name__)


_ENDS: dict[str, str] = {
    EventReason.TAKEN_BACK: "taken back",
    EventReason.RESET: "reset",
    EventReason.CLEARED: "cleared",
    EventReason.FAILED: "failed",
    EventReason.GIVEN_UP: "given up",
}


class LogLines:
    """Logs the commands of a step, and AppWrappers that are deleted."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def log(self, command: Command) -> None:
        """Log a command of the step that was just made."""
        if not isinstance(command, RecordEvent):
            return
        entry = self._cluster.entries.get(command.uid)
        if entry is None:
            return
        candidate = ConditionType.PREEMPT_CANDIDATE
        match command.reason:
            case EventReason.DISPATCHED:
                self._waited("dispatched", entry, RUNNABLE)
            case EventReason.QUEUED if entry.wait.reported is not None:
                refusal = entry.wait.reported
                self._waited("refused", entry, refusal.code, command.note)
            case EventReason.REFUSED if (
                entry.phase is Phase.WAITING and entry.wait.hold is not None
            ):
                self._waited("refused", entry, entry.wait.hold.reason)
            case EventReason.COMPLETED:
                self._ran("completed", entry, PODS_COMPLETED)
            case reason if reason in _ENDS and entry.dispatch is not None:
                self._ran(_ENDS[reason], entry, entry.dispatch.reason)
            case EventReason.REMAINS | EventReason.OWNER_UNKNOWN:
                waited = _seconds(entry.step_since, self._cluster.now)
                text = "teardown waits appwrapper=%s attempt=%d waited_s=%s why=%s"
                _log.warning(text, entry.title, entry.attempt, waited, command.note)
            case EventReason.ROOM_RESERVED if entry.reservation is not None:
                self._waited("room reserved", entry, entry.reservation.reason, command.note)
            case EventReason.RESERVATION_ENDED:
                self._waited("reservation ended", entry, command.reason, command.note)
            case EventReason.PREEMPT_CANDIDATE if candidate in entry.conditions:
                self._ran("to be evicted", entry, entry.conditions[candidate].reason, command.note)
            case _:
                pass

    def gone(self, uid: str) -> None:
        """Log that an AppWrapper was deleted; called before the step that forgets it."""
        entry = self._cluster.entries.get(uid)
        if entry is not None and entry.phase is not Phase.GONE:
            self._ran("deleted", entry, "Deleted")

    def _waited(self, what: str, entry: Entry, reason: str, why: str = "") -> None:
        waited = _seconds(entry.first_seen, self._cluster.now)
        _line(what, entry, reason, f"waited_s={waited}", why)

    def _ran(self, what: str, entry: Entry, reason: str, why: str = "") -> None:
        confirmed = entry.dispatch.confirmed if entry.dispatch is not None else 0
        ran = _seconds(confirmed, self._cluster.now) if confirmed else "0"
        _line(what, entry, reason, f"ran_s={ran}", why)


def _line(what: str, entry: Entry, reason: str, figure: str, why: str) -> None:
    text = f"%s appwrapper=%s attempt=%d reason=%s {figure}"
    words = (what, entry.title, entry.attempt, reason)
    if why:
        _log.info(f"{text} why=%s", *words, why)
    else:
        _log.info(text, *words)


def _seconds(since: Instant, now: Instant) -> str:
    """The seconds between two instants, such as ``12.345``."""
    return f"{max(0, now - since) / 1e6:.3f}"
