"""``why`` says that an AppWrapper evicts others only where a dispatcher at rest does that next, and
lets it in when they are gone."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from mcad.core.answers.changes import End
from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.why import why
from mcad.core.dispatcher import Dispatcher
from mcad.core.state.lifecycle import Phase
from mcad.core.state.records import replace
from tests import budget
from tests.core.answers.worlds import at_rest, started, world

EXAMPLES = int(os.environ.get("MCAD_EXAMPLES", "80"))
PARTS = [range(n, min(n + 20, EXAMPLES)) for n in range(0, EXAMPLES, 20)]


def victims_of(real: Dispatcher, uid: str) -> tuple[str, ...]:
    entries = real.cluster.entries.values()
    return tuple(sorted(e.uid for e in entries if e.dispatch and e.dispatch.preemptor == uid))


def checked(seed: int) -> Counter[str]:
    facts = world(Random(seed))
    facts = replace(facts, settings=replace(facts.settings, preemption=True, min_run_time=0))
    run, real, cases = DryRun(facts), at_rest(facts), Counter[str]()
    waiting = [e.uid for e in run.cluster.entries.values() if e.phase is Phase.WAITING]
    for uid in waiting:
        evicts = tuple(sorted(why(run, uid).evicts))
        if evicts:
            cases["told"] += 1
            assert victims_of(real, uid) == evicts, f"{seed}: {uid}"
            assert started(facts, uid, End(evicts)), f"{seed}: {uid} is not let in"
        cases["evicted"] += bool(victims_of(real, uid))
    assert bool(cases["told"]) == bool(cases["evicted"]), seed
    return cases


@pytest.mark.parametrize("part", budget.slow_but_first(PARTS), ids=str)
def test_the_next_preemptor_is_known_and_no_other_appwrapper_is_said_to_evict(part: range) -> None:
    cases: Counter[str] = Counter()
    for seed in part:
        cases.update(checked(seed))
    assert cases["told"], "no example evicts"
