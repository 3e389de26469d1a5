"""Labels and owner references that lie: an AppWrapper believes none of them (protocol P7, C3)."""

from __future__ import annotations

from random import Random

import pytest

from mcad.core.events import AppWrapperSeen, ChildGone, ChildSeen, Event, PodGone, PodSeen
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import (
    Child,
    Dialect,
    DispatchPhase,
    DispatchRecord,
    ObjectRef,
    Persisted,
    Pod,
    PodPhase,
    Wanted,
)
from mcad.core.state.records import replace
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, cpu, node, workload

OTHER = "elsewhere"
IMPATIENT = FaultTolerance(failure_grace=SECOND, warmup_grace=5 * SECOND, retry_limit=0)


def running(name: str = "a", **changes: object) -> Bench:
    bench = Bench(nodes=[node()])
    bench.start(workload(name, 100, dialect=Dialect.V1BETA2, tolerance=IMPATIENT, **changes))
    bench.bind(f"{name}-0")
    bench.advance(1)
    return bench


def forged_child(uid: str, name: str, **changes: object) -> Child:
    ref = ObjectRef("", "v1", "pods", "Pod", "default", name)
    return replace(Child(uid, ref, "uid-a", 1, 0, wants=(Wanted(1),)), **changes)


def forged_pod(uid: str, **changes: object) -> Pod:
    made = Pod(uid, "default", uid, "n1", PodPhase.FAILED, cpu(100, 1), workload="uid-a", attempt=1)
    return replace(made, **{"root": uid, "exit_codes": (1,), **changes})


def quiet(bench: Bench, *events: Event) -> None:
    """These change nothing about the AppWrapper."""
    before, status = dict(bench.writes), bench.status["uid-a"]
    for event in events:
        bench.feed(event)
    bench.advance(120)
    assert dict(bench.writes) == before
    assert bench.status["uid-a"] == status
    assert bench.entry("a").phase is Phase.RUNNING
    bench.dispatcher.cluster.admission.check()


@pytest.mark.parametrize("attempt", [0, 1, 2])
def test_a_copy_of_a_wrapped_object_is_left_alone_and_hurts_nothing(attempt: int) -> None:
    bench = running()
    child = forged_child("copy", "a-copy", attempt=attempt, met=frozenset({"failed"}))
    quiet(bench, ChildSeen(child), ChildSeen(child), PodSeen(forged_pod("copy", name="a-copy")))
    assert bench.writes["stray"] == 0


def test_pods_of_another_namespace_do_not_count() -> None:
    bench = running()
    item = next(iter(bench.things.values())).child.uid
    pods = (forged_pod("x", namespace=OTHER), forged_pod("y", namespace=OTHER, root=item))
    quiet(bench, *map(PodSeen, pods))


def test_pods_of_a_copy_do_not_count_whichever_is_seen_first() -> None:
    pod, copy = forged_pod("x", root="copy"), forged_child("copy", "a-copy")
    quiet(running(), ChildSeen(copy), PodSeen(pod))
    quiet(running(), PodSeen(pod), ChildSeen(copy))


def test_objects_of_another_namespace_do_not_count() -> None:
    bench = running()
    ref = ObjectRef("", "v1", "pods", "Pod", OTHER, "a-0")
    quiet(bench, ChildSeen(forged_child("x", "a-0", ref=ref, met=frozenset({"failed"}))))


def test_what_was_seen_before_the_appwrapper_is_judged_when_it_comes() -> None:
    bench = Bench(nodes=[node()])
    bench.feed(ChildSeen(forged_child("copy", "a-copy")))
    bench.feed(PodSeen(forged_pod("x", namespace=OTHER)))
    bench.start(workload("a", 100, dialect=Dialect.V1BETA2, tolerance=IMPATIENT))
    bench.bind("a-0")
    bench.advance(1)
    quiet(bench)
    bench.feed(ChildGone("copy"))
    bench.feed(PodGone("x"))
    assert not bench.dispatcher.cluster.objects.disowned


def test_pods_below_an_object_that_no_watch_has_told_of_do_not_count() -> None:
    """Without our labels an object is in no watch: only its link of the chain was asked for."""
    quiet(running(), PodSeen(forged_pod("x", root="unlabelled")))


def test_pods_that_are_seen_before_their_item_count_from_then_on() -> None:
    bench = running()
    [thing] = bench.things.values()
    bench.feed(PodGone(thing.child.uid))
    bench.feed(ChildGone(thing.child.uid))
    other = replace(thing.child, uid="again")
    bench.feed(PodSeen(forged_pod("again", name="a-0", phase=PodPhase.RUNNING, exit_codes=())))
    pods = bench.dispatcher.cluster.capacity.pods
    assert pods.owner_of("again") == ""
    bench.feed(ChildSeen(other))
    assert pods.owner_of("again") == "uid-a"
    bench.feed(PodGone("again"))
    assert not bench.dispatcher.cluster.objects.unproven


def test_an_object_at_the_name_of_an_earlier_item_is_none_of_the_present_attempt() -> None:
    """The spec was edited between two attempts, and its items have other names now."""
    bench = running()
    bench.edit("uid-a", suspended=True)
    bench.advance(60)
    now = workload("b", 100, dialect=Dialect.V1BETA2, tolerance=IMPATIENT)
    bench.edit("uid-a", items=now.items, sets=now.sets, payload="other", suspended=False)
    bench.settle()
    bench.bind("b-0")
    bench.advance(60)
    entry = bench.entry("a")
    assert (entry.phase, entry.attempt) == (Phase.RUNNING, 2)
    lie = forged_child("lie", "a-0", attempt=2, met=frozenset({"failed"}))
    before = bench.status["uid-a"]
    bench.feed(ChildSeen(lie))
    bench.feed(ChildGone("lie"))
    bench.advance(120)
    assert bench.status["uid-a"] == before
    assert entry.phase is Phase.RUNNING


def test_an_item_that_was_disowned_comes_back_with_its_pods() -> None:
    """Another leader's attempt, under names that an edit gave: its record is the last to come."""
    bench = running()
    cluster = bench.dispatcher.cluster
    bench.edit("uid-a", suspended=True)
    bench.advance(60)
    entry = bench.entry("a")
    assert entry.phase is Phase.WAITING
    ref = ObjectRef("", "v1", "pods", "Pod", "default", "new-0")
    child = forged_child("made", "new-0", attempt=2)
    bench.feed(ChildSeen(child))
    bench.feed(PodSeen(forged_pod("made", name="new-0", phase=PodPhase.RUNNING, attempt=2)))
    assert "made" in cluster.objects.disowned
    assert cluster.capacity.pods.owner_of("made") == ""
    record = DispatchRecord(2, 9, DispatchPhase.CREATING, "", (ref,), cluster.now)
    saved = Persisted("Pending", entry.first_seen, dispatch=record)
    bench.feed(AppWrapperSeen(replace(bench.works["uid-a"], suspended=False, persisted=saved)))
    assert not cluster.objects.disowned
    assert cluster.capacity.pods.owner_of("made") == "uid-a"
    assert not cluster.objects.unproven


def test_an_attempt_label_that_was_edited_by_hand_costs_no_object() -> None:
    bench = running()
    [(ref, thing)] = bench.things.items()
    thing.child = replace(thing.child, attempt=7)
    bench.feed(ChildSeen(thing.child))
    bench.advance(60)
    assert ref in bench.things
    assert bench.state("a") == "Running"


def test_a_teardown_waits_for_no_copy() -> None:
    bench = running()
    bench.feed(ChildSeen(forged_child("copy", "a-copy")))
    bench.edit("uid-a", suspended=True)
    bench.advance(30)
    assert bench.entry("a").phase is Phase.WAITING


@pytest.mark.parametrize("seed", range(40))
def test_no_forged_object_changes_what_becomes_of_others(seed: int) -> None:
    """The same life with and without them: the same writes, phases and order."""
    lives = [_life(seed, forged=forged) for forged in (False, True)]
    assert lives[0] == lives[1]


def _life(seed: int, *, forged: bool) -> tuple[object, ...]:
    rng, lies = Random(seed), Random(seed)
    bench = Bench(nodes=[node("n1", 2000)])
    for number in range(4):
        dialect = rng.choice(list(Dialect))
        bench.submit(workload("abcd"[number], 100, dialect=dialect, tolerance=IMPATIENT))
    for _ in range(30):
        bench.settle()
        names = [ref.name for ref, one in bench.things.items() if not one.child.terminating]
        if names:
            phase = rng.choice((PodPhase.RUNNING, PodPhase.RUNNING, PodPhase.SUCCEEDED))
            bench.change(rng.choice(sorted(names)), node="n1", phase=phase)
        if forged:
            for event in _lies(bench, lies):
                bench.feed(event)
        bench.advance(rng.choice((1, 5, 20)))
    phases = {uid: one.phase for uid, one in bench.dispatcher.cluster.entries.items()}
    return dict(bench.writes), phases, bench.order


def _lies(bench: Bench, lies: Random) -> list[Event]:
    uid, where = lies.choice(sorted(bench.works)), lies.choice(("default", OTHER))
    name = lies.choice(("a-0", "copy", "b-0")) if where == OTHER else "copy"
    known = [one.child.uid for one in bench.things.values()]
    made = f"lie-{lies.random()}"
    child = forged_child(
        made,
        name,
        ref=ObjectRef("", "v1", "pods", "Pod", where, name),
        workload=uid,
        attempt=lies.randint(0, 3),
        met=frozenset({lies.choice(("failed", "succeeded"))}),
    )
    root = lies.choice((made, *known)) if where == OTHER else made
    phase = lies.choice((PodPhase.FAILED, PodPhase.SUCCEEDED))
    pod = forged_pod(made, workload=uid, namespace=where, name=name, root=root, phase=phase)
    events = [ChildSeen(child), PodSeen(pod)]
    lies.shuffle(events)
    return events
