"""Edits of every shape at every moment (P8): what is dispatched is judged by its inventory alone.

v1beta1 promises no immutability, so items may be dropped, added, swapped and replaced while an
attempt of the old ones is under way.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mcad.core.commands import CreateItem, WriteStatus
from mcad.core.events import AppWrapperSeen
from mcad.core.state.answer import Answer
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import (
    Dialect,
    DispatchPhase,
    DispatchRecord,
    Item,
    ObjectRef,
    PodPhase,
    Problem,
    Workload,
)
from mcad.core.state.units import SECOND
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.bench import START, Bench, node, workload

Edit = Callable[[Workload], Workload]
PROBLEM = Problem(WaitingReason.INVALID, "spec", "is wrong; put it right")


def _keep(work: Workload, *numbers: int) -> Workload:
    """So many of the items, in this order."""
    items = tuple(work.items[number] for number in numbers)
    sets = tuple(
        replace(work.sets[old], item=new) for new, old in enumerate(numbers) if work.sets[old]
    )
    payload = "+".join(item.ref.name for item in items)
    return replace(work, items=items, sets=sets, payload=payload)


def _with(work: Workload, name: str, at: int, *, instead: bool = False) -> Workload:
    """Another item in this place, or instead of that one."""
    ref = ObjectRef("", "v1", "pods", "Pod", "default", name)
    item, one = Item(ref), replace(work.sets[0], item=at)
    items, sets = list(work.items), [replace(s, item=s.item + (s.item >= at)) for s in work.sets]
    items.insert(at, item)
    sets.insert(at, one)
    grown = replace(work, items=tuple(items), sets=tuple(sets), payload=f"{name}@{at}")
    if not instead:
        return grown
    return replace(
        _keep(grown, *(n for n in range(len(items)) if n != at + 1)), payload=f"{name}={at}"
    )


EDITS: dict[str, Edit] = {
    "drops the first": lambda work: _keep(work, 1, 2),
    "drops the last": lambda work: _keep(work, 0, 1),
    "drops all but the last": lambda work: _keep(work, 2),
    "adds one in front": lambda work: _with(work, "new", 0),
    "adds one at the end": lambda work: _with(work, "new", 3),
    "swaps": lambda work: _keep(work, 2, 1, 0),
    "replaces the first": lambda work: _with(work, "new", 0, instead=True),
    "replaces the last": lambda work: _with(work, "new", 2, instead=True),
    "changes a template": lambda work: replace(work, payload="changed"),
    "spoils it": lambda work: replace(work, items=(), sets=(), payload="", problem=PROBLEM),
    "changes the dialect": lambda work: replace(work, dialect=Dialect.V1BETA2, payload="2"),
    "suspends it": lambda work: replace(work, suspended=True),
    "raises its priority": lambda work: replace(work, priority=5),
    "nothing": lambda work: work,
}

ANSWERS: dict[str, Answer | None] = {
    "and is answered": None,
    "and is refused": Answer(422, "Invalid", "no"),
    "and is forbidden": Answer(403, "Forbidden", "quota"),
    "and is unknown": Answer(0, "RequestTimeout", "no answer"),
    "and is not found": Answer(404, "NotFound", "no such collection"),
    "and conflicts": Answer(409, "Conflict", "changed"),
}


def _edit(bench: Bench, edit: Edit) -> None:
    work = edit(bench.works["uid-a"])
    changes = {name: getattr(work, name) for name in ("items", "sets", "payload", "problem")}
    more = {name: getattr(work, name) for name in ("dialect", "suspended", "priority")}
    bench.edit("uid-a", **changes, **more)


def _aligned(entry: Entry) -> bool:
    """While an attempt stands, the items are those of its inventory, one by one."""
    if entry.dispatch is None or entry.phase in (Phase.WAITING, Phase.FAILED, Phase.GONE):
        return True
    refs = [ref.key for ref in entry.dispatch.inventory]
    return [item.ref.key for item in entry.workload.items] == refs


def _run(bench: Bench, steps: int) -> None:
    """So many commands are carried out, in their order; time passes where there is none."""
    for _ in range(steps):
        if bench.pending:
            bench.execute(bench.pending.pop(0))
        else:
            bench.now += 1_000_000
            bench.decide()
        assert all(_aligned(entry) for entry in bench.dispatcher.cluster.entries.values())


def _ends_well(bench: Bench) -> None:
    bench.advance(500)
    assert all(_aligned(entry) for entry in bench.dispatcher.cluster.entries.values())
    assert max(bench.created.values(), default=0) <= 1
    entry, work = bench.entry("a"), bench.works["uid-a"]
    assert entry.phase in (Phase.RUNNING, Phase.WAITING, Phase.FAILED)
    live = {thing.child.attempt for thing in bench.things.values()}
    if entry.phase is not Phase.RUNNING:
        assert bench.names() == []
        assert work.problem or work.suspended or entry.phase is Phase.FAILED
        assert bench.dispatcher.cluster.capacity.report.sums().reserved == ()
        return
    assert live == {entry.attempt}
    assert bench.names() == sorted(ref.name for ref in entry.dispatch.inventory)


@pytest.mark.parametrize("then", ANSWERS)
@pytest.mark.parametrize("shape", EDITS)
def test_an_edit_at_any_moment_of_a_dispatch(shape: str, then: str) -> None:
    """It comes after any number of commands, while the next one is under way."""
    for moment in range(9):
        bench = Bench(nodes=[node()])
        bench.submit(workload("a", 1, 1, 1))
        bench.decide()
        _run(bench, moment)
        answer = ANSWERS[then]
        under_way = bench.pending[0] if bench.pending else None
        _edit(bench, EDITS[shape])
        if answer is not None and isinstance(under_way, CreateItem | WriteStatus):
            bench.refuse(type(under_way).__name__, answer)
        _ends_well(bench)


@pytest.mark.parametrize("shape", EDITS)
def test_an_edit_and_a_crash_at_any_moment(shape: str) -> None:
    for moment in range(7):
        for later in range(9):
            bench = Bench(nodes=[node()])
            bench.submit(workload("a", 1, 1, 1))
            bench.decide()
            _run(bench, moment)
            _edit(bench, EDITS[shape])
            _run(bench, later)
            bench.crash()
            _ends_well(bench)


@pytest.mark.parametrize("first", EDITS)
def test_two_edits_in_a_row(first: str) -> None:
    original = workload("a", 1, 1, 1)
    for second in EDITS.values():
        for moment in (0, 2, 4, 8):
            bench = Bench(nodes=[node()])
            bench.submit(original)
            bench.decide()
            _run(bench, moment)
            _edit(bench, EDITS[first])
            _run(bench, 1)
            _edit(bench, lambda _, edit=second: edit(original))
            _ends_well(bench)


@pytest.mark.parametrize("shape", EDITS)
def test_an_edit_while_it_is_taken_back(shape: str) -> None:
    for moment in range(9):
        bench = Bench(nodes=[node()]).start(workload("a", 1, 1, 1))
        bench.edit("uid-a", suspended=True)
        bench.decide()
        _run(bench, moment)
        bench.edit("uid-a", suspended=False)
        _edit(bench, EDITS[shape])
        _ends_well(bench)


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("shape", [one for one in EDITS if one != "suspends it"])
def test_what_runs_is_completed_by_its_own_items_whatever_the_spec_says_now(
    shape: str, crash: bool
) -> None:
    """The last item has a word to say; the edit may drop it, and move its number."""
    bench = Bench(nodes=[node()])
    work = workload("a", 1, 1, 1)
    flagged = replace(work.items[2], completion=("succeeded",))
    bench.start(replace(work, items=(*work.items[:2], flagged)))
    for name in ("a-0", "a-1", "a-2"):
        bench.bind(name)
    _edit(bench, EDITS[shape])
    bench.settle()
    if crash:
        bench.restart()
    for name in ("a-0", "a-1"):
        bench.change(name, phase=PodPhase.SUCCEEDED)
        bench.settle()
        assert bench.state("a") in ("Running", "RunningHoldCompletion")
    bench.change("a-2", phase=PodPhase.SUCCEEDED)
    bench.settle()
    if not crash or shape in ("nothing", "swaps", "drops the first", "adds one in front"):
        assert bench.state("a") == "Completed"


def test_what_another_leader_began_is_judged_by_its_own_inventory() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 1, 1, 1, suspended=True))
    inventory = tuple(workload("b", 1, 1).items[number].ref for number in (0, 1))
    record = DispatchRecord(1, 9, DispatchPhase.CREATING, "other", inventory, START)
    bench.status["uid-a"] = replace(bench.status["uid-a"], dispatch=record)
    bench.edit("uid-a", suspended=False)
    bench.decide()
    assert all(_aligned(entry) for entry in bench.dispatcher.cluster.entries.values())
    _ends_well(bench)
    assert bench.names() == ["a-0", "a-1", "a-2"]


@pytest.mark.parametrize("number", range(5))
def test_what_is_edited_while_a_status_is_on_its_way_is_told_after_it(number: int) -> None:
    """Intent, confirmation, the two writes of a teardown, and what keeps it out of the line."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1))
    told = writes = 0
    while not (told and writes > number):
        bench.decide()
        if not bench.pending:
            bench.edit("uid-a", suspended=True)
            continue
        command = bench.pending.pop(0)
        answer = bench.apply(command)
        if isinstance(command, WriteStatus):
            if writes == number:
                bench.edit("uid-a", min_available=1)
                bench.decide()
                told = bench.works["uid-a"].generation
            writes += 1
        if answer is not None:
            bench.feed(answer)
    bench.settle()
    assert bench.status["uid-a"].observed_generation == told
    entry = bench.entry("a")
    assert (entry.writes.flying, entry.writes.dirty) == (None, False)


@pytest.mark.parametrize("dialect", Dialect)
def test_another_configuration_does_not_take_back_what_runs(dialect: Dialect) -> None:
    """What is added to pod templates is part of the payload: the same spec, read by a dispatcher of
    another configuration, has another one. Only what is dispatched from then on follows it."""
    bench = Bench(nodes=[node()])
    bench.start(*(replace(workload(name, 600), dialect=dialect) for name in ("a", "b")))
    bench.bind("a-0")
    bench.settle()
    runs, created = bench.entry("a").record, dict(bench.created)
    bench.works = {uid: replace(work, payload=f"{uid}+") for uid, work in bench.works.items()}
    bench.crash()
    bench.advance(500)
    record = replace(bench.entry("a").record, placed=runs.placed)  # not stored before the crash
    assert (bench.entry("a").phase, record) == (Phase.RUNNING, runs)
    assert (bench.names(), dict(bench.created)) == (["a-0"], created)
    bench.delete("uid-a")
    bench.settle()
    assert bench.entry("b").phase is Phase.RUNNING
    assert bench.entry("b").record.payload == "uid-b+"


# -- what its user is told -----------------------------------------------------------------------


def pending(bench: Bench) -> list[str]:
    return [one.note for one in bench.events if one.reason == "EditPending"]


def edited_while_it_runs() -> Bench:
    bench = Bench(nodes=[node()]).start(workload("a", 100))
    bench.bind("a-0")
    bench.advance(1)
    bench.edit("uid-a", payload="other")
    bench.advance(1)
    return bench


def test_an_edit_of_what_runs_is_told_once() -> None:
    bench = edited_while_it_runs()
    status, reason, message = bench.condition("a", "EditPending")
    assert (status, reason) == (True, "AwaitingNextAttempt")
    assert pending(bench) == [message]
    assert "suspend the AppWrapper and resume it" in message
    bench.edit("uid-a", payload="third")
    bench.crash()
    bench.advance(5)
    assert len(pending(bench)) == 1
    assert bench.condition("a", "EditPending")[0]


def test_an_edit_while_no_dispatcher_runs_is_told_after_the_start() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 100))
    bench.bind("a-0")
    bench.advance(1)
    bench.works["uid-a"] = replace(bench.works["uid-a"], payload="other")
    bench.crash()
    bench.advance(5)
    assert len(pending(bench)) == 1


def test_an_edit_that_is_taken_back_is_none() -> None:
    bench = edited_while_it_runs()
    record = bench.entry("a").record
    bench.edit("uid-a", payload=record.payload)
    bench.advance(1)
    assert bench.condition("a", "EditPending")[:2] == (False, "Applied")


def test_the_next_attempt_is_of_the_edited_spec_and_says_so() -> None:
    bench = edited_while_it_runs()
    bench.edit("uid-a", suspended=True)
    bench.advance(60)
    bench.edit("uid-a", suspended=False)
    bench.advance(60)
    assert bench.entry("a").record.payload == "other"
    assert bench.condition("a", "EditPending")[:2] == (False, "Applied")


def test_an_edit_of_what_waits_counts_at_once_and_is_not_told() -> None:
    bench = Bench(nodes=[node()]).start(workload("a", 5000))
    bench.edit("uid-a", payload="other")
    bench.advance(1)
    assert not pending(bench)


def test_a_status_that_is_final_says_that_no_edit_is_pending() -> None:
    """The write that ends the attempt is sent before that is over, so another one follows."""
    bench = Bench(nodes=[node()]).start(workload("a", 100, run_limit=50 * SECOND))
    bench.bind("a-0")
    bench.edit("uid-a", payload="other")
    bench.advance(200)
    assert bench.state("a") == "Failed"
    assert bench.condition("a", "EditPending") == (False, "Applied", "")


def test_a_kind_that_is_not_discovered_for_a_while_is_no_edit() -> None:
    """Discovery is partial after a restart, so the spec is not read as a whole."""
    bench = Bench(nodes=[node()])
    work = workload("a", 100)
    bench.start(work)
    bench.bind("a-0")
    unknown = Problem(WaitingReason.NOT_INSTALLED, "spec", "Job is not installed.")
    bench.works[work.uid] = replace(work, payload="", items=(), sets=(), problem=unknown)
    bench.crash()
    bench.advance(5)
    assert bench.condition("a", "EditPending") is None
    bench.works[work.uid] = work
    bench.edit(work.uid)
    bench.advance(5)
    assert bench.condition("a", "EditPending") is None
    assert bench.entry("a").phase is Phase.RUNNING


def test_what_is_final_shows_its_items_again_when_their_kind_is_discovered() -> None:
    bench = Bench(nodes=[node()])
    work = workload("a", 100, dialect=Dialect.V1BETA2, run_limit=50 * SECOND)
    bench.start(work)
    bench.bind("a-0")
    bench.advance(500)
    assert bench.state("a") == "Failed"
    unknown = Problem(WaitingReason.NOT_INSTALLED, "spec", "Job is not installed.")
    bench.edit(work.uid, payload="", items=(), sets=(), problem=unknown)
    bench.crash()
    bench.advance(5)
    assert bench.status[work.uid].items == ()
    bench.works[work.uid] = replace(work, generation=bench.works[work.uid].generation)
    bench.feed(AppWrapperSeen(bench.observed(work.uid)))
    bench.advance(5)
    assert [one.ref.name for one in bench.status[work.uid].items] == ["a-0"]
