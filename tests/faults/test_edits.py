"""One edit at every write about what it edits: all is whole in the end, and nothing doubled.

Of what is edited another attempt may be made, so its objects may be others in the end.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcad.kube.client import Client
from mcad.kube.errors import ApiError
from tests import budget
from tests.faults.edits import Edit, patches
from tests.faults.histories import arrive
from tests.faults.injection import Plan
from tests.faults.scenarios import (
    COMPLETED,
    IN_TURN,
    KEPT_AND_CLEARED,
    LATE,
    RECLAIMED,
    REQUEUED,
    RESET,
    ROLLED_BACK,
    SCENARIOS,
    SUSPENDED,
    Action,
    Json,
    Scenario,
    create,
    deployment,
    job,
    pod,
)
from tests.faults.upheavals import Upheaval
from tests.faults.weather import Terminated, Weather
from tests.faults.world import Outcome, run, undisturbed
from tests.manifests import components, config_map, generic

WRITES_OF_AN_EDIT = 16  # an attempt is taken back, and another one is made of what was edited
LENT_MEANWHILE = 12  # while no attempt has the share another team borrows it, and gives it back
IN_A_ROW = 10
SHARE = 12  # of the writes one in so many has its edit or upheaval in a push
TOGGLED_FROM = 3
FORGED_AT = 2
REPLACED_AT = 4
LASTING = (COMPLETED, ROLLED_BACK, SUSPENDED, RESET, LATE, KEPT_AND_CLEARED, REQUEUED)
"""In these no AppWrapper is deleted or made anew."""
EDITS = [one for one in Edit if one is not Edit.DELETED]


def moments(scenario: Scenario, edit: Edit) -> list[int]:
    """The writes before which the edit changes something."""
    about = enumerate(one.about for one in undisturbed(scenario).moments)
    return [k for k, found in about if found is not None and patches(found, edit)]


@pytest.mark.parametrize("scenario", budget.half(SCENARIOS, "edits"), ids=lambda one: one.name)
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
            most = WRITES_OF_AN_EDIT + LENT_MEANWHILE * (scenario is RECLAIMED)
            assert outcome.writes <= expected.writes + most, where


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


# -- upheavals: foreground deletion, replacement by force, the end of a namespace, forgery -------


FORGERIES = (Upheaval.FORGED_HERE, Upheaval.FORGED_ELSEWHERE)


def once(scenario: Scenario, upheaval: Upheaval, number: int) -> tuple[Outcome, bool]:
    """The outcome with an upheaval at one write, and whether it came to bear."""
    weather = Weather()
    outcome = run(scenario, Plan({number: upheaval}.get, weather=weather))
    return outcome, bool(weather.occurred[upheaval.name])


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: one.name.lower())
@pytest.mark.parametrize("scenario", [IN_TURN, COMPLETED, RESET], ids=lambda one: one.name)
def test_a_forged_object_moves_nothing(scenario: Scenario, forgery: Upheaval) -> None:
    """Not one write is another one."""
    expected, forged = undisturbed(scenario), 0
    for k in budget.draw(range(expected.writes), FORGED_AT, forgery.name, scenario.name):
        outcome, has_occurred = once(scenario, forgery, k)
        forged += has_occurred
        assert sorted(outcome.requests) == sorted(expected.requests), f"write {k}"
        assert outcome.objects == expected.objects, f"write {k}"
    assert forged


def test_one_that_is_replaced_by_force_starts_anew_and_ends_as_before() -> None:
    for k in budget.draw(range(undisturbed(COMPLETED).writes), REPLACED_AT, "completed"):
        outcome, has_occurred = once(COMPLETED, Upheaval.FORCE_REPLACED, k)
        assert (outcome.lives, has_occurred) == (1, True), f"write {k}"


def test_one_that_is_replaced_by_force_queues_behind_the_others() -> None:
    """In whatever phase it is then, what it had is gone before it has it again."""
    anywhere = replace(RESET, ends={"a": "*", "b": "Running"})
    for k in budget.draw(range(undisturbed(RESET).writes), REPLACED_AT, "reset"):
        assert once(anywhere, Upheaval.FORCE_REPLACED, k)[1], f"write {k}"


@pytest.mark.parametrize("scenario", LASTING, ids=lambda one: one.name)
def test_one_that_is_deleted_in_the_foreground_is_gone_and_leaves_nothing(
    scenario: Scenario,
) -> None:
    acts = tuple((at_s, if_there(act)) for at_s, act in scenario.acts)
    found = enumerate(one.about for one in undisturbed(scenario).moments)
    abouts = [(k, about) for k, about in found if about is not None]
    for k, about in budget.draw(abouts, 1 + len(abouts) // SHARE, scenario.name):
        name = about["metadata"]["name"]
        ends = {one: "" if one == name else "*" for one in scenario.ends}
        outcome, _ = once(replace(scenario, ends=ends, acts=acts), Upheaval.FOREGROUND, k)
        left = [one for one in outcome.objects if one.split("/")[1].split("-")[0] == name]
        assert (outcome.lives, left) == (1, []), f"write {k}: {name}"


def at_home(obj: Json) -> Scenario:
    """It comes to the namespace of guests, among others that stay."""
    return Scenario(
        "a namespace ends",
        cpus=(2, 2),
        acts=(
            (0.0, create(generic("a", deployment("a", 1), config_map("a")))),
            (1.0, lambda user: arrive(obj, user)),
            (2.0, create(components("b", deployment("b", 2), job("b", 1, 20)))),
        ),
        ends={"a": "Running", "b": "Running", "guest": ""},
    )


WRITES_ABOUT_A_GUEST = 6
GUESTS = (
    generic("guest", config_map("g"), deployment("g", 1), pod("g")),
    components("guest", config_map("g"), deployment("g", 1), job("g", 1, 10)),
)


@pytest.mark.parametrize("guest", GUESTS, ids=["v1beta1", "v1beta2"])
def test_one_whose_namespace_ends_is_gone_and_the_others_run(guest: Json) -> None:
    """At each write about it; what comes of the room is the others'."""
    for k in range(WRITES_ABOUT_A_GUEST):
        weather = Weather((Terminated(k),))
        outcome = run(at_home(guest), Plan(weather=weather))
        left = [one for one in outcome.objects if one.split("/")[1] in ("g", "guest")]
        assert (weather.occurred["TERMINATED"], left) == (1, []), f"write {k}"
