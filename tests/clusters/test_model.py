"""Each rule of docs/inside/clusters.md is needed, and all of them together suffice."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from tests import budget
from tests.clusters.accept import accepts
from tests.clusters.cases import DRAWN, ENDLESS, GAPS, HARMS, LARGE, SMALL, WASTES, Case, wasted
from tests.clusters.explore import Found, endless, history, search
from tests.clusters.model import ALL, TEXTS, Model, Rules, State, Step, World, harm
from tests.clusters.observe import observed
from tests.documents.clusters import PAGE

DEPTH = 18 if budget.SOAK else 8
HISTORIES = 20_000 if budget.SOAK else 100
QUICK = [case for case in HARMS if case.is_quick or budget.SOAK]


def played(model: Model, seed: object, steps: int = 100) -> list[tuple[State, Step]]:
    """A history up to its end, or its first harm."""
    found = []
    for before, step in history(model, Random(str(seed)), steps):
        found.append((before, step))
        if harm(before, step):
            break
    return found


def readable(trace: tuple[Step, ...]) -> str:
    return "\n".join(map(str, trace))


@cache
def shortest(case: Case) -> Found:
    return search(Model(case.rules, case.world))


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_without_a_rule_there_is_harm(case: Case) -> None:
    found = shortest(case)

    assert found.harm
    assert len(found.trace) == case.steps, readable(found.trace)


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_the_shortest_harm_is_not_accepted(case: Case) -> None:
    trace = shortest(case).trace
    states = [Model(case.rules, case.world).start(), *(step.after for step in trace)]

    verdict = accepts(observed(zip(states, trace, strict=False)))

    assert verdict.rule == case.refused_by, f"{verdict}\n{readable(trace)}"


@pytest.mark.parametrize("case", HARMS, ids=str)
def test_no_drawn_history_with_harm_is_accepted(case: Case) -> None:
    """Rules that are off, in the world of their shortest harm and in one with every accident."""
    worlds = (case.world, DRAWN["two hubs" if case.world.clones else "everything"])
    for world in worlds:
        for seed in range(30):
            model = Model(case.rules, world)
            steps = []
            for before, step in history(model, Random(seed), 100, calm=0, must_end=False):
                steps.append((before, step))
                if harm(before, step):
                    assert not accepts(observed(steps)).is_allowed, readable(
                        tuple(step for _, step in steps)
                    )
                    break


def test_a_history_finds_the_harm_of_a_grant_by_name() -> None:
    """The shortest one takes ten seconds to find."""
    model = Model(ALL._replace(m3_uid=False), World(leaders=2))
    ends = (played(model, seed, 200)[-1] for seed in range(200))

    assert any(harm(*one) for one in ends)


TWO_HUBS = """
a backup of the hub is made
a second hub is made from the first one, and both go on
leader 1 reads the hub
leader 1 creates the copy u1 in A
leader 2 reads the hub
leader 2 reads A
leader 2 records u1 in A
leader 2 takes the Lease in A
leader 2 reads the hub
leader 2 reads B
leader 1 creates the copy u2 in B
leader 1 reads B
leader 1 records u2 in B
leader 1 reads the hub
leader 1 grants u2 in B
B starts u2
leader 2 grants u1 in A
A starts u1
""".strip().splitlines()


def test_two_hubs_with_one_lease_each_run_two_copies() -> None:
    """A Lease for each member alone does not suffice: M11 asks for all of them."""
    world = World(leaders=2, clones=True)

    done = follow(Model(ALL._replace(m11_every_lease=False), world), TWO_HUBS)
    refused = follow(Model(ALL, world), TWO_HUBS)

    assert harm(*done[-1]) == "two are alive"
    assert len(refused) == TWO_HUBS.index("leader 2 grants u1 in A")


def follow(model: Model, texts: list[str]) -> list[tuple[State, Step]]:
    """Take these steps, until one is not possible."""
    state, taken = model.start(), []
    for text in texts:
        step = next((one for one in model.steps(state) if str(one) == text), None)
        if step is None:
            break
        taken.append((state, step))
        state = step.after
    return taken


@pytest.mark.parametrize("case", WASTES, ids=str)
def test_without_a_rule_running_attempts_are_deleted_for_nothing(case: Case) -> None:
    assert wasted(case.rules, case.world) > 0
    assert wasted(ALL, case.world) == 0


@pytest.mark.slow
@pytest.mark.parametrize("case", WASTES, ids=str)
def test_rules_that_save_work_prevent_no_harm(case: Case) -> None:
    world = case.world._replace(leaders=1)

    found = search(Model(case.rules, world))

    assert found.is_complete
    assert not found.harm


@pytest.mark.parametrize("case", ENDLESS, ids=str)
def test_without_a_rule_there_is_no_ending(case: Case) -> None:
    assert endless(Model(case.rules, case.world)).without > 0


BY_SIZE = [
    pytest.param(name, marks=[pytest.mark.slow] * (number > 1)) for number, name in enumerate(SMALL)
]


@pytest.mark.parametrize("name", BY_SIZE)
def test_with_all_rules_no_state_has_harm_and_each_has_an_ending(name: str) -> None:
    model = Model(ALL, SMALL[name])

    found, ends = search(model), endless(model)

    assert found.is_complete
    assert not found.harm, readable(found.trace)
    assert ends.states == found.states > 3000
    assert not ends.without, readable(ends.trace)
    assert (ends.waiting > 0) == SMALL[name].dies


@pytest.mark.parametrize("name", LARGE)
def test_with_all_rules_late_requests_do_no_harm(name: str) -> None:
    found = search(Model(ALL, LARGE[name]), depth=DEPTH)

    assert found.depth == DEPTH
    assert not found.harm, readable(found.trace)


@pytest.mark.parametrize("name", DRAWN)
def test_with_all_rules_drawn_histories_end_without_harm_and_are_accepted(name: str) -> None:
    world = DRAWN[name]
    for number in range(HISTORIES):
        steps = played(Model(ALL, world), f"{budget.SEED} {name} {number}")
        why = f"MCAD_SEED={budget.SEED}, history {number}\n{readable(tuple(s for _, s in steps))}"
        assert not harm(*steps[-1]), why
        verdict = accepts(observed(steps), is_over=not world.clones)
        assert verdict.is_allowed, f"{verdict}\n{why}"


@pytest.mark.parametrize("name", GAPS)
def test_what_the_rules_do_not_cover(name: str) -> None:
    """If this fails, the rules cover more than the page says."""
    assert search(Model(ALL, GAPS[name])).harm == "two are alive"


def test_the_page_has_every_rule_and_every_rule_has_a_case() -> None:
    page = PAGE.read_text()
    numbers = {name.partition("_")[0].upper() for name in Rules._fields}

    assert numbers == {f"M{number}" for number in range(1, 13)}
    assert all(f"**{number} " in page for number in numbers)
    assert set(TEXTS) == set(Rules._fields)
    assert {name for case in (*HARMS, *WASTES, *ENDLESS) for name in case.off} == set(TEXTS)
