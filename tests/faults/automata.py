"""The protocol as automata over what the API server stores: every revision, in order.

They know no dispatcher and none of its books. Each takes one write after the other and says what
it breaks. A history may be one that a run has recorded (``Recorder``), or one made by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from mcad.api import labels
from mcad.api.wire import parse_instant
from mcad.core.state.units import SECOND
from mcad.kube.decode import decode
from mcad.kube.port import Request
from mcad.sim.registry import Registry
from mcad.sim.store import Change
from tests.faults.edits import STORAGE, WRAPPED
from tests.faults.forging import is_forged

Json = dict[str, Any]

NEXT: Mapping[str, frozenset[str]] = {
    "": frozenset({"creating"}),
    "creating": frozenset({"dispatched", "undeploying"}),
    "dispatched": frozenset({"keeping", "undeploying"}),
    "keeping": frozenset({"undeploying"}),
    # An intent may be what follows a teardown: the write of "released" was refused before it.
    "undeploying": frozenset({"paused", "released", "creating"}),
    "paused": frozenset({"creating", "released"}),
    "released": frozenset({"creating"}),
}
"""Phases of ``status.dispatch``, and those that may follow (protocol P1, P3, P4, C7)."""

EVENTS = ("", "events")
REPORTER = f"{labels.GROUP}/mcad"
TERMINAL = frozenset({"Completed", "Failed", "Deleted"})
RESTAMPED = frozenset({"Queueing", "Dispatched"})
"""Conditions that begin anew with each stay in the queue, and with each attempt."""


class Write(NamedTuple):
    """One revision of an AppWrapper or of a wrapped object, and when it was stored."""

    at: int
    change: Change


Automaton = Callable[[Iterable[Write]], Iterator[str]]


def judge(history: Iterable[Write], *, behind: int, is_timed: bool = True) -> list[str]:
    """All that the history breaks. ``behind`` (microseconds) is how old what a dispatcher goes by
    may be, and how late a create that it has sent may be stored. ``is_timed`` is whether the times
    of conditions can be told: not after a list that was older than its request, which no API server
    gives out. What happened since is seen again then, at another time."""
    writes = list(history)
    automata = [one for one in AUTOMATA if is_timed or one is not transitions_are_timed]
    found = [fault for automaton in automata for fault in automaton(writes)]
    return found + list(created_after_deletion(writes, behind))


def phases_in_order(history: Iterable[Write]) -> Iterator[str]:
    """A record goes from phase to phase as the protocol says, and never disappears. A write of a
    dead leader that is stored late is repaired: the record is again what it was before."""
    former: dict[str, Json] = {}
    for change in _edits(history):
        before, after = _phase(change.previous), _phase(change.obj)
        is_repair = _record(change.obj) == former.get(_uid(change))
        former[_uid(change)] = _record(change.previous)
        if before != after and after not in NEXT[before] and not is_repair:
            yield f"{_name(change)} goes from {before or 'no record'} to {after or 'no record'}"


def numbers_rise(history: Iterable[Write]) -> Iterator[str]:
    """Neither the attempt nor the epoch falls; the attempt rises with an intent, and only then."""
    for change in _edits(history):
        old, new = _record(change.previous), _record(change.obj)
        if not new:
            continue
        before, after = old.get("attempt", 0), new["attempt"]
        is_intent = _phase(change.obj) == "creating" != _phase(change.previous)
        if (after > before) != is_intent or after < before:
            yield f"{_name(change)}: attempt {before} is followed by {after}"
        if new["epoch"] < old.get("epoch", 0):
            yield f"{_name(change)}: epoch {old['epoch']} is followed by {new['epoch']}"


def intents_come_first(history: Iterable[Write]) -> Iterator[str]:
    """No object with the label of an attempt is stored before the intent that has its name."""
    announced: dict[str, dict[int, set[tuple[str, str]]]] = {}
    for write in history:
        change = write.change
        if _is_appwrapper(change):
            record = _record(change.obj)
            if record:
                names = {(ref["kind"], ref["name"]) for ref in record.get("inventory") or ()}
                mine = announced.setdefault(_uid(change), {})
                mine.setdefault(record["attempt"], set()).update(names)
        elif change.type == "ADDED" and (owner := _owner(change.obj)):
            attempt = int(labels.labels_of(change.obj).get(labels.ATTEMPT) or 0)
            name = (change.obj["kind"], change.key[1])
            if name not in announced.get(owner, {}).get(attempt, ()):
                yield f"{'/'.join(name)} is stored before an intent of attempt {attempt}"


def created_after_deletion(history: Iterable[Write], behind: int) -> Iterator[str]:
    """No object is made for an AppWrapper that has a deletionTimestamp, or is gone."""
    deleted: dict[str, int] = {}
    for at, change in history:
        if _is_appwrapper(change):
            if change.type == "DELETED" or "deletionTimestamp" in change.obj["metadata"]:
                deleted.setdefault(_uid(change), at)
        elif change.type == "ADDED" and (owner := _owner(change.obj)) in deleted:
            late = at - deleted[owner]
            if late > behind:
                name = f"{change.obj['kind']}/{change.key[1]}"
                yield f"{name} is made {late / SECOND:.1f} s after its AppWrapper was deleted"


def transitions_are_timed(history: Iterable[Write]) -> Iterator[str]:
    """There is one condition of a type. Its lastTransitionTime moves with its status, and only
    then, but for those that begin anew with the phase of the record."""
    for change in _edits(history):
        before = {one["type"]: one for one in _conditions(change.previous)}
        now = _conditions(change.obj)
        types = [one["type"] for one in now]
        if len(types) != len(set(types)):
            yield f"{_name(change)} has several conditions of a type: {sorted(types)}"
        phases = (_phase(change.previous), _phase(change.obj))
        begins_anew = phases[0] != phases[1]
        if phases == ("undeploying", "creating"):
            continue  # the write between them was refused, and what it said changed twice
        for one in now:
            known = before.get(one["type"])
            if known is None or (one["type"] in RESTAMPED and begins_anew):
                continue
            if phases == ("undeploying", "released") and one["type"] == "HeadOfLine":
                continue  # by the time this write succeeds it may be the head again
            if one["type"] == "ScaleUp":
                continue  # a request may be made and fail between two writes
            if _is_mistimed(known, one):
                yield f"{_name(change)}: {one['type']} was {known}, is {one}"


def _is_mistimed(known: Json, one: Json) -> bool:
    """A status may change twice at one instant: then neither time moves."""
    moved = parse_instant(_changed(one)) - parse_instant(_changed(known))
    if one["status"] == known["status"]:
        return bool(moved)
    updated = one["lastUpdateMicroTime"] != known["lastUpdateMicroTime"]
    return moved < 0 or (updated and not moved)


def terminal_states_stay(history: Iterable[Write]) -> Iterator[str]:
    """What has ended for good stays that."""
    for change in _edits(history):
        before, after = _final_state(change.previous), _status(change.obj).get("state")
        if before in TERMINAL and after != before:
            yield f"{_name(change)} is {after} after {before}"


def attempts_are_conserved(history: Iterable[Write]) -> Iterator[str]:
    """By AppWrapper: attempts begun = attempts ended + the one that stands."""
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    stands: dict[str, bool] = {}
    for change in _edits(history):
        uid, before, after = _uid(change), _phase(change.previous), _phase(change.obj)
        begun[uid] = begun.get(uid, 0) + (after == "creating" != before)
        ended[uid] = ended.get(uid, 0) + (before == "undeploying" != after)
        ended[uid] -= after == "undeploying" and before in ("paused", "released")  # a repair
        stands[uid] = after not in ("", "paused", "released")
    for uid, count in begun.items():
        if count != ended[uid] + stands[uid]:
            yield f"{uid}: {count} begun, {ended[uid]} ended, one stands: {stands[uid]}"


def counted(history: Iterable[Write]) -> dict[str, int]:
    """How many attempts were confirmed, and ended, and how many of those begun stood when the
    AppWrapper was deleted: of these the answer may have come too late to be counted, and an end
    that supersedes the confirmation too late to be stored."""
    sums = {"dispatched": 0, "ended": 0, "deleted": 0}
    standing: set[str] = set()
    for write in history:
        change = write.change
        if not _is_appwrapper(change):
            continue
        uid, before, after = _uid(change), _phase(change.previous), _phase(change.obj)
        if change.type == "DELETED":
            sums["deleted"] += uid in standing
        elif after == "creating" != before:
            standing.add(uid)
        elif before == "creating" and after == "dispatched":
            sums["dispatched"] += 1
        elif before == "undeploying" != after:
            sums["ended"] += 1
            standing.discard(uid)
    return sums


def miscounted(told: Mapping[str, int], history: Iterable[Write]) -> Iterator[str]:
    """A process that has led all the time tells of all attempts (``dispatched`` and ``ended``). Of
    one that is deleted the end may be told and not stored any more."""
    stored = counted(history)
    unheard = stored["dispatched"] - told["dispatched"]
    unstored = told["ended"] - stored["ended"]
    if not (0 <= unstored <= stored["deleted"] and abs(unheard) <= stored["deleted"]):
        yield f"metrics tell of {dict(told)}, stored are {stored}"


def untrue(
    events: Iterable[Json], history: Iterable[Write], *, was_stale: bool = False
) -> Iterator[str]:
    """Every Event names its object, and tells of no dispatch and no end that was not stored. An
    AppWrapper that is deleted meanwhile may have an end that is stored no more. ``was_stale`` is
    whether a process began with a list that was older than its request, which no API server gives
    out: it tells again of a dispatch that it does not see."""
    deleted: set[str] = set()
    confirmed: dict[str, int] = {}
    states: dict[str, set[str]] = {}
    for write in history:
        change = write.change
        if _is_appwrapper(change):
            uid, before, after = _uid(change), _phase(change.previous), _phase(change.obj)
            confirmed[uid] = confirmed.get(uid, 0) + (
                before == "creating" and after == "dispatched"
            )
            states.setdefault(uid, set()).add(str(_status(change.obj).get("state")))
            if change.type == "DELETED" or "deletionTimestamp" in change.obj["metadata"]:
                deleted.add(uid)
    said: dict[str, int] = {}
    for event in events:
        about, reason = event.get("involvedObject") or {}, event["reason"]
        if not all(about.get(key) for key in ("kind", "name", "uid")):
            yield f"an Event {reason} does not say what it is about: {about}"
        elif about["kind"] == labels.KIND:
            uid = about["uid"]
            said[uid] = said.get(uid, 0) + (reason == "Dispatched")
            if uid not in states:
                yield f"an Event {reason} is about {about['name']}, which never was"
            elif reason == "Completed" and "Completed" not in states[uid] and uid not in deleted:
                yield f"an Event says that {about['name']} is Completed"
    for uid, count in said.items():
        known = confirmed.get(uid, 0)
        if count > known and not (was_stale and known):
            yield f"{count} Events tell of dispatches, {known} were confirmed"


AUTOMATA: tuple[Automaton, ...] = (
    phases_in_order,
    numbers_rise,
    intents_come_first,
    transitions_are_timed,
    terminal_states_stay,
    attempts_are_conserved,
)


def unfenced(requests: Iterable[Request]) -> Iterator[str]:
    """Every write of a status carries the version that it was judged by."""
    for one in requests:
        if one.method in ("PATCH", "PUT") and one.path.endswith("/status"):
            body = one.body if isinstance(one.body, dict) else decode(one.body or b"{}")
            if not (body.get("metadata") or {}).get("resourceVersion"):
                yield f"{one.method} {one.path} is not fenced"


class Recorder:
    """Records every write of AppWrappers and wrapped objects from now on."""

    def __init__(self, registry: Registry) -> None:
        self.history: list[Write] = []
        self.events: list[Json] = []  # the dispatcher's own
        self._clock = registry.clock
        registry.store.listen(EVENTS, self._told)
        for storage in (STORAGE, *WRAPPED):
            registry.store.listen(storage, self._heard)

    def _told(self, change: Change) -> None:
        if change.type == "ADDED" and change.obj.get("reportingComponent") == REPORTER:
            self.events.append(change.obj)

    def _heard(self, change: Change) -> None:
        self.history.append(Write(self._clock.now_us(), change))


def _edits(history: Iterable[Write]) -> Iterator[Change]:
    """The revisions of AppWrappers that have one before."""
    for write in history:
        if _is_appwrapper(write.change) and write.change.type == "MODIFIED":
            yield write.change


def _is_appwrapper(change: Change) -> bool:
    return bool(change.obj["kind"] == labels.KIND)


def _owner(obj: Json) -> str:
    """The uid of the AppWrapper whose item it is, "" if it is none, or only says so. What is made
    for a scale-up request has an owner, and is no item."""
    if is_forged(obj) or labels.SCALE_UP_UID in labels.labels_of(obj):
        return ""
    for one in obj["metadata"].get("ownerReferences") or ():
        if one.get("controller") and one["kind"] == labels.KIND:
            return str(one["uid"])
    return ""


def _uid(change: Change) -> str:
    return str(change.obj["metadata"]["uid"])


def _name(change: Change) -> str:
    return str(change.obj["metadata"]["name"])


def _status(obj: Json | None) -> Json:
    return (obj or {}).get("status") or {}


def _record(obj: Json | None) -> Json:
    return _status(obj).get("dispatch") or {}


def _phase(obj: Json | None) -> str:
    return str(_record(obj).get("phase") or "")


def _final_state(obj: Json | None) -> str:
    """A failure, or a deletion, is final once its objects are gone."""
    is_over = _phase(obj) in ("", "dispatched", "released")
    return str(_status(obj).get("state") or "") if is_over else ""


def _conditions(obj: Json | None) -> list[Json]:
    return list(_status(obj).get("conditions") or ())


def _changed(condition: Json) -> str:
    return str(condition.get("lastTransitionMicroTime") or condition["lastTransitionTime"])
