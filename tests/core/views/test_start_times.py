"""Start time estimates: what they rest on, that they hold, and that nothing is changed."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from benchmarks.builders import cores, machines
from benchmarks.replay import Job, Replay
from mcad.core.cluster import Cluster
from mcad.core.state.bounds import START_TIMES_AHEAD, STUCK_AFTER
from mcad.core.state.model import Node, Workload
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND, Instant
from mcad.core.views.rows import Picture
from mcad.core.views.start_times import Basis, StartTime, start_times
from tests.core.bench import PATIENT, START, Bench, node, workload
from tests.core.builders import report_of
from tests.core.quotas import GOLD, teams

MINUTE = 60 * SECOND


def line_of(cluster: Cluster) -> list[str]:
    return Picture(cluster, cluster.now).line(10**6)


def told(bench: Bench, name: str) -> StartTime:
    cluster = bench.dispatcher.cluster
    return start_times(cluster, line_of(cluster), [f"uid-{name}"])[f"uid-{name}"]


def minutes(at: Instant) -> int:
    """Since the beginning, without what a teardown may take."""
    return round((at - START - STUCK_AFTER) / MINUTE)


def busy(*works: Workload, nodes: tuple[Node, ...] = (node(),), **changes: object) -> Bench:
    """All submitted at once; pods run as soon as they exist, those of the first node by node."""
    bench = Bench(replace(PATIENT, protect_after=0, **changes), nodes=list(nodes))
    bench.submit(*works)
    bench.settle()
    return bench


def latest(bench: Bench, names: str) -> list[int]:
    return [minutes(told(bench, name).latest) for name in names]


def since(bench: Bench, name: str = "a") -> Instant:
    return bench.entry(name).record.since


def job(name: str, milli: int, *, limit: int = 0, expected: int = 0, **more: object) -> Workload:
    """Minutes."""
    return workload(name, milli, run_limit=limit * MINUTE, run_expected=expected * MINUTE, **more)


def test_declared_limits_say_when_the_first_starts_at_the_latest() -> None:
    bench = busy(job("a", 600, limit=10), job("b", 400, limit=30), job("c", 500, limit=5))
    start_time = told(bench, "c")
    assert (minutes(start_time.latest), start_time.basis) == (10, Basis.LIMITS)
    assert start_time.earliest == 0  # one may end at any moment
    assert start_time.why == (
        "By declared limits, unless others go before it: it waits for 1 to end, with 0 ahead of it."
    )
    bench.advance(11 * 60)
    assert bench.state("c") == "Running"
    assert since(bench, "c") <= start_time.latest


def test_those_ahead_are_placed_first_for_as_long_as_they_may_run() -> None:
    bench = busy(
        job("a", 1000, limit=10),
        job("b", 800, limit=20),
        job("c", 300, limit=60),  # beside b there is no room for it, and it does not go before
        job("d", 100, limit=60),
    )
    assert latest(bench, "bcd") == [10, 31, 31]


def test_an_appwrapper_that_wants_other_nodes_waits_for_none_ahead() -> None:
    def on(name: str, work: Workload) -> Workload:
        where = replace(work.sets[0].constraint, selector=(("at", name),))
        return replace(work, sets=(replace(work.sets[0], constraint=where),))

    bench = busy(
        on("n1", job("a", 1000)),
        on("n2", job("b", 1000, limit=10)),
        on("n1", job("c", 500)),
        on("n2", job("d", 500)),
        nodes=tuple(node(name, labels=(("at", name),)) for name in ("n1", "n2")),
    )
    assert told(bench, "c").why == "1 of those it waits for has no declared limit and no history."
    assert latest(bench, "d") == [10]


def test_what_is_expected_says_when_it_starts_at_the_earliest() -> None:
    bench = busy(job("a", 1000, limit=30, expected=20), job("b", 500))
    start_time = told(bench, "b")
    assert minutes(start_time.latest) == 30
    assert start_time.earliest == since(bench) + 20 * MINUTE
    bench.advance(21 * 60)
    assert told(bench, "b").earliest == 0  # it has taken longer than it said: any moment


def test_without_a_limit_the_latest_start_rests_on_what_is_expected() -> None:
    bench = busy(job("a", 1000, expected=20), job("b", 500))
    start_time = told(bench, "b")
    assert start_time.earliest == start_time.latest == since(bench) + 20 * MINUTE
    assert start_time.basis is Basis.EXPECTATIONS


def test_runs_of_equal_shape_say_what_is_expected_where_nothing_is_declared() -> None:
    bench = busy(job("a", 1000), job("b", 500))
    cluster = bench.dispatcher.cluster
    shape = cluster.capacity.shape(bench.entry("a").workload.sets)
    for n in range(20):
        cluster.history.note(shape, 0, (n + 1) * MINUTE)
    begun, start_time = since(bench), told(bench, "b")
    assert (start_time.earliest, start_time.latest) == (begun + 2 * MINUTE, begun + 18 * MINUTE)
    assert start_time.why == (
        "By what is expected, unless others go before it: it waits for 1 to end, with 0 ahead of "
        "it, and 1 of these, which have no limit, take no longer than 90 % of equal ones did, or "
        "than they say. Sooner only if one takes less time than it says, or than 90 % of equal "
        "ones."
    )
    bench.advance(600)  # of those that took more than ten minutes the shortest took 11
    start_time = told(bench, "b")
    assert (start_time.earliest, start_time.latest) == (begun + 11 * MINUTE, begun + 19 * MINUTE)


def test_where_nothing_is_known_nothing_is_promised() -> None:
    works = [job(name, 250) for name in "abcd"]
    bench = busy(*works, job("e", 600, limit=5), job("f", 100, limit=5))
    why = "3 of those it waits for have no declared limit and no history."
    assert told(bench, "e") == StartTime(why=why)
    why = "Unknown, as is the start of default/e, which is ahead of it."
    assert told(bench, "f") == StartTime(why=why)


def test_an_appwrapper_that_can_never_fit_delays_no_other() -> None:
    bench = busy(job("a", 1000, limit=10), job("big", 5000), job("b", 500))
    assert told(bench, "big").why == "It would not fit even if every AppWrapper left."
    assert latest(bench, "b") == [10]
    bench.edit("uid-b", suspended=True).settle()
    assert told(bench, "b") == StartTime(why="It is kept out of the line (Suspended).")
    assert told(bench, "a") == StartTime()  # it does not wait


def test_shares_count_as_nodes_do() -> None:
    """There is room on the nodes, and the tree lends nothing."""
    bench = Bench(replace(PATIENT, protect_after=0), nodes=[node()])
    bench.share(*teams(500, team=500))
    bench.submit(*(job(name, 500, limit=10, quota=((GOLD, "team"),)) for name in "abc")).settle()
    assert latest(bench, "bc") == [10, 21]


def test_far_back_in_line_there_is_no_estimate() -> None:
    names = [f"q{n:03}" for n in range(START_TIMES_AHEAD + 1)]
    bench = busy(job("a", 1000, limit=10), *(job(name, 1000, limit=1) for name in names))
    assert told(bench, names[-2]).latest > 0
    assert told(bench, names[-1]) == StartTime(why="Too many are ahead of it to tell.")


def test_a_reservation_is_a_promise_and_its_owner_goes_first() -> None:
    bench = busy(
        job("a", 500, limit=30, expected=20),
        job("b", 100),
        job("c", 600, limit=5),
        job("d", 700, limit=5),
        policy=Policy.BACKFILL,
    )
    bench.advance(60)
    reservation, behind = bench.entry("c").reservation, told(bench, "d")
    assert reservation is not None
    assert told(bench, "c") == StartTime(
        since(bench) + 20 * MINUTE,
        reservation.start,
        Basis.RESERVATION,
        "Its room is reserved, and free by then if all keep their declared limits. Sooner only if "
        "one takes less time than it says, or than 90 % of equal ones.",
    )
    assert 0 <= behind.latest - reservation.start - 5 * MINUTE - STUCK_AFTER < SECOND
    assert behind.basis is Basis.LIMITS


def test_a_question_changes_neither_what_is_decided_next_nor_the_answer() -> None:
    bench = busy(
        *(job(f"r{n}", 300, limit=n + 5, expected=n + 1) for n in range(6)),
        *(workload(f"w{n}", 300 + n, 200) for n in range(5)),
        nodes=(node(), node("n2")),
    )
    cluster = bench.dispatcher.cluster
    capacity, line = cluster.capacity, line_of(cluster)

    def state() -> tuple[object, ...]:
        return report_of(capacity), capacity.steps, list(cluster.waiting.queue.eqclasses())

    before, first = state(), start_times(cluster, line, line)
    assert start_times(cluster, line, line) == first
    assert state() == before
    capacity.check()


# -- it holds ------------------------------------------------------------------------------------


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_no_start_is_before_the_earliest_nor_that_of_the_first_after_the_latest(seed: int) -> None:
    """None comes later or goes around, and each declares exactly how long it runs."""
    rng = Random(seed)
    jobs, nodes = [], rng.randint(2, 4)
    sizes = rng.choice(((1,), (2,), (1, 2, 3, 4)))
    for n in range(rng.randint(3, 14)):
        run = rng.randint(60, 3600) * SECOND
        size = rng.choice(sizes)
        pods = rng.randint(1, nodes * (4 // size))
        jobs.append(Job(f"j{n:02}", 0, pods, cores(size), run, run, run))
    rules = Settings(policy=Policy.STRICT_FIFO, protect_after=0, placement_timeout=0)
    replay = Replay(jobs, machines(nodes, 4), rules)
    cluster = replay.brain.cluster
    stated: list[tuple[str, StartTime, bool]] = []

    def look() -> None:
        line = line_of(cluster)
        for place, (uid, start_time) in enumerate(start_times(cluster, line, line).items()):
            stated.append((uid, start_time, place == 0))

    for at in sorted(rng.randint(1, 7200) for _ in range(5)):
        replay.plan(replay.now + at * SECOND, look)
    replay.run()
    for uid, start_time, is_first in stated:
        starts = replay.lives[uid].starts
        if starts:  # else kube-scheduler has stranded it, which may happen with pods of two sizes
            assert starts[0] >= start_time.earliest, (uid, start_time)
        if is_first and len(sizes) == 1:
            assert starts[0] <= start_time.latest, (uid, start_time)
