"""Looks for harm: in every state of a model up to a bound, or in histories that are drawn.

States that differ only in names are one: which cluster is A, which leader is the first, and how
uids are numbered. Of each state only its hash is kept (64 bits: among ten million states the chance
that any two have the same hash is 1 to 370,000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from tests.clusters.model import (
    ACCIDENTS,
    Copy,
    Hub,
    Kind,
    Model,
    State,
    Step,
    harm,
    is_ending,
    is_waiting_for_fence,
    uids,
)

Count = Callable[[State, Step], None]
"""Looks at every step that a search takes, with the state before it."""


class Found(NamedTuple):
    """What a search has found."""

    states: int
    steps: int
    depth: int  # of the states that were reached last
    is_complete: bool  # there are no further states
    harm: str = ""
    trace: tuple[Step, ...] = ()


def search(
    model: Model, *, states: int = 10**9, depth: int = 10**9, count: Count | None = None
) -> Found:
    """Look at all states, nearest first, until one has harm: its trace is a shortest one.
    ``states`` and ``depth`` are bounds; a depth that was begun is finished."""
    start = canonical(model.start())
    parents = {hash(start): 0}
    level, reached, steps = [start], 0, 0
    while level and reached < depth and len(parents) < states:
        reached += 1
        following = []
        for state in level:
            for step in model.steps(state):
                steps += 1
                if count is not None:
                    count(state, step)
                after = canonical(step.after)
                key = hash(after)
                if key in parents:
                    continue
                parents[key] = hash(state)
                following.append(after)
                if why := harm(state, step):
                    trace = _trace(model, parents, key)
                    return Found(len(parents), steps, reached, False, why, trace)
        level = following
    return Found(len(parents), steps, reached, not level)


def _trace(model: Model, parents: dict[int, int], last: int) -> tuple[Step, ...]:
    """The steps to a state, with the names that things have from the beginning."""
    keys = [last]
    while parents[keys[-1]]:
        keys.append(parents[keys[-1]])
    state, trace = model.start(), []
    for key in reversed(keys[:-1]):
        step = next(one for one in model.steps(state) if hash(canonical(one.after)) == key)
        trace.append(step)
        state = step.after
    return tuple(trace)


class Endless(NamedTuple):
    """From how many states no ending can be reached without accidents."""

    states: int
    without: int
    waiting: int  # until a user fences the dead cluster
    trace: tuple[Step, ...] = ()  # to a nearest one


def endless(model: Model) -> Endless:
    """Look for states without an ending among all states of a small world."""
    start = canonical(model.start())
    numbers, states = {start: 0}, [start]
    parents, before = {hash(start): 0}, [[0]]
    for number, state in enumerate(states):  # grows as it is read
        for step in model.steps(state):
            after = canonical(step.after)
            if after not in numbers:
                numbers[after] = len(states)
                states.append(after)
                before.append([])
                parents[hash(after)] = hash(state)
            if step.kind not in ACCIDENTS:
                before[numbers[after]].append(number)
    ends = [is_ending(state) for state in states]
    todo = [number for number, does_end in enumerate(ends) if does_end]
    while todo:
        for number in before[todo.pop()]:
            if not ends[number]:
                ends[number] = True
                todo.append(number)
    bad = [state for state, does_end in zip(states, ends, strict=True) if not does_end]
    lost = [state for state in bad if not is_waiting_for_fence(state)]
    trace = _trace(model, parents, hash(lost[0])) if lost else ()
    return Endless(len(states), len(lost), len(bad) - len(lost), trace)


class NoEndingError(Exception):
    """A history goes on and on without any accident."""


WEIGHTS = {
    Kind.OFFER: 3.0,
    Kind.RECORD: 6.0,
    Kind.GRANT: 6.0,
    Kind.START: 6.0,
    Kind.END: 2.0,
    Kind.OUTCOME: 6.0,
    Kind.READ_HUB: 3.0,
    Kind.READ: 3.0,
    **dict.fromkeys(ACCIDENTS, 0.15),
    Kind.DELETE: 0.03,  # little happens after it
    Kind.DIE: 0.05,
}
"""How likely a step is in a history that is drawn; those that are not named have 1."""


def history(
    model: Model, random: Random, steps: int, *, calm: int = 5000, must_end: bool = True
) -> Iterator[tuple[State, Step]]:
    """Draw a history: ``steps`` with accidents, then without any until it has ended, at most
    ``calm`` of them. Each step with the state before it."""
    state = model.start()
    for number in range(steps + calm):
        is_calm = number >= steps
        if is_calm and is_ending(state):
            return
        possible = [one for one in model.steps(state) if not is_calm or _is_calm(one)]
        if not possible:
            break
        [step] = random.choices(possible, [WEIGHTS.get(one.kind, 1.0) for one in possible])
        yield state, step
        state = step.after
    # Two hubs that take the Leases from each other start nothing until a person removes one.
    if must_end and not model.world.clones and not is_ending(state):
        raise NoEndingError(state)


def _is_calm(step: Step) -> bool:
    return step.kind not in ACCIDENTS or step.kind is Kind.FENCE


def canonical(state: State) -> State:
    """The one state that represents all that differ from it in names only."""
    return min(_sorted(state), _sorted(_mirrored(state)))


def _sorted(state: State) -> State:
    first, leaders = _renumbered(state), state.leaders
    if len(leaders) == 1 or leaders[0].of != leaders[1].of:
        return first
    return min(first, _renumbered(state._replace(leaders=leaders[::-1])))


def _renumbered(state: State) -> State:
    """Uids in the order in which they are met."""
    numbers = {0: 0, -1: -1}
    for uid in uids(state):
        numbers.setdefault(uid, len(numbers) - 1)
    if all(old == new for old, new in numbers.items()):
        return state

    def hub(one: Hub) -> Hub:
        return one._replace(uid=numbers[one.uid])

    def copies(both: tuple[Copy, Copy]) -> tuple[Copy, Copy]:
        a, b = both
        return a._replace(uid=numbers[a.uid]), b._replace(uid=numbers[b.uid])

    return _renamed(state, hub, copies)


def _mirrored(state: State) -> State:
    """A is B, and B is A."""

    def hub(one: Hub) -> Hub:
        return one._replace(cluster=1 - one.cluster) if one.uid > 0 else one

    def copies(both: tuple[Copy, Copy]) -> tuple[Copy, Copy]:
        return both[::-1]

    return _renamed(state, hub, copies)._replace(
        remains=state.remains[::-1],
        is_dead=state.is_dead[::-1],
        is_fenced=state.is_fenced[::-1],
        leases=state.leases[::-1],
    )


def _renamed(
    state: State,
    hub: Callable[[Hub], Hub],
    copies: Callable[[tuple[Copy, Copy]], tuple[Copy, Copy]],
) -> State:
    return state._replace(
        hubs=tuple(map(hub, state.hubs)),
        copies=copies(state.copies),
        backup=hub(state.backup),
        leaders=tuple(
            one._replace(hub=hub(one.hub), copies=copies(one.copies)) for one in state.leaders
        ),
    )
