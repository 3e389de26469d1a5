"""Suspended and deleted in every phase, and in every state of MCAD's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.lifecycle.objects import (
    CONFIGMAPS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    annotated,
    await_phase,
    generic,
    job,
    owned,
    owned_or_all,
)
from tests.e2e.lifecycle.phases import HELD, PAUSING, PHASES, brought_to, released
from tests.e2e.support import (
    appwrappers_path,
    create,
    delete,
    deployment,
    patch,
    pod,
    states,
    status_of,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]


SUSPENDED = {phase: phase for phase in PHASES} | {
    "Resuming": "Suspended",
    "Running": "Suspended",
    "Resetting": "Suspending",
    PAUSING: "Suspended",
}
RESUMED = {phase: phase for phase in PHASES} | {PAUSING: "Running"}
RELEASED = {"Resuming": "Running", "Suspending": "Running"}


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("phase", PHASES)
def test_suspend_may_be_set_and_unset_in_every_phase(plane: ControlPlane, phase: str) -> None:
    name = f"to-suspend-{PHASES.index(phase)}"
    brought_to(plane, phase, name)
    patch(plane, name, {"spec": {"suspend": True}})
    await_phase(plane, name, SUSPENDED[phase])
    if SUSPENDED[phase] in ("Suspended", "Failed"):
        plane.wait_for(
            lambda: not owned(plane, JOBS) and not owned(plane, PODS), 60, "nothing is left"
        )
    patch(plane, name, {"spec": {"suspend": False}})
    await_phase(plane, name, RESUMED[phase])
    released(plane, phase, name)
    if phase in RELEASED:
        await_phase(plane, name, RELEASED[phase])
    if phase == "Resetting":
        plane.wait_for(
            lambda: status_of(plane, name)["dispatch"]["attempt"] > 1, 60, "it is tried again"
        )
    if phase == "Terminating":
        plane.wait_for(lambda: owned_or_all(plane, appwrappers_path()) == [], 60, "it is gone")


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("phase", PHASES)
def test_it_may_be_deleted_in_every_phase(plane: ControlPlane, phase: str) -> None:
    name = f"to-delete-{PHASES.index(phase)}"
    brought_to(plane, phase, name)
    plane.request("DELETE", f"{appwrappers_path()}/{name}")
    if phase in HELD:
        plane.wait_for(lambda: owned(plane, JOBS) == owned(plane, PODS) == [], 60, "the rest goes")
        assert owned(plane, CONFIGMAPS) == [name]
    released(plane, phase, name)
    for path in (appwrappers_path(), JOBS, PODS, DEPLOYMENTS, CONFIGMAPS):
        plane.wait_for(lambda path=path: owned_or_all(plane, path) == [], 60, f"no {path} is left")


MCADS = {
    "waiting": "Pending",
    "running": "Running",
    "holding": "RunningHoldCompletion",
    "late": "Failed",
    "done": "Completed",
    "given-up": "Deleted",
}
"""Names of AppWrappers of MCAD's dialect, and the states that they come to."""


def _in_mcads_states(plane: ControlPlane) -> None:
    def said(template: Json, word: str) -> Json:
        return {"generictemplate": template, "completionstatus": word}

    never = annotated(deployment("given-up", 1), start_delay="1h")
    rules = {"minAvailable": 1, "requeuing": {"timeInSeconds": 1, "maxNumRequeuings": 1}}
    holding = generic("holding", deployment("holding", 1))
    holding["spec"]["resources"]["GenericItems"] = [said(deployment("holding", 1), "Progressing")]
    done = generic("done", job("done", "sleep 1"))
    done["spec"]["resources"]["GenericItems"] = [said(job("done", "sleep 1"), "Complete")]
    limit = {"dispatchDuration": {"limit": 1}}
    create(plane, generic("given-up", never, schedulingSpec=rules))
    create(plane, generic("late", deployment("late", 1), schedulingSpec=limit))
    create(plane, generic("waiting", pod("waiting", cpu="999")))
    create(plane, generic("running", deployment("running", 1)))
    create(plane, holding)
    create(plane, done)
    plane.wait_for(lambda: states(plane) == MCADS, 90, f"these states: {MCADS}")
    status = status_of(plane, "done")
    assert (status["Succeeded"], status["totalcpu"]) == (1, 100)


def test_suspend_and_deletion_in_mcads_states(plane: ControlPlane) -> None:
    _in_mcads_states(plane)
    for name in MCADS:
        patch(plane, name, {"spec": {"suspend": True}})
    held = MCADS | {"running": "Pending", "holding": "Pending"}
    plane.wait_for(
        lambda: states(plane) == held and not owned(plane, DEPLOYMENTS), 60, "what ran is held"
    )
    for name in MCADS:
        patch(plane, name, {"spec": {"suspend": False}})
    plane.wait_for(lambda: states(plane) == MCADS, 60, "what was held runs again")
    delete(plane)
    for path in (JOBS, PODS, DEPLOYMENTS):
        plane.wait_for(lambda path=path: owned(plane, path) == [], 60, f"no {path} is left")
