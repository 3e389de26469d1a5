"""One AppWrapper that has ended, read from its object as the API server has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mcad.api.wire import as_int, as_list, as_map, as_text, format_instant, parse_instant
from mcad.client.appwrappers.state import condition, state
from mcad.core.state.quantity import CPU, MILLIS, amount
from mcad.core.state.reasons import ConditionType, State

Json = dict[str, Any]

SECOND = 1_000_000  # microseconds
ENDS = (State.COMPLETED, State.FAILED, State.DELETED)
DIGITS = 3  # of seconds
GIVEN_UP = "GivenUp"
_CONDITIONS = {State.COMPLETED: ConditionType.COMPLETED, State.FAILED: ConditionType.FAILED}
_UNDERWAY = ("creating", "dispatched")


class Run(Struct, frozen=True):
    """One attempt: when its dispatch began and when it ended, in microseconds; 0 is unknown."""

    begun: int
    ended: int


class Ended(Struct, frozen=True):
    """An AppWrapper that has ended. Instants are microseconds, 0 if they are unknown.

    ``labels`` and ``demand`` are None if they are unknown. ``runs`` are the attempts that are
    known: the last one, or all of them from a journal.
    """

    namespace: str
    name: str
    uid: str
    state: str
    reason: str
    message: str
    priority: int
    leaves: tuple[tuple[str, str], ...]
    submitted: int
    started: int
    ended: int
    attempts: int
    runs: tuple[Run, ...]
    labels: Mapping[str, str] | None = None
    demand: Mapping[str, str] | None = None

    @property
    def waited_s(self) -> float | None:
        """From the submission to the first dispatch, else to the end."""
        return _seconds(self.submitted, self.started or self.ended)

    @property
    def ran_s(self) -> float:
        """How long the known attempts lasted."""
        return round(sum(_seconds(run.begun, run.ended) or 0.0 for run in self.runs), DIGITS)

    @property
    def requested_s(self) -> dict[str, float] | None:
        """Resource -> the demand multiplied by the time of the known attempts: CPU seconds, byte
        seconds; None if the demand is unknown."""
        if self.demand is None:
            return None
        ran_s = self.ran_s
        return {
            name: round(_units(name, text) * ran_s, DIGITS) for name, text in self.demand.items()
        }

    def is_charged(self, leaf: str) -> bool:
        """Whether it was charged to this LEAF or TREE/LEAF."""
        return any(leaf in (name, f"{tree}/{name}") for tree, name in self.leaves)

    def view(self) -> Json:
        """As JSON; unknown values are None."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "state": self.state,
            "reason": self.reason,
            "message": self.message,
            "priority": self.priority,
            "leaves": [{"tree": tree, "leaf": leaf} for tree, leaf in self.leaves],
            "labels": self.labels,
            "submitted": format_instant(self.submitted),
            "started": format_instant(self.started),
            "ended": format_instant(self.ended),
            "attempts": self.attempts,
            "waitedSeconds": self.waited_s,
            "ranSeconds": self.ran_s,
            "demand": self.demand,
            "requestedSeconds": self.requested_s,
        }


def read_ended(
    obj: Json, demand: Mapping[str, str] | None = None, runs: Sequence[Run] = ()
) -> Ended | None:
    """The AppWrapper of an object, None if it has not ended. ``runs`` are earlier attempts."""
    if state(obj) not in ENDS:
        return None
    metadata, status = obj["metadata"], as_map(obj.get("status"))
    record = as_map(status.get("dispatch"))
    ended, reason, message = _end(obj, record)
    begun = parse_instant(record.get("intentTime"))
    last = (Run(begun, ended or parse_instant(record.get("phaseTime"))),) if begun else ()
    starts = [status.get("controllerfirstdispatchtimestamp"), record.get("intentTime")]
    known = [run.begun for run in runs] + [parse_instant(one) for one in starts]
    return Ended(
        as_text(metadata.get("namespace")),
        as_text(metadata.get("name")),
        as_text(metadata.get("uid")),
        str(state(obj)),
        str(reason),
        message,
        as_int(as_map(obj.get("spec")).get("priority"), as_int(status.get("systempriority"))),
        tuple(
            (as_text(one.get("tree")), as_text(one.get("leaf")))
            for one in map(as_map, as_list(record.get("quota")))
        ),
        parse_instant(metadata.get("creationTimestamp")),
        min(filter(None, known), default=0),
        ended,
        as_int(record.get("attempt")),
        (*runs, *last),
        {key: as_text(value) for key, value in as_map(metadata.get("labels")).items()},
        demand,
    )


def is_underway(record: Json) -> bool:
    """Whether the attempt of ``status.dispatch`` goes on."""
    return record.get("phase") in _UNDERWAY


def _end(obj: Json, record: Json) -> tuple[int, str, str]:
    """When it ended, and why in a word and a sentence."""
    kind = _CONDITIONS.get(State(state(obj)))
    found = condition(obj, kind) if kind else {}
    if found.get("status") == "True":
        at = found.get("lastTransitionMicroTime") or found.get("lastTransitionTime")
        return parse_instant(at), as_text(found.get("reason")), as_text(found.get("message"))
    reason = as_text(record.get("reason")) or (GIVEN_UP if kind is None else "")
    return parse_instant(record.get("phaseTime")), reason, as_text(record.get("message"))


def _seconds(begun: int, ended: int) -> float | None:
    return round(max(0, ended - begun) / SECOND, DIGITS) if begun and ended else None


def _units(resource: str, text: str) -> float:
    """CPUs, bytes or counts."""
    return amount(resource, text) / (MILLIS if resource == CPU else 1)
