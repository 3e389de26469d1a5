"""Pods that are wanted and do not come: what is reserved for them is not so for ever (C4)."""

from __future__ import annotations

from mcad.core.entry import Entry
from mcad.core.lifecycle import Phase
from mcad.core.model import SECOND
from mcad.core.reasons import EventReason
from mcad.core.timers import Timer
from mcad.core.world import World


def begin(world: World, entry: Entry) -> None:
    """It runs, or was found running: its pods are waited for from now on.

    After a restart nobody knows since when a pod is missing. It may have vanished a moment ago, and
    whoever makes pods is about to replace it, so the time begins anew.
    """
    world.capacity.await_pods(entry.uid, world.now)
    _time(world, entry)


def watch(world: World) -> None:
    """What came and went since the last pass begins, moves and ends the times of waiting."""
    for uid in world.capacity.note_needs(world.now):
        entry = world.entries.get(uid)
        if entry is not None and entry.phase is Phase.RUNNING:
            _time(world, entry)


def _time(world: World, entry: Entry) -> None:
    since = world.capacity.in_need_since(entry.uid)
    if since is None:
        entry.stop(Timer.RESERVATION)
        return
    until = since + world.settings.reservation_timeout
    if entry.timers.get(Timer.RESERVATION) != until:
        world.wake_in(entry, Timer.RESERVATION, max(0, until - world.now))


def give_up(world: World, entry: Entry) -> None:
    """C4: nothing is reserved for ever for pods that nobody makes."""
    timeout = world.settings.reservation_timeout
    given_up = world.capacity.expire(entry.uid, world.now - timeout)
    world.to_judge[entry.uid] = None  # pods that nobody waits for keep nobody from completing
    _time(world, entry)
    if given_up:
        pods = "1 pod that is" if given_up == 1 else f"{given_up} pods that are"
        ends = "its" if given_up == 1 else "their"
        note = (
            f"{pods} wanted did not appear within {timeout // SECOND} s; "
            f"{ends} reservation ends. Is the controller of the wrapped kind running?"
        )
        world.announce(entry, EventReason.PODS_NOT_ATTRIBUTED, note, action="Reserve", warning=True)
