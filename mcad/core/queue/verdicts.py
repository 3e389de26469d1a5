"""The equivalence classes that need a verdict, and those whose verdict stands until room that may
let them in comes free (core rule R4)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from mcad.core.queue.equivalence import AwaitedShare, EquivalenceClass, awaited
from mcad.core.quota.usage import Forest
from mcad.core.state.bounds import RETRIED_PER_PASS
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import Instant
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from mcad.core.capacity import Capacity
    from mcad.core.queue.equivalence import Awaited

_Classes = dict[EquivalenceClass, None]


class Verdicts:
    """All classes in line: the classes that need a verdict (``active``, an ordered set), and the
    inadmissible classes, by what they wait for."""

    def __init__(self, capacity: Capacity, forest: Forest) -> None:
        self._capacity = capacity
        self._forest = forest
        self.active: _Classes = {}
        self._inadmissible: dict[Awaited, _Classes] = {}
        self._shares: dict[tuple[str, str], dict[AwaitedShare, None]] = {}  # by (tree, node)
        self._tested: _Classes = {}  # the inadmissible classes, by their last test

    def refuse(self, eqclass: EquivalenceClass, refusal: Refusal, now: Instant) -> None:
        """Refuse the class: it is inadmissible until the awaited room or share may be there."""
        self.remove(eqclass)
        eqclass.tested_at = now
        eqclass.awaits = asked = awaited(eqclass, refusal)
        self._inadmissible.setdefault(asked, {})[eqclass] = None
        if isinstance(asked, AwaitedShare):
            self._shares.setdefault(asked[:2], {})[asked] = None
        self._tested[eqclass] = None

    def requeue(self, eqclass: EquivalenceClass) -> None:
        """Make the class active: it needs a verdict."""
        if eqclass not in self.active:
            self.remove(eqclass)
            self.active[eqclass] = None

    def remove(self, eqclass: EquivalenceClass) -> None:
        """Remove the class, which is not in line any more."""
        self.active.pop(eqclass, None)
        asked, eqclass.awaits = eqclass.awaits, None
        if asked is not None:
            del self._tested[eqclass]
            alike = self._inadmissible[asked]
            del alike[eqclass]
            if not alike:
                self._forget(asked)

    def _forget(self, asked: Awaited) -> None:
        del self._inadmissible[asked]
        if isinstance(asked, AwaitedShare):
            at = asked[:2]
            del self._shares[at][asked]
            if not self._shares[at]:
                del self._shares[at]

    def put_in_order(self, eqclasses: Iterable[EquivalenceClass]) -> None:
        """Keep all active classes in this order, which is mostly the order of the next pass: a
        sorted list is sorted fast."""
        self.active = dict.fromkeys(eqclasses)

    def requeue_for_nodes(self) -> None:
        """Requeue the classes that may fit after events of nodes."""
        for shape in self._capacity.take_requeued():
            self._requeue_all(self._inadmissible.get(shape, ()))  # reservations hold shapes, too

    def requeue_for_shares(self, *, heads_block: bool) -> None:
        """Requeue the classes that may fit after events of quotas: the classes at nodes of quota
        trees that have room enough now, and all classes that wait for a share under an edited tree
        (the edit may make a demand possible or impossible). Where heads block, also the classes
        that wait for nodes: a head that has become impossible blocks none."""
        news = self._forest.take_news()
        if news.regrown:
            self._requeue_all(
                one
                for one in self._tested
                if (heads_block or isinstance(one.awaits, AwaitedShare))
                and any(tree in news.regrown for tree, _ in one.path)
            )
        for at in news.risen:
            for share in list(self._shares.get(at, ())):
                if share.amount <= self._forest.room(*share[:3]):
                    self._requeue_all(self._inadmissible[share])

    def requeue_old(self, until: Instant) -> bool:
        """Requeue the classes that were tested at ``until`` or before, some of them in each pass.
        Returns whether more are left."""
        old = takewhile(lambda one: one.tested_at <= until, self._tested)
        expired = list(islice(old, RETRIED_PER_PASS))
        self._requeue_all(expired)
        return len(expired) == RETRIED_PER_PASS

    def _requeue_all(self, eqclasses: Iterable[EquivalenceClass]) -> None:
        for eqclass in list(eqclasses):
            self.requeue(eqclass)

    def check(self, eqclasses: Iterable[EquivalenceClass]) -> None:
        """Check that each class is active or waits; raises ``InvariantViolated``. O(all)."""
        known = list(eqclasses)
        for eqclass in known:
            story, asked = f"{eqclass.path} {eqclass.group}", eqclass.awaits
            check((eqclass in self.active) == (asked is None), "active-or-inadmissible", story)
            if asked is not None:
                alike = self._inadmissible.get(asked, {})
                check(eqclass in alike, "found-by-what-it-awaits", story)
                is_known = not isinstance(asked, AwaitedShare) or asked in self._shares.get(
                    asked[:2], {}
                )
                check(is_known, "shares-are-found-by-node", story)
                check(eqclass in self._tested, "found-by-its-last-test", story)
        count = sum(map(len, self._inadmissible.values()))
        check(count == len(self._tested), "waits-for-one-thing", str(count))
        check(len(self.active) + count == len(known), "only-classes-in-line", str(count))
        shares = [one for one in self._inadmissible if isinstance(one, AwaitedShare)]
        check(sum(map(len, self._shares.values())) == len(shares), "shares-are-awaited", "")
