"""An answer about an AppWrapper does not depend on those that wait behind it."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TypeGuard

import pytest

from mcad.core.answers.behind import is_behind
from mcad.core.answers.dry_run import DryRun, Facts
from mcad.core.answers.why import why
from mcad.core.events import AppWrapperSeen, Event, NodeSeen, QuotaSeen
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import DispatchPhase, DispatchRecord, Persisted
from mcad.core.state.reasons import State
from mcad.core.state.records import replace
from mcad.core.state.settings import Fairness
from mcad.core.state.units import SECOND
from mcad.journal.restart import present
from tests import budget
from tests.core.answers.worlds import at_rest, everyone, gang, world
from tests.core.bench import PATIENT, node
from tests.core.builders import START
from tests.core.quotas import child, subtree


def shortened(facts: Facts, uid: str) -> Facts:
    """The facts without the AppWrappers behind this one, as the controller takes them."""
    cluster = at_rest(facts).cluster
    return replace(facts, events=tuple(present(cluster, is_behind(cluster, uid, facts.now))))


def compared(seed: int) -> Counter[str]:
    """Ask about every AppWrapper of a random cluster, with the others behind it and without."""
    figures = Counter[str]()
    facts = world(Random(seed), evicts=seed % 4 == 3)
    dispatcher = at_rest(facts)
    whole = replace(facts, events=tuple(present(dispatcher.cluster)))
    for uid, entry in dispatcher.cluster.entries.items():
        if entry.phase is not Phase.WAITING:
            continue
        less = shortened(facts, uid)
        figures["asked"] += 1
        figures["left out"] += len(whole.events) - len(less.events)
        figures["all left"] += len(whole.events) == len(less.events)
        _equal(whole, less, uid)
    return figures


def _equal(whole: Facts, less: Facts, uid: str) -> None:
    expected, found = why(DryRun(whole), uid), why(DryRun(less), uid)
    changes = [one for one in found.remedies if one not in expected.remedies]
    for one in changes:
        # Where others start too, the answer may depend on which of equal nodes they take. The work
        # of one question goes farther with fewer AppWrappers, so there may be more answers.
        assert everyone(whole, one.change), one.text
    if expected.all_tried:
        assert found.all_tried
        assert replace(found, remedies=()) == replace(expected, remedies=()), uid
        kinds = {one.kind for one in found.remedies} ^ {one.kind for one in expected.remedies}
        assert not kinds or changes, kinds


@pytest.mark.parametrize("first", budget.slow_but_first(range(0, 100, 20)))
def test_random_clusters(first: int) -> None:
    figures: Counter[str] = Counter()
    for seed in range(first, first + 20):
        figures += compared(seed)
    assert figures["left out"] > 10


def chosen(uid: str, **changes: object) -> list[str]:
    """The AppWrappers that count as behind this one, of three on a full node."""
    waiting = [gang(name, [(1, 500)], created=START + n) for n, name in enumerate(("a", "b", "c"))]
    trees = [QuotaSeen(subtree("root", child("root", cpu=100)))] if changes.pop("trees", 0) else []
    seen = [AppWrapperSeen(one, listed=True) for one in waiting]
    events = (NodeSeen(node("n", 100)), *trees, *seen)
    cluster = at_rest(Facts(replace(PATIENT, **changes), events, START + SECOND)).cluster
    behind = is_behind(cluster, uid, START + SECOND)
    return [entry.workload.name for entry in cluster.entries.values() if behind(entry)]


def test_the_line_counts() -> None:
    assert chosen("uid-b") == ["c"]
    assert chosen("uid-a") == ["b", "c"]
    assert chosen("uid-unknown") == []


def test_one_that_was_dispatched_before_may_have_left_objects() -> None:
    waiting = [gang(name, [(1, 500)], created=START + n) for n, name in enumerate(("a", "b", "c"))]
    record = DispatchRecord(1, 1, DispatchPhase.RELEASED, waiting[1].payload, (), START)
    saved = Persisted(State.PENDING, START, dispatch=record)
    waiting[1] = replace(waiting[1], persisted=saved)
    seen = [AppWrapperSeen(one, listed=True) for one in waiting]
    facts = Facts(PATIENT, (NodeSeen(node("n", 100)), *seen), START + SECOND)

    left = [one.workload.name for one in shortened(facts, "uid-a").events if _is_appwrapper(one)]
    assert left == ["a", "b"]


def _is_appwrapper(event: Event) -> TypeGuard[AppWrapperSeen]:
    return isinstance(event, AppWrapperSeen)


def test_none_is_behind_where_a_dispatch_changes_the_order() -> None:
    assert chosen("uid-a", fairness=Fairness.NAMESPACE) == []
    assert chosen("uid-a", trees=True) == []
    assert chosen("uid-a", trees=True, reclaim=False) == ["b", "c"]
