"""Live states of every kind are read as their controllers act."""

from __future__ import annotations

import pytest

from mcad.api.kinds import KINDS
from mcad.core.state.model import ItemState
from mcad.core.state.quotation import quoted
from tests.api.live import table_apps, table_batch, table_operators, table_ray
from tests.api.live.states import State, States, read, wants

TABLES: dict[str, States] = (
    table_apps.TABLE | table_batch.TABLE | table_operators.TABLE | table_ray.TABLE
)
ROWS = {f"{kind} {name}": row for kind, rows in TABLES.items() for name, row in rows.items()}
ENDS = (ItemState.SUCCEEDED, ItemState.FAILED)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_live_state_is_read_as_its_controller_acts(row: State) -> None:
    child = read(row)
    assert (child.wants, child.state) == (wants(row.pods), row.state)
    for field, value in row.says.items():
        wanted = quoted(value) if field == "words" else value
        assert getattr(child, field) == wanted, field


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_what_holds_of_every_state(row: State) -> None:
    child = read(row)
    assert row.thing["kind"] == "Widget" or child.state is not ItemState.UNKNOWN
    assert not (child.ended and child.state not in ENDS), "an end without an end"
    assert bool(child.suspended) >= (child.state is ItemState.SUSPENDED)
    assert child.state is not ItemState.RETRYING or "failed" not in child.met
    assert child.state not in ENDS or not any(one.later for one in child.wants if one is not None)


def test_each_kind_of_the_table_has_at_least_six_states() -> None:
    templates_only = {"PodTemplate"}
    assert set(TABLES) - {"Widget"} == {kind for _, kind in KINDS} - templates_only
    few = {kind: len(rows) for kind, rows in TABLES.items() if len(rows) < 6}
    assert not few
