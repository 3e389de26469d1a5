"""Names of wrapped objects that two AppWrappers want: the second waits, however close they come."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.core.commands import CreateItem, InspectItem
from mcad.core.events import AppWrapperGone, ChildGone, ChildSeen, Decide, PodGone
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Child, ObjectRef, Workload
from mcad.core.state.objects import Names
from tests.core.bench import Bench, Thing, node, workload


def _twins(milli: tuple[int, ...] = (1,)) -> tuple[Workload, Workload]:
    """Two AppWrappers whose items have the same names."""
    first = workload("a", *milli)
    return first, replace(first, uid="uid-b", name="b")


def test_of_two_that_are_submitted_together_the_second_waits() -> None:
    bench = Bench(nodes=[node()]).start(*_twins())
    assert (bench.state("a"), bench.state("b")) == ("Running", "Pending")
    assert bench.condition("b", "Backoff") == (
        True,
        "WaitingForName",
        "Pod default/a-0 belongs to AppWrapper default/a; this one waits until it is gone.",
    )
    assert bench.entry("b").attempt == 0
    bench.delete("uid-a")
    bench.settle()
    assert bench.state("b") == "Running"


def test_no_two_intents_of_one_pass_want_the_same_name() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(*_twins((1, 1, 1)), replace(workload("c", 1), items=workload("a", 1).items))
    bench.decide()
    assert [bench.entry(name).phase for name in "abc"] == [
        Phase.INTENDING,
        Phase.WAITING,
        Phase.WAITING,
    ]


@pytest.mark.parametrize("steps", range(12))
def test_the_second_waits_at_whatever_moment_of_the_first_it_comes(steps: int) -> None:
    """From the intent to the end of the first one, which is suspended; watches tell late."""
    first, second = _twins((1, 1))
    bench = Bench(nodes=[node()])
    bench.submit(first)
    bench.decide()
    for number in range(steps):
        if not bench.pending and number > 4:
            bench.edit("uid-a", suspended=True)
            bench.decide()
        if bench.pending:
            bench.execute(bench.pending.pop(0))
    bench.start(second)
    bench.advance(30)
    assert bench.entry("b").attempt == (1 if bench.works["uid-a"].suspended else 0)
    assert "Failed" not in (bench.state("a"), bench.state("b"))
    bench.delete("uid-a")
    bench.settle()
    assert bench.state("b") == "Running"


def test_a_name_is_taken_before_the_watch_tells_so() -> None:
    """The create is answered and confirmed, and the watch of the kind lags behind."""
    bench = Bench(nodes=[node()])
    first, second = _twins()
    bench.start(first)
    cluster = bench.dispatcher.cluster
    cluster.objects.names.vanish(cluster.objects.by_uid["obj-1"])
    cluster.objects.drop("obj-1")
    bench.start(second)
    assert bench.condition("b", "Backoff")[1] == "WaitingForName"


def test_a_name_that_was_freed_may_be_used_while_its_owner_runs() -> None:
    bench = Bench(nodes=[node()])
    first, second = _twins((1, 1))
    bench.start(first)
    bench.start(replace(second, items=second.items[:1], sets=second.sets[:1]))
    assert bench.entry("b").phase is Phase.WAITING
    bench.remove(first.items[0].ref)
    bench.settle()
    assert bench.state("b") == "Running"


def test_one_that_meets_the_object_of_another_in_its_creation_waits_too() -> None:
    """Nothing told of it: the object is the remainder of an attempt without a record."""
    bench = Bench(nodes=[node()])
    first, second = _twins((1, 1))
    bench.start(replace(first, items=first.items[:1], sets=first.sets[:1]))
    hidden = first.items[1].ref
    bench.things[hidden] = Thing(Child("hidden", hidden, "uid-a", 1, 0), ())
    bench.start(replace(second, items=second.items[1:], sets=workload("b", 1).sets))
    assert bench.entry("b").phase is Phase.WAITING
    assert bench.condition("b", "Backoff")[1:] == (
        "WaitingForName",
        "Pod default/a-1 belongs to AppWrapper default/a; it waits until that is gone.",
    )
    bench.advance(300)
    assert bench.entry("b").attempt < 8  # it asks ever more slowly
    del bench.things[hidden]
    bench.advance(301)
    assert bench.state("b") == "Running"


def test_a_strangers_object_fails_it_all_the_same() -> None:
    bench = Bench(nodes=[node()])
    ref = workload("a", 1).items[0].ref
    bench.things[ref] = Thing(Child("x", ref, "uid-unknown", 1, 0), ())
    bench.works["uid-unknown"] = workload("z")  # exists by live GET
    bench.submit(workload("a", 1))
    bench.decide()
    while bench.pending and not isinstance(bench.pending[0], InspectItem):
        bench.execute(bench.pending.pop(0))
    bench.settle()
    assert bench.state("a") == "Failed"


def test_after_a_restart_what_a_predecessor_began_keeps_its_names() -> None:
    bench = Bench(nodes=[node()])
    first, second = _twins()
    bench.begin(first)  # the intent; the create is under way
    assert isinstance(bench.pending[0], CreateItem)
    bench.works[second.uid] = second
    bench.restart()
    assert (bench.state("a"), bench.state("b")) == ("Running", "Pending")
    assert bench.entry("b").attempt == 0


def test_a_deleted_one_keeps_its_names_until_nothing_of_it_can_come_any_more() -> None:
    bench = Bench(nodes=[node()])
    first, second = _twins()
    bench.begin(first)
    create = bench.pending.pop(0)
    del bench.works["uid-a"]
    bench.feed(AppWrapperGone("uid-a"))
    bench.start(second)
    assert bench.entry("b").attempt == 0
    bench.works["uid-a"] = first
    created = bench.apply(create)
    for thing in bench.things.values():
        thing.finalizers = ("example.com/keep",)
    del bench.works["uid-a"]
    bench.feed(created)
    bench.settle()
    assert bench.entry("b").attempt == 0
    bench.feed(ChildGone("obj-1"))
    bench.feed(PodGone("obj-1"))
    bench.things.clear()
    bench.settle()
    assert bench.state("b") == "Running"


def test_a_name_is_forgotten_with_the_last_appwrapper_that_waits_for_it() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(*_twins())
    for _ in range(50):
        bench.settle()
        bench.edit("uid-b", suspended=True)
        bench.edit("uid-b", suspended=False)
    bench.delete("uid-b")
    bench.settle()
    bench.delete("uid-a")
    bench.feed(Decide())
    names, waiting = bench.dispatcher.cluster.objects.names, bench.dispatcher.cluster.waiting
    assert (waiting._for_name, names._taken, names._observed) == ({}, {}, {})


def test_an_object_of_its_own_that_is_being_deleted_is_waited_for() -> None:
    """It was told late, when its attempt was over: a create now would meet it."""
    bench = Bench(nodes=[node()]).start(workload("a", 1))
    bench.edit("uid-a", suspended=True)
    bench.advance(10)
    ref = bench.works["uid-a"].items[0].ref
    bench.feed(ChildSeen(Child("late", ref, "uid-a", 1, 0, terminating=True)))
    bench.edit("uid-a", suspended=False)
    bench.advance(100)
    assert bench.entry("a").attempt == 1
    assert bench.condition("a", "Backoff") == (
        True,
        "WaitingForName",
        "Pod default/a-0 is being deleted; this AppWrapper waits until it is gone.",
    )
    bench.feed(ChildGone("late"))
    bench.advance(10)
    assert bench.state("a") == "Running"


def test_the_end_of_an_object_does_not_free_the_name_of_its_successor() -> None:
    """Watches of one kind tell in order, lists of two namespaces or versions need not."""
    ref = ObjectRef("", "v1", "pods", "Pod", "default", "x")
    older, newer = Child("older", ref, "uid-a", 1, 0), Child("newer", ref, "uid-b", 1, 0)
    names = Names()
    names.observe(older)
    names.observe(newer)
    names.vanish(older)
    assert names.observed(ref) == "newer"


def test_a_name_is_kept_by_the_first_that_took_it() -> None:
    ref = ObjectRef("", "v1", "pods", "Pod", "default", "x")
    names = Names()
    names.take("first", [ref])
    names.take("second", [ref])
    names.give_back("second", [ref])
    assert names.taken_by(ref) == "first"
    names.give_back("first", [ref])
    assert names.taken_by(ref) is None


def test_the_group_is_part_of_the_api_version() -> None:
    assert ObjectRef("apps", "v1", "deployments", "Deployment", "a", "b").api_version == "apps/v1"
    assert ObjectRef("", "v1", "pods", "Pod", "a", "b").api_version == "v1"
