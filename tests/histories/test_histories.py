"""Random histories of running work, judged by what was stored."""

from __future__ import annotations

from collections import Counter

import pytest

from tests import budget
from tests.histories.__main__ import PLAYS_ALONE, played
from tests.histories.drawing import MOODS, TROUBLES, drawn
from tests.histories.objects import MAKERS
from tests.histories.world import World, play

SEEDS = range(10_000)
PLAYED = 1000 if budget.SOAK else 24


def _stored(world: World) -> list[tuple[float, str, str]]:
    every = [*world.chronicle.wrappers, *(r for rs in world.chronicle.objects.values() for r in rs)]
    return [(at_s, change.obj["kind"], change.key[1]) for at_s, change in every]


@pytest.mark.parametrize("seed", sorted(budget.rng("histories").sample(SEEDS, PLAYED)))
def test_no_attempt_ends_without_a_reason(seed: int) -> None:
    world, violations = played(seed)
    assert not violations, "\n".join([f"{PLAYS_ALONE} {seed}", *map(str, violations)])
    assert world is not None


@pytest.mark.parametrize("seed", sorted(budget.rng("whole").sample(SEEDS, PLAYED // 8)))
def test_nor_with_all_of_the_controller(seed: int) -> None:
    violations = played(seed, is_whole=True)[1]
    assert not violations, "\n".join([f"{PLAYS_ALONE} {seed} --whole", *map(str, violations)])


def test_a_seed_gives_the_same_history() -> None:
    seed = budget.rng("same history").choice(SEEDS)
    assert drawn(seed).told() == drawn(seed).told()
    assert _stored(play(drawn(seed))) == _stored(play(drawn(seed)))


def test_every_kind_trouble_and_mood_is_drawn() -> None:
    kinds: Counter[str] = Counter()
    moods: Counter[str] = Counter()
    acts: Counter[str] = Counter()
    for seed in SEEDS[:400]:
        history = drawn(seed)
        kinds.update(item.kind for one in history.submitted for item in one.items)
        moods.update(name for mood in history.moods.values() for name in mood)
        acts.update(act.what for act in history.acts)
        acts.update(["lag"] if history.lags_s else [])
        acts.update(f"off {term['topologyKey']}" for term in history.apart.values())
        acts.update(["off others"] if history.keeps_off_others else [])
    assert len(kinds) == len(set(MAKERS)), kinds
    assert set(moods) >= MOODS, moods
    assert len(acts) >= len(set(TROUBLES)) + len(("a node", "a zone", "others")), acts
    assert min((kinds + moods + acts).values()) >= 5
