"""When a waiting AppWrapper starts, and what that rests on. It is told to people: nothing is
changed, and no decision asks here (core R9, ADR 31).

``latest`` comes of a rehearsal: it rests on declared limits, or, where there is none, on what is
expected. AppWrappers that come later and go ahead are not foreseen, so only a claim is a promise.
``earliest`` is when there is room if none ahead takes any: no sooner, if what is expected of the
running ones is true. Nodes and pods of others are taken to stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from mcad.core.cluster import World
from mcad.core.reservations.end_times import NEVER, QUICK, SLOW
from mcad.core.state.bounds import FORECAST_AHEAD, FORECAST_STEPS
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.records import Struct, replace
from mcad.core.state.reservation import EVICTIONS, Claim
from mcad.core.state.units import Instant
from mcad.core.views.start_estimate import Rehearsal, Start


class Basis(StrEnum):
    """What the latest start rests on."""

    CLAIM = "Claim"  # room is kept for it, and declared limits say when that is free
    LIMITS = "Limits"  # declared limits; but another may come and go ahead of it
    EXPECTATIONS = "Expectations"  # but what one says of itself, or runs of equal shape
    NOTHING = ""


class Forecast(Struct, frozen=True):
    """When it starts; an instant is 0 if that is unknown. ``why`` says what they rest on, or why
    there is no latest one; "" if it does not wait."""

    earliest: Instant = 0
    latest: Instant = 0
    basis: Basis = Basis.NOTHING
    why: str = ""


def forecasts(world: World, line: Sequence[str], wanted: Iterable[str]) -> dict[str, Forecast]:
    """For those ``wanted`` (uids). ``line`` has the uids of those in line in their order, at least
    the first ``FORECAST_AHEAD`` of them; of those further back nothing is told."""
    rehearsal, asked = Rehearsal(world), dict.fromkeys(wanted)
    ahead = [world.entries[uid] for uid in line[:FORECAST_AHEAD] if _is_in_line(world, uid)]
    while ahead and ahead[-1].uid not in asked:
        ahead.pop()
    claims = list(world.claims.values()) if ahead else []
    found = _of_line(rehearsal, claims, ahead, asked)
    for uid in asked:
        entry = world.entries.get(uid)
        if entry is not None and uid not in found:
            found[uid] = _of_another(rehearsal, entry)
    return found


def _is_in_line(world: World, uid: str) -> bool:
    entry = world.entries.get(uid)
    return entry is not None and entry in world.queue


def _of_line(
    rehearsal: Rehearsal, claims: list[Entry], ahead: list[Entry], asked: dict[str, None]
) -> dict[str, Forecast]:
    """As many of them as the budget suffices for, behind those that have claims."""
    found: dict[str, Forecast] = {}
    undated = _with_claims(rehearsal, claims)
    for entry in ahead:
        if rehearsal.steps >= FORECAST_STEPS:
            break
        forecast = _latest(rehearsal, entry, undated)
        if entry.uid in asked:
            found[entry.uid] = _with_earliest(rehearsal, entry, forecast)
    return found


def _with_claims(rehearsal: Rehearsal, owners: list[Entry]) -> list[Entry]:
    """Those with a claim go first; returns those of unknown start."""
    dated = sorted((one.claim.start or NEVER, one.uid, one) for one in owners if one.claim)
    return [
        one
        for start, _, one in dated
        if rehearsal.place(one, 0 if start == NEVER else start) is None
    ]


def _latest(rehearsal: Rehearsal, entry: Entry, undated: list[Entry]) -> Forecast:
    for one in undated:
        if rehearsal.compete(entry, one):
            return Forecast(why=f"When {one.title} starts, which is ahead of it, nobody can tell.")
    if rehearsal.is_hopeless(entry):
        return Forecast(why="It would not fit even if every AppWrapper left.")
    start = rehearsal.place(entry)
    if start is not None:
        basis = Basis.EXPECTATIONS if start.soft else Basis.LIMITS
        return Forecast(0, start.at, basis, _rests_on(start))
    undated.append(entry)
    count = rehearsal.lacking(entry)
    if not count:
        return Forecast(why="It does not fit beside what stays for all that is known.")
    have = "has" if count == 1 else "have"
    return Forecast(why=f"{count} of those it waits for {have} no declared limit and no history.")


def _rests_on(start: Start) -> str:
    if not (start.left or start.ahead):
        return "It fits already."
    who = f"it waits for {start.left} to end, with {start.ahead} ahead of it"
    if not start.soft:
        return f"By declared limits, unless others go before it: {who}."
    return (
        f"By what is expected, unless others go before it: {who}, and {start.soft} of these, which "
        f"have no limit, take no longer than {SLOW} % of equal ones did, or than they say."
    )


def _with_earliest(rehearsal: Rehearsal, entry: Entry, forecast: Forecast) -> Forecast:
    """Or without, where there may be room at any moment, or that is unknown."""
    earliest = rehearsal.earliest(entry)
    if not earliest:
        return forecast
    if forecast.latest and earliest >= forecast.latest:
        return replace(forecast, earliest=forecast.latest)
    said = (
        f"Sooner only if somebody takes less than he says, or than {100 - QUICK} % of equal ones."
    )
    return replace(forecast, earliest=earliest, why=f"{forecast.why} {said}")


def _of_another(rehearsal: Rehearsal, entry: Entry) -> Forecast:
    """Of an AppWrapper that is not among the first in line."""
    if entry.phase is not Phase.WAITING:
        return Forecast()
    if entry.claim is not None:
        return _of_claim(rehearsal, entry, entry.claim)
    if entry.hold is not None:
        return Forecast(why=f"It is kept out of the line ({entry.hold.reason}).")
    return Forecast(why="Too many are ahead of it to tell.")


def _of_claim(rehearsal: Rehearsal, entry: Entry, claim: Claim) -> Forecast:
    if claim.reason in EVICTIONS:
        return Forecast(why="Its room is claimed: it starts when those have gone who are evicted.")
    if not claim.start:
        why = "Its room is claimed; when that is free nobody can tell, as somebody has no limit."
        return _with_earliest(rehearsal, entry, Forecast(why=why))
    why = "Its room is claimed, and free by then if all keep their declared limits."
    promise = Forecast(0, claim.start, Basis.CLAIM, why)
    return _with_earliest(rehearsal, entry, promise)
