"""The walk along the line: passes and the hold of the head are bounded, and none starves."""

import pytest

from mcad.core.admission import Admission
from mcad.core.commands import WriteStatus
from mcad.core.cycle import admit
from mcad.core.events import NodeSeen
from mcad.core.fit import fit
from mcad.core.fit.fit import Judge
from mcad.core.nodes.shape import Shape
from mcad.core.queue.line import Line
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Topology
from mcad.core.state.records import replace
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from mcad.core.state.work_bounds import VERDICT_STEPS
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import GOLD, teams

HOLDING = 30


def counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[Shape]:
    """The shapes that are judged from now on, one after the other."""
    capacity, judged = bench.dispatcher.cluster.capacity, []
    judge = capacity.refusal

    def refusal(shape: Shape) -> Refusal | None:
        judged.append(shape)
        return judge(shape)

    monkeypatch.setattr(capacity, "refusal", refusal)
    return judged


def begun(bench: Bench) -> list[str]:
    """The AppWrappers that are being dispatched, in the order of the intents."""
    entries = bench.dispatcher.cluster.entries
    written = [entries[c.uid] for c in bench.pending if isinstance(c, WriteStatus)]
    return [entry.workload.name for entry in written if entry.phase is Phase.INTENDING]


def refusals(bench: Bench) -> int:
    """How many classes have a verdict."""
    eqclasses = bench.dispatcher.cluster.waiting.queue.eqclasses()
    return sum(eqclass.refusal is not None for eqclass in eqclasses)


def test_a_pass_ends_at_its_work_and_asks_for_another_that_goes_on_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admit, "WORK_PER_PASS", 3 * VERDICT_STEPS)
    bench = Bench(nodes=[node(milli=100)])
    bench.submit(*(workload(f"w{i}", 200 + i) for i in range(8)))
    judged = counted(bench, monkeypatch)
    passes = []
    for _ in range(4):
        bench.decide()
        passes.append((len(judged), refusals(bench), bench.now in bench.wishes))

    # In passes that go on, half of the work is kept for those that are passed already.
    assert passes == [(3, 3, True), (5, 5, True), (7, 7, True), (8, 8, False)]


def test_a_refused_class_is_tested_again_even_if_no_event_comes() -> None:
    bench = Bench(Settings(backoff=20 * SECOND), nodes=[node(milli=100)])
    bench.submit(workload("a", 200)).settle()
    cluster = bench.dispatcher.cluster
    assert bench.now < cluster.walk.look_again_at <= bench.now + 20 * SECOND
    assert cluster.walk.look_again_at in bench.wishes


def test_a_pass_dispatches_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one is a write, and events are waiting."""
    monkeypatch.setattr(admit, "DISPATCHES_PER_PASS", 3)
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(*(workload(f"w{i}", 100 + i) for i in range(5)))
    bench.decide()
    assert begun(bench) == ["w0", "w1", "w2"]
    assert bench.now in bench.wishes
    bench.decide()
    assert begun(bench) == ["w0", "w1", "w2", "w3", "w4"]


def test_the_last_in_line_get_a_verdict_however_often_the_first_are_requeued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admit, "WORK_PER_PASS", 4 * VERDICT_STEPS)
    bench = Bench(nodes=[node("n1", 100), node("n2", 100)])
    # Two pods that each need a node of their own: every rise of a node wakes all of them.
    bench.submit(*(workload(f"w{i}", 150 + i, 1) for i in range(12)), workload("last", 50))
    for turn in range(12):
        bench.feed(NodeSeen(node("n1", 300 + turn if turn % 2 else 1)))
        bench.feed(NodeSeen(node("n1", 100)))
        bench.decide()
        if begun(bench):
            break

    assert begun(bench) == ["last"]


def test_if_room_rose_for_one_ahead_it_is_judged_again_before_any_behind_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admit, "WORK_PER_PASS", 2 * VERDICT_STEPS)
    bench = Bench(nodes=[node(milli=100)])
    bench.submit(workload("first", 300), workload("second", 400), workload("third", 300, 50))
    bench.decide()
    assert refusals(bench) == 2
    bench.pending.clear()
    bench.feed(NodeSeen(node(milli=350)))
    bench.decide()

    assert begun(bench) == ["first"]


def test_putting_on_hold_is_work_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admit, "WORK_PER_PASS", 3 * VERDICT_STEPS)
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("holder", 1)).settle()
    taken = [workload(f"w{i}", 1, items=bench.works["uid-holder"].items) for i in range(9)]
    bench.submit(*taken)
    bench.decide()
    held = [
        entry for entry in bench.dispatcher.cluster.entries.values() if entry.wait.hold is not None
    ]

    assert 0 < len(held) <= 3
    assert bench.now in bench.wishes


@pytest.mark.parametrize("most", [1, 20, 28, 39, 40])
def test_one_that_is_refused_after_it_was_found_to_fit_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """The exact searches of a pass may have no work left between the two questions; one takes 19
    steps, as greed fails: the first rack is filled by two pods on each of its nodes."""
    monkeypatch.setattr(fit, "EXACT_WORK_PER_PASS_MAX", most)
    rack = Topology(("rack",), required=True, group="g")
    sizes = (1000, 900, 1000, 900)
    nodes = [node(f"n{i}", size, labels=(("rack", f"r{i // 2}"),)) for i, size in enumerate(sizes)]
    bench = Bench(replace(PATIENT, topology_levels=("rack",)), nodes=nodes)
    for name in "ab":
        work = workload(name, 500, 500, 450, 450)
        sets = tuple(replace(one, topology=rack) for one in work.sets)
        bench.submit(replace(work, sets=sets))
    bench.settle()
    monkeypatch.undo()
    bench.advance(120)
    assert bench.order == ["a", "b"]


def test_a_walk_goes_on_however_many_ahead_keep_their_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 100,000 different requests a pass went by 12,000 that kept their verdict, for 50 ms."""
    monkeypatch.setattr(admit, "WORK_PER_PASS", 8 * VERDICT_STEPS)
    bench = Bench(nodes=[node("n1", 100_000), node("n2", 150_000)])
    sizes = [160_000 + number for number in range(100)]
    bench.submit(*(workload(f"w{size}", size, size) for size in sizes))
    while refusals(bench) < 60:
        bench.decide()
    tried = []
    leave = Line.leave
    monkeypatch.setattr(Line, "leave", lambda *of: tried.append(of) or leave(*of))
    bench.feed(NodeSeen(node("n1", 300_000)))  # enough in sum, for one of the two pods
    before = refusals(bench)
    bench.decide()
    assert len(bench.dispatcher.cluster.waiting.verdicts.active) > 50
    assert len(tried) == 1  # all at once
    assert refusals(bench) > before  # the walk goes on where it was
    bench.settle()
    assert refusals(bench) == 100


def test_leaves_that_ask_for_the_same_share_one_verdict_in_a_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What comes free costs a verdict, not one for each leaf that waits for it."""
    names = [f"leaf-{number}" for number in range(30)]
    bench = Bench(nodes=[node("n1", 9000)]).share(*teams(1000, **dict.fromkeys(names, 0)))
    leaf = {name: ((GOLD, name),) for name in names}
    bench.start(workload("first", 1000, quota=leaf[names[0]]))
    bench.submit(*(workload(f"w-{name}", 600, quota=leaf[name]) for name in names)).settle()
    asked = []
    refusal = Admission.quota_refusal
    monkeypatch.setattr(Admission, "quota_refusal", lambda *of: asked.append(of) or refusal(*of))
    bench.delete("uid-first").settle()
    assert len(bench.order) == 2
    assert len(asked) < 10


def test_to_find_out_what_a_refused_head_blocks_is_work_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    strict = replace(PATIENT, policy=Policy.STRICT_FIFO)
    bench = Bench(strict, nodes=[node(f"n{i}", 100) for i in range(4)])
    sizes = ([60 + i] * 2 + [61 + i] * 3 for i in range(19))  # five nodes are needed
    bench.start(*(workload(f"w{i:02}", *each) for i, each in enumerate(sizes)))
    monkeypatch.setattr(admit, "WORK_PER_PASS", 8)
    looked = []
    look = Judge._fits_emptied
    monkeypatch.setattr(Judge, "_fits_emptied", lambda *of: looked.append(of) or look(*of))
    cluster = bench.dispatcher.cluster
    for eqclass in cluster.waiting.queue.eqclasses():  # as if they had been undecided
        cluster.capacity._memory.remembered(eqclass.shape).emptied = (-1, False)
    bench.decide()
    assert 0 < len(looked) <= 3
    assert bench.now in bench.wishes
    bench.settle()
    assert len(looked) == 19, "all are asked in the end"


# -- the hold of the head of the line ------------------------------------------------------------


def with_a_head() -> Bench:
    """``big`` is the head; ``small`` would fit and is held."""
    settings = Settings(head_of_line_holding=HOLDING * SECOND)
    bench = Bench(settings=settings, nodes=[node(milli=1000)])
    bench.submit(workload("first", 700)).settle()
    bench.bind("first-0")
    bench.submit(workload("big", 900), workload("small", 100)).settle()
    assert bench.order == ["first"]
    return bench


def test_another_attempt_holds_again() -> None:
    bench = with_a_head()
    bench.advance(HOLDING + 1)
    assert bench.order == ["first", "small"]
    bench.delete("uid-first")
    bench.delete("uid-small").settle()
    assert bench.order[2:] == ["big"]
    bench.edit("uid-big", suspended=True).settle()
    bench.submit(workload("next", 700)).settle()
    bench.bind("next-0")
    bench.edit("uid-big", suspended=False)
    bench.submit(workload("late", 100)).settle()

    assert bench.order[3:] == ["next"]
    bench.advance(HOLDING + 1)
    assert bench.order[3:] == ["next", "late"]


def test_while_another_is_head_the_clock_of_the_hold_stands_still() -> None:
    bench = with_a_head()
    bench.advance(HOLDING - 10)
    bench.submit(workload("vip", 800, priority=9)).settle()
    bench.advance(HOLDING - 5)
    assert bench.order == ["first"]
    bench.delete("uid-vip").settle()
    bench.advance(8)
    assert bench.order == ["first"], "10 s were left of the hold of big"
    bench.advance(3)
    assert bench.order == ["first", "small"]


def test_coming_back_as_head_again_and_again_holds_no_longer() -> None:
    bench = with_a_head()
    for number in range(6):
        bench.advance(HOLDING / 5)
        bench.submit(workload(f"vip{number}", 800, priority=9))
        bench.settle()
        bench.delete(f"uid-vip{number}")
        bench.settle()

    assert bench.order == ["first", "small"]


def test_once_the_head_is_known_no_other_is_tried_as_head(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = with_a_head()
    bench.advance(HOLDING + 1)
    bench.submit(*(workload(f"w{i}", 800 + i) for i in range(9))).settle()
    capacity, asked = bench.dispatcher.cluster.capacity, []
    ask = capacity.would_fit_emptied
    monkeypatch.setattr(capacity, "would_fit_emptied", lambda one: asked.append(one) or ask(one))
    bench.decide()

    assert len(asked) == 1
