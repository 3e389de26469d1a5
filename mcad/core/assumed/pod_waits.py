"""Pods that are wanted and missing: since when, and when the wait ends (C4). ``note``, the first
step of each pass, updates it."""

from __future__ import annotations

from mcad.core.assumed.allotments import AssumedGang
from mcad.core.assumed.assumed import Assumed
from mcad.core.nodes.ledger import Ledger
from mcad.core.state.bounds import NOTED_PER_PASS
from mcad.core.state.units import Instant


class PodWaits:
    """The missing pods of assumed gangs, by the uid of the AppWrapper."""

    def __init__(self, ledger: Ledger, assumed: Assumed) -> None:
        self._ledger = ledger
        self._assumed = assumed

    def begin(self, uid: str, now: Instant) -> None:
        """Its items exist: from now on its pods are waited for."""
        gang = self._assumed.by_uid.get(uid)
        if gang is not None:
            gang.awaited = True
            for allotment in gang.allotments:
                allotment.needs.clear()
                allotment.note_needs(now)
            _note_placement(gang)

    @property
    def is_noted(self) -> bool:
        """Whether the last ``note`` noted all changes."""
        return self._assumed.is_noted

    def note(self, now: Instant) -> list[str]:
        """Start the clock of pods that are missing since the last call, for so many pod sets as a
        pass may take; returns the uids with changes."""
        changed: dict[str, AssumedGang] = {}
        for allotment in self._assumed.take_unnoted(NOTED_PER_PASS):
            owner = allotment.gang
            if owner.awaited and not owner.frozen:
                allotment.note_needs(now)
                changed[owner.uid] = owner
        for owner in changed.values():
            _note_placement(owner)
        return list(changed)

    def since(self, uid: str) -> Instant | None:
        """Since when the oldest missing pod is waited for; None if none is."""
        gang = self._assumed.by_uid.get(uid)
        if gang is None or gang.frozen:
            return None
        return min((one.needs[0][0] for one in gang.allotments if one.needs), default=None)

    def never_came(self, uid: str) -> int:
        """Pods that live children want and that were never created; 0 once all pods had nodes."""
        return sum(
            allotment.unseen
            for allotment in self._assumed.allotments(uid)
            if allotment.want is not None and not allotment.gang.placed
        )

    def is_placed(self, uid: str) -> bool:
        """Whether all of its pods had nodes at one time, or enough time to get one."""
        gang = self._assumed.by_uid.get(uid)
        return gang is not None and gang.placed

    def in_vain(self, uid: str) -> bool:
        """Whether it keeps, or has kept, room for pods that never had a node."""
        return any(
            allotment.came < allotment.declared + allotment.given_up
            for allotment in self._assumed.allotments(uid)
        )

    def end_placement(self, uid: str) -> None:
        """The time for finding nodes is over: pods missing from now on were lost, or are never
        created."""
        gang = self._assumed.by_uid.get(uid)
        if gang is not None:
            gang.placed = True

    def give_up(self, uid: str, until: Instant) -> int:
        """Stop waiting for pods missing since ``until`` or longer; returns how many."""
        gang = self._assumed.by_uid.get(uid)
        if gang is None or gang.frozen:
            return 0
        given_up = 0
        for allotment in gang.allotments:
            given_up += allotment.give_up(until)
            self._assumed.settle(allotment)
        self._ledger.post()
        return given_up


def _note_placement(gang: AssumedGang) -> None:
    if not any(allotment.uncovered for allotment in gang.allotments):
        gang.placed = True
