"""Columns: all nodes at once have the slots that each has by itself, exactly, for any amounts."""

import pickle
from itertools import product

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from mcad.core.nodes.columns import (
    AMOUNT_MAX,
    ROWS_MIN,
    UNBOUNDED,
    Columns,
    Slots,
    counted,
    offered,
    slots,
    take_slots,
)

NAMES = ("cpu", "gpu", "memory", "pods")
INT64_MAX = 2**63 - 1
EDGES = (1, 2, 2**31, 2**53, AMOUNT_MAX - 1, AMOUNT_MAX, AMOUNT_MAX + 1, INT64_MAX)
AMOUNTS = st.one_of(st.integers(1, 9), st.sampled_from(EDGES), st.integers(1, INT64_MAX))
FREE = st.one_of(AMOUNTS.map(offered), st.integers(-9, 0), st.just(-AMOUNT_MAX))
ROWS = st.dictionaries(
    st.integers(0, ROWS_MIN + 7), st.dictionaries(st.sampled_from(NAMES), FREE), max_size=6
)
REQUESTS = st.dictionaries(st.sampled_from(NAMES), AMOUNTS, min_size=1).map(
    lambda amounts: tuple(amounts.items())
)
CAPS = st.sampled_from([1, 2, UNBOUNDED])


def columns_of(rows: dict[int, dict[str, int]]) -> Columns:
    """Columns that have grown, and in which other amounts were before."""
    columns = Columns()
    columns.set(0, {"cpu": 7, "gone": 7})
    columns.set(0, {})
    columns.grow(ROWS_MIN + 8)
    for at, amounts in rows.items():
        columns.add(at, [("cpu", 5), ("pods", 1)], 3)
        columns.set(at, amounts)
    return columns


@example({3: dict.fromkeys(NAMES[:2], 9)}, ((NAMES[0], 1), (NAMES[1], 4)), UNBOUNDED, set())
@given(ROWS, REQUESTS, CAPS, st.sets(st.integers(0, ROWS_MIN + 7)))
def test_slots_of_all_rows_are_those_of_each(
    rows: dict[int, dict[str, int]], request: tuple[tuple[str, int], ...], cap: int, out: set[int]
) -> None:
    columns = columns_of(rows)
    each = {
        at: max(0, min(cap, *(free.get(name, 0) // n for name, n in request)))
        for at, free in sorted(rows.items())
    }
    among = np.ones(columns.rows, np.bool_)
    some = among.copy()
    some[list(out)] = False
    found = columns.slots(request, cap, among)

    assert dict(found.pairs()) == {at: n for at, n in each.items() if n}
    assert found.free.tolist() == [rows[at][request[0][0]] for at, _ in found.pairs()]
    assert found.total == sum(each.values())
    assert dict(columns.slots(request, cap, some).pairs()) == dict(found.among(some).pairs())
    assert dict(found.among(some).pairs()) == {a: n for a, n in found.pairs() if a not in out}
    for at, free in rows.items():
        assert columns.slots_at(at, request, cap) == slots(free, request, cap) == each[at]


@given(ROWS, ROWS, st.integers(-2, 2))
def test_rows_are_changed_one_by_one_and_a_copy_by_itself(
    rows: dict[int, dict[str, int]], more: dict[int, dict[str, int]], times: int
) -> None:
    columns = columns_of(rows)
    copied = columns.copy(NAMES)
    for at, amounts in more.items():
        copied.add(at, amounts.items(), times)
    for at in range(columns.rows):
        before, added = rows.get(at, {}), more.get(at, {})
        for name in NAMES:
            n = before.get(name, 0)
            assert columns.get(at, name) == columns.row(at).get(name, 0) == n
            assert copied.get(at, name) == n + added.get(name, 0) * times
    everywhere = np.ones(columns.rows, np.bool_)
    for name in (*NAMES, "unknown"):
        lent = sum(max(0, amounts.get(name, 0)) for amounts in rows.values())
        assert columns.to_lend(name, everywhere) == lent


@given(ROWS)
def test_a_snapshot_of_the_journal_has_them_to_be_changed(rows: dict[int, dict[str, int]]) -> None:
    columns = columns_of(rows)
    again = pickle.loads(pickle.dumps(columns))

    assert [again.row(at) for at in range(again.rows)] == [
        columns.row(at) for at in range(columns.rows)
    ]
    again.add(3, [("cpu", 1)], 1)
    assert again.get(3, "cpu") == columns.get(3, "cpu") + 1


@given(
    st.lists(st.tuples(st.integers(1, 5) | st.just(2**15 - 1), st.integers(1, 5)), max_size=6),
    st.sampled_from([1, 2**30]),
    st.integers(1, 20) | st.just(2**40),
    st.booleans(),
)
def test_slots_are_taken_where_the_fewest_are_or_the_most_then_where_the_least_is_free(
    there: list[tuple[int, int]], unit: int, pods: int, most_first: bool
) -> None:
    here = np.array([n for n, _ in there], np.int64)
    free = np.array([n * unit for _, n in there], np.int64)
    rows = np.arange(len(there)) * 3 + 1
    in_order = sorted(
        zip(rows.tolist(), here.tolist(), free.tolist(), strict=True),
        key=lambda each: (-each[1] if most_first else each[1], each[2]),
    )
    expected, left = [], pods
    for at, n, _ in in_order:
        if left:
            expected.append((at, min(left, n)))
            left -= min(left, n)

    given_slots = Slots(rows, here, free)
    assert list(take_slots(given_slots, pods, most_first=most_first).pairs()) == expected
    assert here.tolist() == [n for n, _ in there], "what is taken from is as it was"


def test_amounts_count_so_that_what_fits_does_not_depend_on_the_largest() -> None:
    for n, there in product(EDGES, repeat=2):
        assert counted(n) <= AMOUNT_MAX + 1
        assert (counted(n) <= offered(there)) is (n <= offered(there))
