"""The bits of constraints and the facts of all nodes say what ``admits`` says of each node."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mcad.core.nodes.codes import ABSENT, Codes
from mcad.core.nodes.constraints import Constraints, Facts, as_set
from mcad.core.nodes.filters import admits, in_service
from mcad.core.state.model import Constraint, Node, Requirement, Toleration
from tests import budget
from tests.core.builders import node, taint

ROWS = 8
NAMES = [f"n{i}" for i in range(2 * ROWS)]
KEYS = ["zone", "cores"]
VALUES = ["a", "b", "", "-1", "16"]
TAINTS = [
    taint(key, effect, value)
    for key, effect, value in product(["team", "old"], ["NoSchedule", "PreferNoSchedule"], "ab")
]
NODES = st.builds(
    lambda name, labels, taints, ready, cordoned: node(
        name, labels=labels, taints=taints, ready=ready, cordoned=cordoned
    ),
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)),
    st.lists(st.sampled_from(TAINTS), max_size=2, unique=True),
    st.sampled_from([True] * 5 + [False]),
    st.sampled_from([False] * 3 + [True]),
)
OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "in"]
SOME_VALUES = st.lists(st.sampled_from(VALUES), max_size=2, unique=True).map(tuple)
ON_LABELS = st.builds(
    Requirement, st.sampled_from([*KEYS, "gone"]), st.sampled_from(OPERATORS), SOME_VALUES
)
ON_FIELDS = st.builds(
    Requirement,
    st.sampled_from(["metadata.name"] * 5 + ["metadata.uid"]),
    st.sampled_from([*["In", "NotIn"] * 4, *OPERATORS]),
    st.lists(st.sampled_from(NAMES[:4]), min_size=1, max_size=2, unique=True).map(tuple),
    st.just(True),
)
TERMS = st.lists(st.one_of(ON_LABELS, ON_LABELS, ON_FIELDS), max_size=2).map(tuple)
TOLERATIONS = st.builds(
    Toleration,
    st.sampled_from(["", "team", "node.kubernetes.io/unschedulable"]),
    st.sampled_from(["Exists", "Exists", "Equal", ""]),
    st.sampled_from(["", "a"]),
    st.sampled_from(["", "", "NoSchedule", "NoExecute"]),
)
CONSTRAINTS = st.builds(
    Constraint,
    selector=st.dictionaries(
        st.sampled_from([*KEYS, "gone"]), st.sampled_from(VALUES), max_size=1
    ).map(lambda selector: tuple(selector.items())),
    affinity=st.none() | st.lists(TERMS, max_size=2).map(tuple),
    tolerations=st.lists(TOLERATIONS, max_size=2).map(tuple),
    node_name=st.sampled_from([""] * 5 + NAMES[:2]),
)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("values", [(), ("a",), ("16",), ("a", "16")])
def test_each_operator_is_that_of_one_node(operator: str, values: tuple[str, ...]) -> None:
    facts = Facts(ROWS)
    nodes = [node(f"n{at}", labels={"zone": value}) for at, value in enumerate(VALUES)]
    nodes += [node("none"), node("both", labels={"zone": "a", "cores": "16"})]
    for at, one in enumerate(nodes):
        facts.enter(at, one)
    terms = (
        ((Requirement("zone", operator, values),),),
        ((), (Requirement("zone", "Exists", ()),)),
    )
    selectors = [
        (),
        (("zone", "a"),),
        (("cores", "16"), ("zone", "a")),
        (("cores", "1"), ("zone", "a")),
    ]
    for affinity, selector in product([None, *terms], selectors):
        asked = Constraint(selector=tuple(selector), affinity=affinity)
        found = facts.admitting(asked)[: len(nodes)].tolist()
        assert found == [admits(one, asked) for one in nodes], asked


class Machine(RuleBasedStateMachine):
    """Nodes come, change and leave, as the ledger tells it; constraints are held and let go."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = ROWS
        self.at: dict[str, int] = {}
        self.nodes: dict[int, Node] = {}
        self.facts = Facts(ROWS)
        self.constraints = Constraints(self.facts, ROWS)
        self.held: list[Constraint] = []
        self.numbers: dict[Constraint, int] = {}

    @rule(some=st.lists(NODES, min_size=1, max_size=ROWS))
    def nodes_come_or_change(self, some: list[Node]) -> None:
        for each in some:
            at = self.at.get(each.name)
            if at is None:
                if len(self.nodes) == self.rows:
                    self.rows *= 2
                    self.facts.grow(self.rows)
                    self.constraints.grow(self.rows)
                at = min(set(range(self.rows)).difference(self.nodes))
            else:
                self._leave(at)
            self.at[each.name], self.nodes[at] = at, each
            self.facts.enter(at, each)
            self.constraints.enter(at, each)

    @precondition(lambda self: self.at)
    @rule(data=st.data())
    def node_leaves(self, data: st.DataObject) -> None:
        self._leave(self.at.pop(data.draw(st.sampled_from(sorted(self.at)))))

    def _leave(self, at: int) -> None:
        self.facts.leave(at, self.nodes.pop(at))
        self.constraints.leave(at)

    @rule(constraint=CONSTRAINTS)
    def is_held(self, constraint: Constraint) -> None:
        number = self.constraints.hold(constraint)
        assert self.numbers.setdefault(constraint, number) == number
        assert len(set(self.numbers.values())) == len(self.numbers)
        self.held.append(constraint)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def is_let_go(self, data: st.DataObject) -> None:
        constraint = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.constraints.let_go(constraint)
        if constraint not in self.held:
            del self.numbers[constraint]

    @invariant()
    def bits_are_what_each_node_says(self) -> None:
        known = self.constraints
        for constraint, number in self.numbers.items():
            rows = {at for at, each in self.nodes.items() if admits(each, constraint)}
            assert set(np.flatnonzero(known.mask(number)).tolist()) == rows
            assert known.nodes(number) == as_set(known.mask(number)) == sum(1 << at for at in rows)
            assert known.count(number) == len(rows)
            for at in range(self.rows):
                assert known.admits(number, at) is (at in rows)
                assert bool(known.admitting(at)[number]) is (at in rows)
        assert known.check()

    @rule(constraint=CONSTRAINTS)
    def facts_are_what_each_node_says(self, constraint: Constraint) -> None:
        for found, holds in (
            (self.facts.admitting(constraint), lambda each: admits(each, constraint)),
            (self.facts.in_service, in_service),
        ):
            rows = {at for at, each in self.nodes.items() if holds(each)}
            assert set(np.flatnonzero(found).tolist()) == rows
        for key in KEYS:
            assert set(self.facts.label(key).values()) == {
                value for each in self.nodes.values() for name, value in each.labels if name == key
            }


@pytest.mark.drawn
def test_bits_and_facts_agree_with_each_node_through_any_history() -> None:
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=budget.examples(60), stateful_step_count=25)
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.sampled_from("abcdef"))))
def test_equal_values_have_one_code_and_codes_are_used_again(
    changes: list[tuple[int, str | None]],
) -> None:
    codes: Codes[str] = Codes(2)
    codes.grow(4)
    values: list[str | None] = [None] * 4
    for at, value in changes:
        codes.set(at, value)
        values[at] = value
        assert [codes.value(code) for code in codes.of.tolist()] == values
        assert [each is None for each in values] == (codes.of == ABSENT).tolist()
        assert set(codes.values()) == set(values) - {None}
        assert {codes.value(code) for code in range(codes.size)} <= {*values, None}
        assert codes.are_in(["a", "b", "z"]).tolist() == [each in ("a", "b") for each in values]
        assert codes.where(lambda each: each in (None, "c")).tolist() == [
            each in (None, "c") for each in values
        ]
    assert codes.size <= 1 + 4 + 1, "four rows, and one that changes has two for a moment"
    assert codes.code("none has it") == codes.size


def test_rows_that_were_read_grow_with_the_others() -> None:
    facts = Facts(8)
    constraints = Constraints(facts, 8)
    number = constraints.hold(Constraint())
    assert len(constraints.mask(number)) == 8
    constraints.grow(16)
    assert len(constraints.mask(number)) == 16
