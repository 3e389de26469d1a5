"""One edit at every write about what it edits: all is whole in the end, and nothing doubled.

Of what is edited another attempt may be made, so its objects may be others in the end.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcad.kube.client import Client
from mcad.kube.errors import ApiError
from tests import budget
from tests.faults.catalog import SCENARIOS
from tests.faults.injection import Plan
from tests.faults.meddling import Edit, patches
from tests.faults.scenarios import (
    COMPLETED,
    IN_TURN,
    KEPT_AND_CLEARED,
    LATE,
    REQUEUED,
    RESET,
    ROLLED_BACK,
    SUSPENDED,
    Action,
    Scenario,
)
from tests.faults.world import run, undisturbed

WRITES_OF_AN_EDIT = 16  # an attempt is taken back, and another one is made of what was edited
IN_A_ROW = 10
SHARE = 5  # of the moments one in so many has its edit in a push
TOGGLED_FROM = 6
LASTING = (COMPLETED, ROLLED_BACK, SUSPENDED, RESET, LATE, KEPT_AND_CLEARED, REQUEUED)
"""In these nobody deletes an AppWrapper or makes it anew."""
EDITS = [one for one in Edit if one is not Edit.DELETED]


def moments(scenario: Scenario, edit: Edit) -> list[int]:
    """The writes before which the edit changes something."""
    about = enumerate(one.about for one in undisturbed(scenario).moments)
    return [k for k, found in about if found is not None and patches(found, edit)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_one_edit_at_any_write_leaves_everything_whole(scenario: Scenario) -> None:
    expected = undisturbed(scenario)
    acts = tuple((at_s, if_there(act)) for at_s, act in scenario.acts)
    for edit in EDITS:
        found = moments(scenario, edit)
        for k in budget.draw(found, 1 + len(found) // SHARE, edit.name, scenario.name):
            plan = Plan(writes=lambda number, k=k, edit=edit: edit if number == k else None)
            outcome = run(replace(scenario, acts=acts), plan)
            where = f"{edit.value}: write {k}, {expected.requests[k]}"
            assert outcome.lives == 1, where
            assert outcome.writes <= expected.writes + WRITES_OF_AN_EDIT, where


def test_every_edit_has_its_moments() -> None:
    for edit in EDITS:
        assert sum(len(moments(scenario, edit)) for scenario in SCENARIOS) >= 50
    assert moments(IN_TURN, Edit.TOGGLED) == list(range(undisturbed(IN_TURN).writes))


@pytest.mark.parametrize("scenario", LASTING, ids=lambda one: one.name)
def test_one_that_is_deleted_at_any_write_is_gone_and_leaves_nothing(scenario: Scenario) -> None:
    """In whatever phase it is then."""
    found = enumerate(one.about for one in undisturbed(scenario).moments)
    abouts = [(k, about) for k, about in found if about is not None]
    for k, about in budget.draw(abouts, 1 + len(abouts) // SHARE, scenario.name):
        name = about["metadata"]["name"]
        ends = {one: "" if one == name else "*" for one in scenario.ends}
        acts = tuple((at_s, if_there(act)) for at_s, act in scenario.acts)
        plan = Plan(writes=lambda number, k=k: Edit.DELETED if number == k else None)
        outcome = run(replace(scenario, ends=ends, acts=acts), plan)
        left = [one for one in outcome.objects if one.split("/")[1].split("-")[0] == name]
        assert (outcome.lives, left) == (1, []), f"write {k}: {name}"


def if_there(act: Action) -> Action:
    """What users do with what may be deleted."""

    async def tried(client: Client) -> object:
        try:
            return await act(client)
        except ApiError as error:
            if not error.not_found:
                raise
            return None

    return tried


@pytest.mark.parametrize("scenario", [IN_TURN, SUSPENDED], ids=lambda one: one.name)
def test_whoever_toggles_all_the_time_gets_no_more_than_pauses(scenario: Scenario) -> None:
    """From any write on, at each of so many: every attempt costs a toggle, and they wait."""
    expected = undisturbed(scenario)
    for k in budget.draw(range(expected.writes), TOGGLED_FROM, scenario.name):
        plan = Plan(writes=lambda number, k=k: Edit.TOGGLED if k <= number < k + IN_A_ROW else None)
        outcome = run(scenario, plan)
        where = f"writes from {k} on, {expected.requests[k]}"
        assert outcome.lives == 1, where
        assert outcome.writes <= expected.writes + 2 * IN_A_ROW, where
