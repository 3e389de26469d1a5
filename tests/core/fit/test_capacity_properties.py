"""Properties of the capacity half over random histories: nothing lost, doubled, split or forgotten.

A machine feeds one Capacity any observations in any order, keeps its own naive books beside it, and
compares after every step. Bounds that only matter in large clusters are set to 1 or 0 in half of
the runs, so that every path of the incremental memory is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from mcad.core.assumed.node_report import NodeReport
from mcad.core.capacity import Capacity
from mcad.core.nodes import ledger, pod_class
from mcad.core.nodes.filters import admits
from mcad.core.nodes.resources import with_pod_slot
from mcad.core.nodes.shape import Shape
from mcad.core.state.model import TERMINAL_PHASES, Node, Pod, PodPhase, PodSet, Wanted
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Fit, Settings
from tests.core import strategies
from tests.core.builders import Reported, pods, report_of, waiting
from tests.core.fit.oracles import figures_add_up

NAMES = [f"n{i}" for i in range(4)]
UIDS = ["w0", "w1", "w2"]


@pytest.fixture(params=[False, True], ids=["bounds as they are", "least bounds"])
def bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(ledger, "COLUMNS_KEPT_MIN", 0)
        monkeypatch.setattr(pod_class, "RISES_MAX", 1)
        monkeypatch.setattr(pod_class, "CONSTRAINTS_SUMMED_MAX", 2)


@dataclass
class Held:
    """A reservation as the rules of the protocol describe it."""

    attempt: int
    sets: tuple[PodSet, ...]
    given_up: list[int]
    want: list[Wanted | None]
    finished: list[set[str]]
    frozen: tuple[int, ...] | None = None


@dataclass
class Books:
    """What the machine did, without any cleverness."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)

    def own(self, uid: str, position: int) -> Iterator[Pod]:
        """Live pods of one set; every pod of this machine carries its label."""
        held = self.held[uid]
        for pod in self.pods.values():
            ours = pod.workload == uid and pod.item == position
            live = pod.phase not in TERMINAL_PHASES and not pod.terminating
            if ours and live and pod.attempt in (0, held.attempt):
                yield pod

    def have(self, uid: str, position: int) -> int:
        one = self.held[uid].sets[position]
        stands = [self.nodes[p.node] for p in self.own(uid, position) if p.node in self.nodes]
        return sum(admits(n, one.constraint) if one.per_node else n.ready for n in stands)

    def declared(self, uid: str, position: int) -> int:
        """One pod per node that admits it now, if it is a DaemonSet."""
        held = self.held[uid]
        one = held.sets[position]
        hosts = sum(admits(n, one.constraint) for n in self.nodes.values())
        return max(0, (hosts if one.per_node else one.replicas) - held.given_up[position])

    def goal(self, uid: str, position: int) -> int:
        held = self.held[uid]
        goal = self.declared(uid, position) - len(held.finished[position])
        want = held.want[position]
        return max(0, goal if want is None else min(goal, want.now + want.later))

    def turn(self, uid: str, position: int) -> int:
        """The part of the goal that should exist now."""
        want, goal = self.held[uid].want[position], self.goal(uid, position)
        return goal if want is None else min(goal, want.now)

    def outstanding(self, uid: str) -> tuple[int, ...]:
        held = self.held[uid]
        if held.frozen is not None:
            return held.frozen
        return tuple(max(0, self.goal(uid, i) - self.have(uid, i)) for i in range(len(held.sets)))

    def unseen(self, uid: str, position: int) -> int:
        """Should exist, and no live pod is there for it."""
        return max(0, self.turn(uid, position) - len(list(self.own(uid, position))))

    def note_finished(self) -> None:
        for uid, held in self.held.items():
            for pod in self.pods.values():
                if pod.workload == uid and pod.phase is PodPhase.SUCCEEDED:
                    if pod.attempt in (0, held.attempt) and held.sets[pod.item].counts_pods:
                        held.finished[pod.item].add(pod.uid)


class Machine(RuleBasedStateMachine):
    """Any observation in any order; see the module's docstring."""

    fit = Fit.NODES

    @initialize(cluster=strategies.clusters())
    def begin(self, cluster: dict[str, Node]) -> None:
        self.capacity = Capacity(Settings(fit=self.fit))
        self.books = Books()
        self.settled = False
        for each in cluster.values():
            self.see_node(each)

    # -- observations --------------------------------------------------------------------------

    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def node_changes(self, data: st.DataObject, name: str) -> None:
        old = self.books.nodes.get(name)
        new = data.draw(strategies.nodes(name))
        if old is not None and data.draw(st.booleans()):
            new = replace(old, allocatable=new.allocatable)
        self.see_node(new)

    def see_node(self, each: Node) -> None:
        self.capacity.node_seen(each)
        self.books.nodes[each.name] = each
        self.settled = False

    @rule(name=st.sampled_from(NAMES))
    def node_goes(self, name: str) -> None:
        self.capacity.node_gone(name)
        self.books.nodes.pop(name, None)
        self.settled = False

    @rule(
        data=st.data(),
        number=st.integers(0, 9),
        owner=st.sampled_from([*UIDS, *UIDS, ""]),
        node=st.sampled_from([*NAMES, ""]),
        phase=st.sampled_from([PodPhase.RUNNING] * 4 + list(PodPhase)),
    )
    def pod_changes(
        self, data: st.DataObject, number: int, owner: str, node: str, phase: PodPhase
    ) -> None:
        uid = f"p{number}"
        old = self.books.pods.get(uid)
        sets = self.books.held[owner].sets if owner in self.books.held else (pods(1),) * 3
        item = data.draw(st.integers(0, len(sets) - 1))
        request = data.draw(st.sampled_from([sets[item].request, sets[item].request, ()]))
        new = Pod(
            uid,
            "ns",
            uid,
            node,
            phase,
            request,
            terminating=data.draw(st.sampled_from([False, False, False, True])),
            workload=owner,
            item=item if owner else -1,
            index=0 if owner else -1,
            attempt=data.draw(st.sampled_from([0, 1, 1, 2])) if owner else 0,
            ports=data.draw(st.sampled_from([sets[item].ports, ()])),
            nominated="" if node else data.draw(st.sampled_from(NAMES)),
        )
        if old is not None and data.draw(st.booleans()):
            new = replace(old, phase=phase, terminating=new.terminating)
        self.see_pod(new)

    def see_pod(self, pod: Pod) -> None:
        held = self.books.held.get(pod.workload)
        assume(held is None or pod.item < len(held.sets))
        self.capacity.pod_seen(pod)
        self.books.pods[pod.uid] = pod
        self.books.note_finished()
        self.settled = False

    @precondition(lambda self: self.books.held)
    @rule(data=st.data(), node=st.sampled_from(NAMES))
    def a_reserved_pod_binds(self, data: st.DataObject, node: str) -> None:
        uid = data.draw(st.sampled_from(sorted(self.books.held)))
        held = self.books.held[uid]
        item = data.draw(st.integers(0, len(held.sets) - 1))
        name = f"{uid}-{item}-{data.draw(st.integers(0, 3))}"
        request, ports = held.sets[item].request, held.sets[item].ports
        pod = Pod(name, "ns", name, node, PodPhase.RUNNING, request, False, uid, item, 0, 1, ports)
        self.see_pod(pod)

    @precondition(lambda self: self.books.pods)
    @rule(data=st.data())
    def pod_goes(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.books.pods)))
        self.capacity.pod_gone(uid)
        del self.books.pods[uid]
        self.settled = False

    # -- reservations --------------------------------------------------------------------------

    @rule(
        uid=st.sampled_from(UIDS),
        sets=strategies.gangs(most=3),
        adopt=st.sampled_from([0, 0, 1]),
    )
    def gang_comes(self, uid: str, sets: tuple[PodSet, ...], adopt: bool) -> None:
        assume(uid not in self.books.held)
        assume(all(p.workload != uid or p.item < len(sets) for p in self.books.pods.values()))
        self.capacity.place_unplaced()
        shape = self.capacity.shape(sets)
        before = report_of(self.capacity)
        held = Held(1, sets, [0] * len(sets), [None] * len(sets), [set() for _ in sets])
        if adopt:
            self.capacity.gangs.adopt(uid, 1, sets)
        elif self.capacity.assume(uid, 1, shape, sets) is not None:
            assert not self.capacity.gangs.exists(uid)
            assert report_of(self.capacity) == before, "a refused gang leaves no trace"
            return
        self.books.held[uid] = held
        self.books.note_finished()
        if not adopt and self.fit is Fit.NODES:
            self._check_room_was_there(before)

    def _check_room_was_there(self, before: Reported) -> None:
        """What a gang was given was free: it overcommits no node, nothing is unplaced."""
        after = report_of(self.capacity)
        assert after.unplaced == before.unplaced
        for was, now in zip(before.nodes, after.nodes, strict=True):
            given = {r: n - dict(was.reserved).get(r, 0) for r, n in now.reserved}
            free = dict(now.free)
            assert all(free.get(r, 0) >= 0 for r, n in given.items() if n > 0)

    @precondition(lambda self: self.books.held)
    @rule(
        data=st.data(),
        act=st.sampled_from(["want", "want", "freeze", "release", "expire", "suspend"]),
    )
    def gang_changes(self, data: st.DataObject, act: str) -> None:
        uid = data.draw(st.sampled_from(sorted(self.books.held)))
        held = self.books.held[uid]
        self.settled = False
        match act:
            case "want":
                item = data.draw(st.integers(0, len(held.sets) - 1))
                some = st.builds(Wanted, st.integers(0, 5), st.integers(0, 3))
                want = data.draw(st.one_of(st.none(), some))
                self.capacity.gangs.want(uid, item, 0, want)
                held.want[item] = want
            case "freeze":
                if held.frozen is None:
                    held.frozen = self.books.outstanding(uid)
                self.capacity.gangs.freeze(uid)
            case "release":
                self.capacity.gangs.release(uid)
                del self.books.held[uid]
            case "expire":
                expected = 0 if held.frozen is not None else self._expire(uid, held)
                assert self.capacity.gangs.give_up(uid) == expected
            case "suspend":
                item = data.draw(st.integers(0, len(held.sets) - 1))
                self.capacity.gangs.give_up_sets(uid, (item,))
                if held.frozen is None:
                    held.given_up[item] += self.books.declared(uid, item)

    def _expire(self, uid: str, held: Held) -> int:
        """As many as should exist and do not."""
        given_up = 0
        for position in range(len(held.sets)):
            gone = self.books.unseen(uid, position)
            left = self.books.declared(uid, position) - len(held.finished[position])
            if gone:
                held.given_up[position] += left - self.books.goal(uid, position) + gone
            given_up += gone
        return given_up

    @rule()
    def pass_begins(self) -> None:
        self.capacity.gangs.take_changed(100)
        self.capacity.place_unplaced()
        self.settled = True

    # -- what always holds ---------------------------------------------------------------------

    @invariant()
    def books_agree(self) -> None:
        self.capacity.check()
        for uid in UIDS:
            assert self.capacity.gangs.exists(uid) == (uid in self.books.held)
        for uid in self.books.held:
            assert self.capacity.gangs.outstanding(uid) == self.books.outstanding(uid)
        report = {n.name: n for n in self.capacity.report.nodes()}
        assert sorted(report) == sorted(self.books.nodes)
        for name, told in report.items():
            used = [
                with_pod_slot(p.request)
                for p in self.books.pods.values()
                if name == (p.node or (p.nominated if not p.workload else ""))
                and p.phase not in TERMINAL_PHASES
            ]
            sums: dict[str, int] = {}
            for resource, n in (pair for request in used for pair in request):
                sums[resource] = sums.get(resource, 0) + n
            assert dict(told.used) == {r: n for r, n in sums.items() if n}
        self._sums_agree(list(report.values()))

    def _sums_agree(self, nodes: list[NodeReport]) -> None:
        """The sums are kept apart from the nodes; an overcommitted node lends nothing,
        nor does one that takes no pods."""
        sums = self.capacity.report.sums()
        for name in ("allocatable", "used", "reserved", "free"):
            added: dict[str, int] = {}
            of_node = "usable" if name == "free" else name
            for resource, n in (pair for node in nodes for pair in getattr(node, of_node)):
                added[resource] = added.get(resource, 0) + n
            assert dict(getattr(sums, name)) == {r: n for r, n in added.items() if n}, name

    @invariant()
    def after_a_pass_slots_are_where_there_is_room(self) -> None:
        if not self.settled:
            return
        for each in self.capacity.report.nodes():
            overcommitted = {r for r, n in each.free if n < 0}
            assert not overcommitted & {r for r, _ in each.reserved}


class AggregateMachine(Machine):
    """The same histories where only the sum counts: slots may be unplaced from the start."""

    fit = Fit.AGGREGATE


@pytest.mark.usefixtures("bounds")
@pytest.mark.parametrize("machine", [Machine, AggregateMachine])
def test_books_agree_with_naive_ones_after_every_step_of_any_history(
    machine: type[Machine],
) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=30, stateful_step_count=30))


# -- incremental verdicts ------------------------------------------------------------------------


def _observed(books: Books) -> Capacity:
    """A Capacity that saw only what there is now."""
    fresh = Capacity(Settings())
    for each in books.nodes.values():
        fresh.node_seen(each)
    for each in books.pods.values():
        fresh.pod_seen(each)
    return fresh


def _rebuilt(capacity: Capacity, books: Books) -> Capacity:
    """A Capacity that never saw the history: slots become foreign pods on the same nodes."""
    fresh = _observed(books)
    for reservation in capacity._assumed.by_uid.values():
        for allotment in reservation.allotments:
            one = allotment.pod_set
            for name, slots in allotment.at.items():
                for i in range(slots):
                    uid = f"r-{reservation.uid}-{allotment.position}-{name}-{i}"
                    run = PodPhase.RUNNING
                    fresh.pod_seen(Pod(uid, "", "", name, run, one.request, ports=one.ports))
    return fresh


def _one_change(data: st.DataObject, step: int, books: Books, capacity: Capacity) -> None:
    name = data.draw(st.sampled_from(NAMES))
    match data.draw(st.sampled_from(["node", "node", "gone", "pod", "pod", "pod", "end"])):
        case "node":
            books.nodes[name] = data.draw(strategies.nodes(name))
            capacity.node_seen(books.nodes[name])
        case "gone":
            books.nodes.pop(name, None)
            capacity.node_gone(name)
        case "pod":
            like, uid = data.draw(strategies.pod_sets()), f"p{step}"
            own = data.draw(st.sampled_from(["", "", "other"]))
            run = PodPhase.RUNNING
            pod = Pod(uid, "", "", name, run, like.request, workload=own, ports=like.ports)
            books.pods[uid] = pod
            capacity.pod_seen(pod)
        case "end" if books.pods:
            uid = data.draw(st.sampled_from(sorted(books.pods)))
            del books.pods[uid]
            capacity.pod_gone(uid)
        case _:
            pass


@pytest.mark.usefixtures("bounds")
@settings(max_examples=100)
@given(strategies.clusters(), st.lists(strategies.gangs(), min_size=2, max_size=6), st.data())
def test_verdicts_after_a_history_are_those_of_a_capacity_that_never_had_one(
    nodes: dict[str, Node], gangs: list[tuple[PodSet, ...]], data: st.DataObject
) -> None:
    """R4: a shape that waits to be requeued misses nothing, however long ago it was refused."""
    capacity, books = Capacity(Settings()), Books()
    shapes = [waiting(capacity, *sets) for sets in gangs]
    for each in nodes.values():
        capacity.node_seen(each)
        books.nodes[each.name] = each
    lost = (data.draw(strategies.pod_sets()),) if data.draw(st.booleans()) else ()
    capacity.gangs.adopt("lost", 1, lost)
    capacity.place_unplaced()
    refused = {shape for shape in shapes if capacity.refusal(shape) is not None}
    for step in range(data.draw(st.integers(1, 12))):
        for number in range(data.draw(st.sampled_from([1, 1, 4]))):  # some rises come together
            _one_change(data, 4 * step + number, books, capacity)
        if data.draw(st.sampled_from([False, False, True])):
            capacity.gangs.want("lost", 0, 0, Wanted(data.draw(st.integers(0, 4))))
        capacity.place_unplaced()
        for shape in data.draw(st.lists(st.sampled_from(shapes), max_size=1)):
            # What is known of it holds until something changes for an emptied cluster (R6).
            fits = _observed(books).would_fit_emptied(shape)
            assert capacity.would_fit_emptied(shape) is fits
        refused.difference_update(capacity.take_requeued())
        event(f"{len(refused)} refused")
        questions, fresh = capacity.questions(), _rebuilt(capacity, books)
        for shape in refused:
            found = questions.refusal(shape)
            assert found is not None
            figures_add_up(capacity, books.nodes, shape, found)
            if not capacity.report.unplaced():
                assert fresh.refusal(fresh.shape(shape.sets)) is not None
        for shape in data.draw(st.lists(st.sampled_from(shapes), max_size=2)):
            sets = gangs[shapes.index(shape)]
            found = capacity.refusal(shape)
            if found is not None:
                figures_add_up(capacity, books.nodes, shape, found)
                refused.add(shape)
            elif not capacity.gangs.exists(f"g{step}") and data.draw(st.booleans()):
                assert capacity.assume(f"g{step}", 1, shape, sets) is None
                refused.discard(shape)
        if data.draw(st.booleans()):
            capacity.gangs.release(f"g{data.draw(st.integers(0, step))}")
    capacity.check()
    capacity.place_unplaced()
    refused.difference_update(capacity.take_requeued())
    assert not capacity.has_news
    questions = capacity.questions()
    assert all(questions.refusal(shape) is not None for shape in refused)
    if not capacity.report.unplaced():
        _verdicts_agree(capacity, _rebuilt(capacity, books), shapes)


def _verdicts_agree(capacity: Capacity, fresh: Capacity, shapes: list[Shape]) -> None:
    for shape in shapes:
        found, expected = capacity.refusal(shape), fresh.refusal(fresh.shape(shape.sets))
        assert (found is None) == (expected is None)
        if len(shape.alike) == 1 and not shape.per_node:
            assert found == expected
        elif found is not None and expected is not None:
            # After a search some of the figures are those of the search.
            assert _without_place(found) == _without_place(expected)


def _without_place(refusal: Refusal) -> Refusal:
    return replace(refusal, item=-1, index=-1, missing=0)
