"""Objects that their controllers remove when they end: the outcome is known all the same, whatever
happened to dispatchers meanwhile, and nothing runs twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.operators import JOBSET, Operators
from tests.e2e import fleet
from tests.e2e.process import Dispatcher
from tests.e2e.running.case import DIALECTS, Case

pytestmark = pytest.mark.controlplane

LONG = 60
TTL = 5
KEPT = 3


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """With JobSet's operator, which removes JobSets by their TTL as well."""
    with Operators(control_plane, JOBSET):
        yield control_plane


def submitted(plane: ControlPlane, variant: str, name: str = "ttl") -> list[Case]:
    """The case in both dialects, each running its pod."""
    found = [Case(plane, name, dialect, ("2",), f"-{variant}") for dialect in DIALECTS]
    for one in found:
        one.add_nodes()
    plane.wait_for_nodes(node for one in found for node in one.nodes)
    for one in found:
        one.completion = "Completed" if name == "ttl-jobset" else "Complete"
        one.submit()
    for one in found:
        one.wait_for_pods(1)
    return found


def end_all(cases: list[Case]) -> None:
    """Every pod succeeds, and the objects have ended or are gone."""
    for one in cases:
        (pod,) = one.pods()
        one.end_pod(pod, 0)
    for one in cases:
        one.plane.wait_for(lambda one=one: has_ended(one), LONG, f"{one.pool}: it ends")


def has_ended(case: Case) -> bool:
    """Its object is gone, or says so."""
    found = case.item()
    conditions = found.get("status", {}).get("conditions", [])
    done = {one["type"] for one in conditions if one["status"] == "True"}
    return not found or bool(done & {"Complete", "Completed"})


def check_it_ran_once(case: Case) -> None:
    """Completed, after one creation; then its object goes, as its TTL says."""
    plane = case.plane
    plane.wait_for(
        lambda: case.state() not in ("", "Pending", "Running"), LONG, f"{case.pool}: an outcome"
    )
    assert case.state() == "Completed", case.status()
    plural = case.item_path.split("/")[-2]
    made = [
        one.name
        for one in fleet.ours(plane.audit())
        if (one.verb, one.resource, one.code) == ("create", plural, 201)
        and one.namespace == case.pool
    ]
    assert made == [case.name]
    plane.wait_for(lambda: not case.item(), LONG, f"{case.pool}: its object goes")
    assert case.state() == "Completed"


@pytest.mark.parametrize("name", ["ttl", "ttl-jobset"])
def test_it_ends_while_no_dispatcher_runs(plane: ControlPlane, account: Path, name: str) -> None:
    with Dispatcher(plane, account) as first:
        cases = submitted(plane, "alone", name)
        first.kill()
    end_all(cases)
    with Dispatcher(plane, account):
        for one in cases:
            check_it_ran_once(one)


def test_it_ends_before_a_warm_standby_leads(plane: ControlPlane, account: Path) -> None:
    leader = Dispatcher(plane, account, name="first").start()
    standby = Dispatcher(plane, account, name="second").start(leads=False)
    with ExitStack() as stack:
        stack.push(leader.__exit__)
        stack.push(standby.__exit__)
        plane.wait_for(lambda: "copy is complete" in standby.log(), LONG, "a warm standby")
        cases = submitted(plane, "standby")
        leader.kill()
        end_all(cases)
        assert standby.get("/readyz")[1].startswith("standby"), "they ended before it led"
        plane.wait_for(lambda: standby.get("/readyz")[1] == "ok\n", LONG, "it leads")
        for one in cases:
            check_it_ran_once(one)


def test_its_object_stays_for_its_ttl_and_has_none_itself(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    cases = [Case(plane, "ttl", dialect, ("2",), "-later") for dialect in DIALECTS]
    for one in cases:
        one.template["spec"]["ttlSecondsAfterFinished"] = TTL
        one.completion = "Complete"
        one.add_nodes()
    plane.wait_for_nodes(node for one in cases for node in one.nodes)
    for one in cases:
        one.submit()
        one.wait_for_pods(1)
        assert "ttlSecondsAfterFinished" not in one.item()["spec"]
    end_all(cases)
    for one in cases:
        plane.wait_for(lambda one=one: one.state() == "Completed", KEPT, "it is told at once")
        assert one.item(), "it stays for a while"
    for one in cases:
        check_it_ran_once(one)
