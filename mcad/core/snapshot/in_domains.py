"""A snapshot of a gang that needs a topology domain: it fits as soon as it fits in one of them.

So no AppWrapper is evicted, and no room is reserved, unless one whole domain comes free (ADR 49).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mcad.core.fit.prospect import Prospect
from mcad.core.nodes.ledger import Plan
from mcad.core.snapshot.quota import Shares
from mcad.core.snapshot.snapshot import Planned, Snapshot, View


class InDomains(Snapshot):
    """A snapshot per way to choose domains, in the order of preference; their shares are counted
    here, once. An AppWrapper is removed from and restored to those with a node of it."""

    def __init__(
        self, view: View, prospect: Prospect, ways: Sequence[Snapshot], shares: Shares
    ) -> None:
        self.shares = shares
        self._view = view
        self._prospect = prospect
        self._on_nodes = True
        self._known = view.assumed.held
        self._planned: dict[str, Planned] = {}
        self._ways = [way for way in ways if not way.hopeless]
        self._concerned = view.ledger.nothing()
        self._asked = list(self._ways)
        self._at: dict[int, list[Snapshot]] = {}
        for way in self._ways:
            self._concerned |= way._concerned
            for at in np.flatnonzero(way._concerned).tolist():
                self._at.setdefault(at, []).append(way)
        self.hopeless = shares.hopeless or not self._ways
        self.steps = sum(way.steps for way in ways)

    def is_idle(self, resource: str, amount: int) -> bool:
        """Whether so much is free on the nodes of one way to choose domains."""
        return any(way.is_idle(resource, amount) for way in self._ways)

    def remove(self, uid: str) -> bool:
        """As for one snapshot; room that the gang does not lack is given back as well."""
        useful = bool(self.shares.seats) and self.shares.remove(uid)
        useful = self._shift_all(uid, 1) or useful
        if not useful:
            self.restore(uid)
        return useful

    def remove_in_turn(self, uids: Iterable[str], least: int) -> list[str]:
        gone: list[str] = []
        enough = any(way.suffices() for way in self._ways)
        for uid in uids:
            if self.remove(uid):
                gone.append(uid)
                enough = enough or any(way.suffices() for way in self._ways_of(uid))
                if len(gone) >= least and enough and self.shares.fits():
                    break
        return gone

    def restore(self, uid: str) -> None:
        if self.shares.seats:
            self.shares.restore(uid)
        self._shift_all(uid, -1)

    def restore_if_spare(self, uid: str) -> bool:
        self.restore(uid)
        if self.fits():
            return True
        if self.shares.seats:
            self.shares.remove(uid)
        self._shift_all(uid, 1)
        return False

    def restore_idle(self, gone: Sequence[str]) -> list[str]:
        return list(gone)

    def _ways_of(self, uid: str) -> list[Snapshot]:
        """The snapshots with a node of the AppWrapper."""
        ways = (way for at, _ in self._on_usable(self._held(uid)) for way in self._at[at])
        return list(dict.fromkeys(ways))

    def _shift_all(self, uid: str, times: int) -> bool:
        self.steps += 2
        found = [way._shift(uid, times) for way in self._ways_of(uid)]
        return any(found)

    def assume(self, uid: str, planned: Planned) -> None:
        self.shares.assume(uid, planned.seats)
        if not self._planned:
            self._known = self._known.copy()
        self._planned[uid], self._known[uid] = planned, planned.pods
        for way in self._ways:
            way.assume(uid, planned._replace(seats=()))

    @property
    def is_spent(self) -> bool:
        return all(way.is_spent for way in self._ways)

    def suffices(self) -> bool:
        return self.shares.fits() and any(way.suffices() for way in self._ways)

    def fits(self) -> bool:
        """The way that fitted last is asked first."""
        if self.hopeless or not self.shares.fits():
            return False
        for number, way in enumerate(self._asked):
            before = way.steps
            fits = way.fits()
            self.steps += 1 + way.steps - before
            if fits:
                self._asked.insert(0, self._asked.pop(number))
                return True
        return False

    def plan(self) -> Plan | None:
        if self.hopeless or not self.shares.fits():
            return None
        plans = (way.plan() for way in self._ways)
        return next((plan for plan in plans if plan is not None), None)
