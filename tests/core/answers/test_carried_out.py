"""Answers about random small clusters are true when they are carried out; nothing smaller is."""

from __future__ import annotations

from collections import Counter

import pytest

from mcad.core import invariants
from mcad.core.answers import ends
from mcad.core.answers import why as whys
from mcad.core.answers.changes import AddNodes, Edit, End, Leave, RaiseQuota, resized
from mcad.core.answers.dry_run import DryRun, Facts, OutOfWorkError
from mcad.core.answers.holding import Holding
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.answers.why import Why, why
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import (
    AppWrapperSeen,
    ChildSeen,
    Event,
    KindWatched,
    NodeSeen,
    PodSeen,
    QuotaSeen,
)
from mcad.core.state.model import Condition, Persisted, Workload
from mcad.core.state.reasons import ConditionType, State
from mcad.core.state.records import replace
from mcad.core.state.settings import Fit, Policy, Settings
from mcad.core.state.units import SECOND
from mcad.core.views.rows import Picture
from tests import budget
from tests.core.answers import carried_out
from tests.core.answers.worlds import gang, intended
from tests.core.answers.worlds import running as life
from tests.core.bench import PATIENT, node
from tests.core.builders import START, on, pod
from tests.core.quotas import child, subtree

NOW = START + 1000 * SECOND


def facts(*events: Event | Workload, settings: Settings = PATIENT) -> Facts:
    """These events; an AppWrapper waits."""
    seen = [
        AppWrapperSeen(one, listed=True) if isinstance(one, Workload) else one for one in events
    ]
    return Facts(settings, tuple(seen), NOW)


def runs(work: Workload, on: str, since: int = 1) -> list[Event]:
    """An AppWrapper all of whose pods run on one node."""
    places = [(one.item, on) for one in work.sets for _ in range(one.replicas)]
    return life(replace(work, created=START + since * SECOND), places)


def told(known: Facts, name: str) -> Why:
    return why(DryRun(known), f"uid-{name}")


def of(answer: Why, kind: Kind) -> Remedy:
    (found,) = [one for one in answer.remedies if one.kind is kind]
    return found


def texts(answer: Why) -> list[str]:
    return [one.text for one in answer.remedies]


# -- random clusters -----------------------------------------------------------------------------


@pytest.mark.parametrize("first", budget.slow_but_first(range(0, 24, 12)))
def test_each_answer_is_true_and_nothing_smaller_is(first: int) -> None:
    figures: Counter[str] = Counter()
    for seed in range(first, first + 12):
        figures += carried_out.check(seed)
    assert figures["ends"] > 5
    assert figures["nodes"] > 5
    assert figures["request"] > 2
    assert figures["depends on others"] + figures["not found"] <= 2
    assert not figures["turned on the copy"]


def test_victims_suffice_and_each_is_needed() -> None:
    figures: Counter[str] = Counter()
    for seed in range(8):
        figures += carried_out.check(seed, evicts=True)
    assert figures["evict"] > 5
    assert figures["depends on others"] + figures["not found"] <= 2
    assert not figures["turned on the copy"]


def test_a_set_of_ends_has_no_member_that_can_be_left_out() -> None:
    known = facts(
        NodeSeen(node("n1", 700)),
        NodeSeen(node("n2", 100)),
        *runs(gang("a", [(1, 300)]), "n1"),
        *runs(gang("b", [(1, 400)]), "n1"),
        *runs(gang("c", [(1, 100)]), "n2"),
        gang("w", [(1, 600)], created=START + 10 * SECOND),
    )
    run = DryRun(known)
    assert ends.needed(run, "uid-w", ("uid-c", "uid-a", "uid-b")) == ("uid-a", "uid-b")


def test_nodes_are_tried_from_the_fewest_that_can_suffice() -> None:
    """Four nodes have room for a pod each; a new one has room for the other three."""
    nodes = [node(f"n{n}", 1000) for n in range(4)]
    full = [runs(gang(f"r{n}", [(1, 760)]), f"n{n}") for n in range(4)]
    known = facts(
        *map(NodeSeen, nodes),
        *(event for each in full for event in each),
        gang("w", [(7, 130)], created=START + 10 * SECOND),
    )
    answer = told(known, "w")
    assert "No place for 3 pods" in answer.text
    assert of(answer, Kind.NODES).number == 1


def test_no_more_is_tried_than_is_allowed() -> None:
    known = facts(NodeSeen(node("n1", 1000)), gang("w", [(2, 900)]))
    run = DryRun(known)
    run.allow(1)
    assert not run.starts("uid-w")
    with pytest.raises(OutOfWorkError):
        run.starts("uid-w")


def test_a_question_that_runs_out_of_work_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    known = facts(NodeSeen(node("n1", 1000)), gang("w", [(2, 900)]))
    assert told(known, "w").all_tried
    monkeypatch.setattr(whys, "STEPS_MAX", 1500)
    answer = told(known, "w")
    assert not answer.all_tried
    assert [one.kind for one in answer.remedies] == [Kind.PODS]


def test_only_those_that_block_have_to_leave_the_line() -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        NodeSeen(node("n2", 1000, labels=(("zone", "b"),))),
        *runs(gang("a", [(1, 500)]), "n1"),
        *runs(gang("b", [(1, 500)]), "n2"),
        on_zone(gang("other", [(1, 700)], created=START + 10 * SECOND)),
        gang("head", [(2, 600)], created=START + 11 * SECOND),
        gang("small", [(1, 100)], created=START + 12 * SECOND),
        settings=replace(PATIENT, policy=Policy.STRICT_FIFO),
    )
    assert set(of(told(known, "small"), Kind.AHEAD).uids) == {"uid-other", "uid-head"}
    alone = replace(known, events=tuple(one for one in known.events if _uid(one) != "uid-other"))
    assert of(told(alone, "small"), Kind.AHEAD).uids == ("uid-head",)


def _uid(event: Event) -> str:
    return event.workload.uid if isinstance(event, AppWrapperSeen) else ""


def on_zone(work: Workload) -> Workload:
    """The same, on nodes of zone b only."""
    sets = [replace(one, constraint=on(zone="b")) for one in work.sets]
    return replace(work, sets=tuple(sets))


def test_what_is_held_and_by_whom() -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        NodeSeen(node("n2", 1000, unschedulable=True)),
        *runs(gang("c", [(1, 900)]), "n2"),
        PodSeen(pod("stranger", "n1", "100m")),
        *runs(gang("a", [(2, 200)]), "n1"),
        *runs(gang("b", [(1, 500)]), "n1"),
        gang("w", [(1, 300)], created=START + 10 * SECOND),
    )
    held = told(known, "w").holding
    assert (held.resource, held.others) == ("cpu", 100)
    assert held.by == (("default/b", 500), ("default/a", 400))


def test_where_only_sums_count_it_does_not_matter_on_which_node_it_is_held() -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        NodeSeen(node("n2", 1000, labels=(("zone", "b"),))),
        *runs(gang("a", [(1, 900)]), "n1"),
        on_zone(gang("w", [(1, 1200)])),
        settings=replace(PATIENT, fit=Fit.AGGREGATE),
    )
    assert told(known, "w").holding.by == (("default/a", 900),)


def test_what_is_held_of_a_share() -> None:
    known = facts(
        NodeSeen(node("n1", 4000)),
        QuotaSeen(subtree("root", child("root", cpu=500))),
        *runs(gang("a", [(1, 400)], quota=(("gold", "root"),)), "n1"),
        gang("w", [(1, 300)], quota=(("gold", "root"),)),
    )
    assert told(known, "w").holding.by == (("default/a", 400),)


def test_memory_that_suffices_is_not_made_less() -> None:
    """Only what is short is."""
    work = gang("w", [(1, 2000)])
    sets = [replace(one, request=(("cpu", 2000), ("memory", 2**30))) for one in work.sets]
    has = (("cpu", 1000), ("memory", 2**34), ("pods", 110))
    known = facts(NodeSeen(replace(node("n1"), allocatable=has)), replace(work, sets=tuple(sets)))
    assert texts(told(known, "w")) == ["cpu: 1 instead of 2 per pod."]
    sets = [replace(one, request=(("memory", 3 * 2**33),)) for one in work.sets]
    known = facts(NodeSeen(replace(node("n1"), allocatable=has)), replace(work, sets=tuple(sets)))
    assert texts(told(known, "w")) == ["memory: 16Gi instead of 24Gi per pod."]


# -- one kind each -------------------------------------------------------------------------------


def test_nodes_and_ends_and_fewer_pods() -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        *runs(gang("a", [(1, 400)]), "n1"),
        *runs(gang("b", [(1, 300)], priority=1), "n1"),
        gang("big", [(5, 200)], created=START + 10 * SECOND),
    )
    answer = told(known, "big")
    assert answer.reason == "cpu"
    assert "700m missing" in answer.text
    assert texts(answer) == [
        "If default/a, default/b end.",
        "1 more node like n1.",
        "1 pod instead of 5.",
        "cpu: 60m instead of 200m per pod.",
    ]
    assert of(answer, Kind.ENDS).uids == ("uid-a", "uid-b")
    assert of(answer, Kind.NODES).number == 1


def test_appwrappers_ahead_take_what_comes_free() -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        *runs(gang("a", [(1, 500)]), "n1"),
        *runs(gang("b", [(1, 500)]), "n1", since=2),
        gang("first", [(1, 600)], created=START + 10 * SECOND),
        gang("next", [(1, 500)], created=START + 11 * SECOND),
    )
    answer = told(known, "next")
    # With one node more the first one takes it; with one end alone the first does not fit.
    assert of(answer, Kind.NODES).number == 2
    assert of(answer, Kind.ENDS).uids == ("uid-b",)


def test_one_that_fits_starts_next() -> None:
    answer = told(facts(NodeSeen(node("n1", 1000)), gang("a", [(1, 100)])), "a")
    assert answer.starts
    assert answer.remedies == ()


def test_one_that_runs_has_no_answers() -> None:
    answer = told(facts(NodeSeen(node("n1", 1000)), *runs(gang("a", [(1, 100)]), "n1")), "a")
    assert answer == Why()


def test_the_head_of_the_line_is_overtaken_or_leaves() -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        *runs(gang("a", [(1, 500)]), "n1"),
        gang("head", [(1, 600)], priority=2, created=START + 10 * SECOND),
        gang("small", [(1, 100)], created=START + 11 * SECOND),
        settings=replace(PATIENT, policy=Policy.STRICT_FIFO),
    )
    answer = told(known, "small")
    assert answer.reason == "blocked"
    assert texts(answer) == [
        "If default/head, ahead of it, leaves the queue.",
        "A priority of 3 instead of 0.",
    ]


def test_a_priority_that_entitles_to_evict() -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        *runs(gang("low", [(1, 900)], priority=3), "n1"),
        gang("wants", [(1, 500)]),
        settings=replace(PATIENT, preemption=True, min_run_time=0),
    )
    found = of(told(known, "wants"), Kind.EVICT)
    assert (found.number, found.uids) == (4, ("uid-low",))


def test_one_that_may_evict_as_it_is_is_told_whom() -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        *runs(gang("low", [(1, 900)]), "n1"),
        gang("high", [(1, 500)], priority=1),
        settings=replace(PATIENT, preemption=True, min_run_time=0),
    )
    answer = told(known, "high")
    assert answer.evicts == ("uid-low",)
    assert not [one for one in answer.remedies if one.kind in (Kind.EVICT, Kind.PRIORITY)]


def test_quota_that_is_used_up_is_raised_at_every_node_that_refuses() -> None:
    known = facts(
        NodeSeen(node("n1", 4000)),
        QuotaSeen(subtree("root", child("root", cpu=1000))),
        QuotaSeen(subtree("teams", child("red", hard=True, cpu=600), parent="root")),
        *runs(gang("a", [(1, 500)], quota=(("gold", "red"),)), "n1"),
        gang("b", [(2, 300)], quota=(("gold", "red"),)),
    )
    answer = told(known, "b")
    assert answer.reason == "gold/red:cpu"
    assert of(answer, Kind.QUOTA).text == (
        'Quota tree "gold", node "red": cpu 1100m instead of 600m; '
        'Quota tree "gold", node "root": cpu 1100m instead of 1.'
    )
    assert of(answer, Kind.ENDS).uids == ("uid-a",)


def test_no_share_is_raised_for_one_behind() -> None:
    """While the root refuses it, the one behind takes what the leaf has more."""
    known = facts(
        NodeSeen(node("n1", 4000)),
        QuotaSeen(subtree("root", child("root", cpu=1500))),
        QuotaSeen(subtree("teams", child("red", hard=True, cpu=1000), parent="root")),
        *runs(gang("a", [(2, 500)], quota=(("gold", "red"),)), "n1"),
        gang("w", [(3, 200)], priority=1, quota=(("gold", "red"),)),
        gang("behind", [(1, 200)], quota=(("gold", "red"),)),
    )
    assert of(told(known, "w"), Kind.QUOTA).text == (
        'Quota tree "gold", node "red": cpu 1600m instead of 1; '
        'Quota tree "gold", node "root": cpu 1600m instead of 1500m.'
    )


def test_a_suspended_one_is_released() -> None:
    known = facts(NodeSeen(node("n1", 1000)), gang("a", [(1, 100)], suspended=True))
    assert [one.kind for one in told(known, "a").remedies] == [Kind.RELEASE]
    full = facts(
        NodeSeen(node("n1", 1000)),
        *runs(gang("b", [(1, 950)]), "n1"),
        gang("a", [(1, 100)], suspended=True),
    )
    assert told(full, "a").remedies == ()


def test_a_hold_that_an_event_ends_has_only_its_text() -> None:
    known = facts(
        KindWatched("batch", "jobs", False, "not served"),
        NodeSeen(node("n1", 1000)),
        gang("a", [(1, 100)]),
    )
    answer = told(known, "a")
    assert answer.reason == "KindNotWatched"
    assert "not served" in answer.text
    assert answer.remedies == ()


# -- trials are taken back -----------------------------------------------------------------------

CHANGES = (
    AddNodes(node("n0", 600), 2),
    End(("uid-a",)),
    Leave(("uid-w",)),
    Edit(gang("w", [(1, 100)], priority=7)),
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: type(one).__name__)
def test_a_trial_leaves_everything_as_it_was(change: AddNodes | End | Leave | Edit) -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        *runs(gang("a", [(2, 300)]), "n1"),
        gang("w", [(2, 400)], created=START + 10 * SECOND),
        gang("x", [(3, 300)], created=START + 11 * SECOND),
        *unbound(gang("u", [(2, 100)], created=START + 5 * SECOND)),
    )
    run = DryRun(known)
    before = picture(run)
    with run.tried(change) as started:
        assert started or isinstance(change, Leave)
        assert picture(run) != before
    assert picture(run) == before
    invariants.everything(run.cluster)
    assert run.trials == 2


def unbound(work: Workload) -> list[Event]:
    """An AppWrapper that was dispatched, with pods that have no node yet."""
    return [one for one in runs(work, "n1") if not isinstance(one, PodSeen)]


def picture(run: DryRun) -> list[object]:
    """What is where, and which verdicts stand."""
    cluster = run.cluster
    nodes = list(cluster.capacity.report.nodes())
    verdicts = [
        (one.first().uid, one.refusal, one.awaits) for one in cluster.waiting.queue.eqclasses()
    ]
    places = [(uid, cluster.capacity.gangs.places_of(uid)) for uid in cluster.capacity.gangs.uids()]
    phases = [(entry.uid, entry.phase) for entry in cluster.entries.values()]
    return [nodes, sorted(verdicts, key=lambda one: one[0]), sorted(places), phases]


def test_a_raised_share_is_taken_back() -> None:
    before, after = (subtree("root", child("root", cpu=cpu)) for cpu in (100, 300))
    work = gang("a", [(1, 300)], quota=(("gold", "root"),))
    run = DryRun(facts(NodeSeen(node("n1", 1000)), QuotaSeen(before), work))
    assert run.starts("uid-a", RaiseQuota((before,), (after,)))
    assert not run.starts("uid-a")
    assert run.cluster.forest.trees["gold"].nodes["root"].nominal == {"cpu": 100}


def test_nothing_is_held_by_others_of_what_could_never_hold_it() -> None:
    running = runs(gang("a", [(1, 800)]), "n1")
    large, waiting = gang("w", [(1, 2000)]), gang("v", [(1, 900)])
    known = facts(NodeSeen(node("n1", 1000)), *running, large, waiting)

    assert told(known, "w").holding == Holding()
    assert told(known, "v").holding == Holding("cpu", (("default/a", 800),))


def test_one_that_has_failed_says_why() -> None:
    said = "Failed and not replaced: a-0."
    failed = Condition(ConditionType.FAILED, True, "FoundFailedPods", said, NOW, NOW)
    work = replace(gang("w", [(1, 100)]), persisted=Persisted(State.FAILED, START, (failed,)))
    known = facts(NodeSeen(node("n1", 1000)), work)

    assert told(known, "w").text == said
    (row,) = Picture(DryRun(known).cluster, NOW).rows()
    assert row is not None
    assert (row.state, row.why) == (State.FAILED, said)


def test_the_questions_of_one_copy_do_not_disturb_each_other() -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        *runs(gang("a", [(1, 800)]), "n1"),
        *(gang(f"w{n}", [(1, 300 + n)], created=START + (10 + n) * SECOND) for n in range(4)),
    )
    run = DryRun(known)
    first = [why(run, f"uid-w{n}") for n in range(4)]
    assert [why(run, f"uid-w{n}") for n in reversed(range(4))] == first[::-1]


def test_owners_of_a_share_keep_borrowers_waiting_after_a_trial_too() -> None:
    """A question may let an owner stop asking for its share; then it asks as before."""
    assert not carried_out.check(3557)["turned on the copy"]


def test_the_facts_reach_no_dispatcher_but_the_copy() -> None:
    """A dispatcher that is asked about by a copy of its facts gives the commands of its twin."""
    known = facts(NodeSeen(node("n1", 1000)), gang("a", [(1, 100)]), gang("w", [(1, 2000)]))
    asked, twin = Dispatcher(PATIENT), Dispatcher(PATIENT)
    answers = []
    for event in known.events:
        commands = asked.step(event, NOW)
        why(DryRun(known), "uid-w")
        answers.append((commands, twin.step(event, NOW)))
    assert all(mine == others for mine, others in answers)


def test_what_starts_anyway_is_known() -> None:
    known = facts(NodeSeen(node("n1", 1000)), gang("a", [(1, 900)]), gang("w", [(1, 900)]))
    run = DryRun(known)
    assert run.starting == ["uid-a"]
    assert of(why(run, "uid-w"), Kind.NODES).number == 1


def test_intended_is_what_a_dispatcher_is_about_to_start() -> None:
    """The check above has teeth: a change that is not carried out starts nothing."""
    known = facts(NodeSeen(node("n1", 1000)), gang("w", [(2, 900)]))
    assert not carried_out.started(known, "uid-w")
    assert carried_out.started(known, "uid-w", AddNodes(node("n1", 1000), 1))
    edit = Edit(resized(gang("w", [(2, 900)]), 0, replicas=1))
    assert carried_out.started(known, "uid-w", edit)
    assert intended(Dispatcher(PATIENT)) == set()


def test_ask_for_a_watched_child() -> None:
    """Facts have the objects too: an AppWrapper whose pods are all bound assumes nothing more."""
    events = runs(gang("a", [(2, 300)]), "n1")
    assert any(isinstance(one, ChildSeen) for one in events)
    run = DryRun(facts(NodeSeen(node("n1", 1000)), *events))
    assert run.cluster.capacity.gangs.outstanding("uid-a") == (0,)
