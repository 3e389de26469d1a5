"""AppWrappers as rows for people: the CLI and the HTTP port print the same ones."""

from __future__ import annotations

from dataclasses import dataclass

from mcad.core import deciding, obstacles
from mcad.core.capacity import Glance
from mcad.core.entry import Entry
from mcad.core.lifecycle import Phase
from mcad.core.model import Instant, Refusal, Resources
from mcad.core.reasons import HoldReason, explain_refusal
from mcad.core.status import queue_job_state, state
from mcad.core.world import World


@dataclass(frozen=True, slots=True)
class Row:
    """One AppWrapper.

    ``position`` is its place in line from 1, 0 if it is not in line. ``waits_for`` is a reason in
    one word and ``why`` a sentence with figures; both "" if it does not wait.
    """

    uid: str
    namespace: str
    name: str
    position: int
    head: bool
    state: str
    queue_job_state: str
    priority: int
    first_seen: Instant
    demand: Resources
    attempt: int
    waits_for: str
    why: str


def queue_rows(world: World, now: Instant) -> tuple[Row, ...]:
    """Everybody in line, first to last, and then those on hold, by first-seen time."""
    return _queue_rows(world, world.capacity.glance(), now)


def all_rows(world: World, now: Instant) -> tuple[Row, ...]:
    """Every AppWrapper: those that wait in their order, then the others by first-seen time."""
    glance = world.capacity.glance()
    waiting = _queue_rows(world, glance, now)
    others = [e for e in world.entries.values() if e.phase not in (Phase.WAITING, Phase.GONE)]
    others.sort(key=lambda e: (e.first_seen, e.uid))
    return waiting + tuple(_row(entry, _demand(world, glance, entry), ("", "")) for entry in others)


def _queue_rows(world: World, glance: Glance, now: Instant) -> tuple[Row, ...]:
    head = deciding.head_of_line(world, glance, now)
    verdicts = {bucket: deciding.verdict(glance, bucket) for bucket in world.queue.buckets()}
    rows = []
    for position, entry in enumerate(world.queue.in_order(now), 1):
        bucket = world.queue.bucket_of(entry)
        refusal = verdicts[bucket] if bucket is not None else None
        waits = _waits_in_line(world, entry, refusal)
        rows.append(_row(entry, _demand(world, glance, entry), waits, position, head=entry is head))
    held = [e for e in world.entries.values() if e.phase is Phase.WAITING and e.hold is not None]
    held.sort(key=lambda e: (e.first_seen, e.uid))
    rows += [_row(entry, _demand(world, glance, entry), _waits_on_hold(entry)) for entry in held]
    return tuple(rows)


def _row(
    entry: Entry,
    demand: Resources,
    waits: tuple[str, str],
    position: int = 0,
    *,
    head: bool = False,
) -> Row:
    work = entry.workload
    waits_for, why = waits
    return Row(
        uid=work.uid,
        namespace=work.namespace,
        name=work.name,
        position=position,
        head=head,
        state=state(entry),
        queue_job_state=queue_job_state(entry),
        priority=work.priority,
        first_seen=entry.first_seen,
        demand=demand,
        attempt=entry.attempt,
        waits_for=waits_for,
        why=why,
    )


def _demand(world: World, glance: Glance, entry: Entry) -> Resources:
    bucket = world.queue.bucket_of(entry)
    shape = bucket.shape if bucket is not None else world.capacity.shape(entry.workload.sets)
    return glance.demand(shape)


def _waits_in_line(world: World, entry: Entry, refusal: Refusal | None) -> tuple[str, str]:
    if refusal is not None:
        return refusal.binding or refusal.kind.value, explain_refusal(refusal)
    hindrance = obstacles.obstacle(world, entry)
    if hindrance is not None:
        return HoldReason(hindrance.reason).value, hindrance.message
    return "", "It fits and is dispatched next."


def _waits_on_hold(entry: Entry) -> tuple[str, str]:
    hold = entry.hold
    return (HoldReason(hold.reason).value, hold.message) if hold is not None else ("", "")
