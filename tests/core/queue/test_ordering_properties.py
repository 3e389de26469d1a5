"""Fairness of namespaces and of leaves, with quota trees and in passes that end early, against a
walk that sorts the whole line before each dispatch."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from mcad.core.cycle import admit
from mcad.core.eligibility.borrow_wait import DeferredBorrowing
from mcad.core.state.model import Workload
from mcad.core.state.quota_records import Designation
from mcad.core.state.records import replace
from mcad.core.state.settings import Fairness
from tests import budget
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import GOLD, Model, teams

WHOLE = 1_000_000
CPU, SLOTS = 1000, 110


def milli(work: Workload) -> int:
    return dict(work.sets[0].request)["cpu"]


@dataclass
class Reference:
    """All that wait are sorted anew before each dispatch, and the first one that fits goes."""

    fairness: Fairness
    model: Model
    reclaims: bool
    waiting: dict[str, Workload] = field(default_factory=dict)
    running: dict[str, Workload] = field(default_factory=dict)

    def share(self, work: Workload) -> int:
        if self.fairness is Fairness.NONE:
            return 0
        if self.fairness is Fairness.NAMESPACE:
            mine = [one for one in self.running.values() if one.namespace == work.namespace]
            return max(sum(map(milli, mine)) * WHOLE // CPU, len(mine) * WHOLE // SLOTS)
        shares = [0]
        for tree in self.model.trees():
            root = next(iter(self.model.placed(tree).values()))[1]
            whole = dict(root.nominal)
            leaf = dict(work.quota)[tree]
            mine = [w for w in self.running.values() if dict(w.quota)[tree] == leaf]
            shares.append(sum(map(milli, mine)) * WHOLE // whole["cpu"])
        return max(shares)

    def has_share(self, work: Workload) -> bool:
        """Whether its leaf has all of its share already, so that it would borrow."""
        for tree in self.model.trees() if self.reclaims else ():
            leaf = dict(work.quota)[tree]
            nominal = dict(self.model.placed(tree)[leaf][1].nominal)
            mine = [w for w in self.running.values() if dict(w.quota)[tree] == leaf]
            if sum(map(milli, mine)) >= nominal["cpu"]:
                return True
        return False

    def fits(self, work: Workload) -> bool:
        used = sum(map(milli, self.running.values()))
        return used + milli(work) <= CPU and self.model.fits(
            Designation(work.quota), work.sets[0].request
        )

    def settle(self) -> list[str]:
        """The dispatches, in order."""
        gone: list[str] = []
        while True:
            ready = sorted(
                (w for w in self.waiting.values() if self.fits(w)),
                key=lambda w: (self.has_share(w), -w.priority, self.share(w), w.created, w.uid),
            )
            if not ready:
                return gone
            work = ready[0]
            del self.waiting[work.uid]
            self.running[work.uid] = work
            self.model.charges[work.uid] = (Designation(work.quota), work.sets[0].request)
            gone.append(work.name)

    def leaves(self, uid: str) -> None:
        self.running.pop(uid, None)
        self.waiting.pop(uid, None)
        self.model.charges.pop(uid, None)


_TEAMS = st.sampled_from(["red", "blue", "green"])
_CROWD = st.lists(st.tuples(_TEAMS, st.just(200), st.just(0)), min_size=6, max_size=10)
_LATER = st.tuples(_TEAMS, st.sampled_from([200, 200, 400]), st.sampled_from([0, 1, 1]))
_ROUNDS = st.lists(
    st.tuples(st.lists(_LATER, max_size=2), st.lists(st.integers(0, 4), max_size=4)),
    min_size=1,
    max_size=5,
)
"""Arrivals, and which of those that run end: first a crowd of one shape, most of which wait."""


@profile(max_examples=budget.examples(300), deadline=None)
@given(
    rule=st.tuples(st.sampled_from([*Fairness]), st.booleans()),
    quota=st.sampled_from([None, 600, 800]),
    crowd=_CROWD,
    rounds=_ROUNDS,
    at_once=st.sampled_from([1, 2, 200]),
)
def test_all_go_in_the_order_of_the_reference(
    rule: tuple[Fairness, bool], quota: int | None, crowd: list, rounds: list, at_once: int
) -> None:
    fairness, reclaim = rule
    made = Bench(replace(PATIENT, fairness=fairness, reclaim=reclaim), nodes=[node(milli=CPU)])
    plain = Reference(fairness, Model(), reclaims=reclaim)
    if quota is not None:
        trees = teams(quota, red=quota // 2, blue=quota // 4, green=0)
        made.share(*trees)
        plain.model.subtrees = {one.uid: one for one in trees}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admit, "DISPATCHES_PER_PASS", at_once)
        patch.setattr(DeferredBorrowing, "waits", lambda *_: False)  # the order alone is shown
        for arrivals, removal in [(crowd, []), *rounds]:
            for number in removal:
                if number < len(plain.running):
                    uid = list(plain.running)[number]
                    made.delete(uid)
                    plain.leaves(uid)
            for team, cpu, priority in arrivals:
                made.now += 1000
                name = f"w{len(made.order) + len(plain.waiting):03}"
                more = {"priority": priority, "quota": ((GOLD, team),), "created": made.now}
                work = workload(name, cpu, namespace=team, **more)
                made.submit(work)
                plain.waiting[work.uid] = work
            before = len(made.order)
            expected = plain.settle()
            made.settle()
            assert made.order[before:] == expected
            made.dispatcher.cluster.admission.check()
