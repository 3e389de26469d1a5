"""``mcad why``: the reason, the holders, and what would start an AppWrapper now."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcad.cli.pages.colours import PLAIN
from mcad.cli.pages.why import page
from tests.cli.cluster import appwrapper, crowd, deployment, tutorial
from tests.cli.conftest import Type
from tests.fakeapi import FakeApi

NAME = "0002-aw-generic-deployment-2"


def test_the_page_says_what_holds_it_and_what_would_start_it(mcad: Type) -> None:
    result = mcad("why", NAME)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "Waits for:    cpu" in lines
    assert "  default/0001-aw-generic-deployment-1   200m" in lines
    assert lines[-4:] == [
        "Would start it now, each by itself:",
        "  If default/0001-aw-generic-deployment-1 ends.",
        "  1 more node like minikube.",
        "  cpu: 25m instead of 75m per pod.",
    ]


def test_the_state_is_painted_and_printed_as_it_is(mcad: Type) -> None:
    coloured = mcad("why", NAME, "--color", "always").stdout
    assert "State:        \x1b[33mPending (Backoff)\x1b[0m" in coloured.splitlines()


def test_scripts_get_the_same(mcad: Type) -> None:
    told = json.loads(mcad("why", f"aw/{NAME}", "-o", "json").stdout)
    assert (told["name"], told["waitsFor"], told["startsNext"]) == (NAME, "cpu", False)
    assert told["heldBy"] == {
        "resource": "cpu",
        "appwrappers": [{"appwrapper": "default/0001-aw-generic-deployment-1", "amount": "200m"}],
        "more": 0,
        "others": "1750m",
    }
    assert [(one["kind"], one["number"]) for one in told["wouldStart"]] == [
        ("ends", 1),
        ("nodes", 1),
        ("request", 25),
    ]
    assert told["wouldStart"][0]["appwrappers"] == ["default/0001-aw-generic-deployment-1"]


@pytest.mark.parametrize("api", [crowd()])
def test_several_are_told_one_after_the_other(mcad: Type) -> None:
    result = mcad("why", "fits", "suspended")
    assert "Why:          It fits and is dispatched next." in result.stdout
    assert "  If spec.suspend is set to false." in result.stdout
    assert len(json.loads(mcad("why", "fits", "suspended", "-o", "json").stdout)["items"]) == 2


@pytest.mark.parametrize("api", [crowd()])
def test_what_no_trial_can_answer_is_not_said_to_be_tried(mcad: Type) -> None:
    """An AppWrapper out of the line waits for what its reason names."""
    assert "Would start" not in mcad("why", "unknown-kind").stdout


def picky() -> FakeApi:
    """An AppWrapper for a kind of node that the cluster does not have."""
    api = tutorial()
    item = deployment("picky", replicas=1, cpu="1m", memory="1Mi")
    item["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    api.put("appwrappers", appwrapper("picky", "uid-picky", "07:30:00", item))
    return api


@pytest.mark.parametrize("api", [picky()])
def test_trials_without_a_result_are_told(mcad: Type) -> None:
    lines = mcad("why", "picky").stdout.splitlines()
    assert lines[-1] == "Would start:  <none>: no single change that was tried starts it now"


@pytest.mark.parametrize("api", [crowd()])
def test_those_ahead_are_told_with_what_puts_them_there(mcad: Type) -> None:
    lines = mcad("why", "fragmented").stdout.splitlines()
    assert "Position:     2 of 5, priority 0" in lines
    ahead = "team-a/urgent (priority 10, seen 2027-01-15T07:20:00.000000Z; waits for cpu)"
    assert f"Ahead:        {ahead}" in lines


def test_a_name_that_does_not_exist(mcad: Type) -> None:
    result = mcad("why", "absent")
    assert result.exit_code == 4
    assert 'no AppWrapper "absent" in namespace default' in result.stderr


def test_a_name_may_have_its_namespace(mcad: Type) -> None:
    printed = mcad("queue", "-A", "-o", "name").stdout.split()
    assert (
        mcad("why", *printed).stdout == mcad("why", *(one.split("/")[1] for one in printed)).stdout
    )


def test_one_that_runs_waits_for_nothing(mcad: Type) -> None:
    result = mcad("why", "0001-aw-generic-deployment-1")
    assert result.exit_code == 0
    assert "Why:          <none>" in result.stdout
    assert "Would start it" not in result.stdout


def test_the_proof_has_the_figures_of_the_nodes(mcad: Type) -> None:
    lines = mcad("why", NAME, "--proof").stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("Proof:"))
    assert [line.split() for line in lines[at : at + 3]] == [
        ["Proof:", *"150m of cpu is requested, and 50m is free on these nodes:".split()],  # noqa: SIM905
        ["NODE", "CPU"],
        ["minikube", "50m"],
    ]


def test_what_an_autoscaler_is_asked_is_told() -> None:
    row = {"name": "a", "namespace": "default", "state": "Pending", "queuejobstate": "Backoff"}
    row |= {"position": 0, "waitsFor": "RoomReserved", "why": "Room is reserved.", "heldBy": None}
    asked = "Asked for nodes for 2 pods of 3 CPU; ProvisioningRequest default/a-1: Accepted."
    assert f"Scale-up:     {asked}" in [*page(row | {"scaleUp": asked}, PLAIN)]
    assert not [line for line in page(row, PLAIN) if "Scale-up" in line]


def test_where_there_is_nothing_to_list_the_proof_says_so() -> None:
    row = {
        "name": "a",
        "namespace": "default",
        "state": "Pending",
        "queuejobstate": "Queueing",
        "position": 0,
        "waitsFor": "no-node",
        "why": "No node.",
        "heldBy": None,
    }
    none: dict[str, Any] = {"proof": "sum", "resource": "cpu", "requested": "2", "available": "0"}
    proofs = {
        next(
            line
            for line in page(row | {"certificate": one}, PLAIN, with_proof=True)
            if "Proof" in line
        )
        for one in (None, none | {"nodes": []})
    }
    assert proofs == {
        "Proof:        <none>: neither room nor quota refuses it",
        "Proof:        No node admits its pods, so there is none to list.",
    }


@pytest.mark.parametrize("api", [crowd()])
def test_the_proof_of_a_set_has_the_pods_that_fit(mcad: Type) -> None:
    lines = mcad("why", "too-large", "-n", "team-a", "--proof").stdout.splitlines()
    assert "6 of cpu is requested" in next(line for line in lines if line.startswith("Proof:"))
    told = json.loads(mcad("why", "no-memory", "-o", "json").stdout)["certificate"]
    assert told["proof"] == "sum"
