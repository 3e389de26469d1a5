"""``mcad what-if --drain`` in the tutorial's cluster, which has one node, and in one with two."""

from __future__ import annotations

import json

import pytest

from tests.cli.cluster import node, tutorial
from tests.cli.conftest import Type
from tests.fakeapi import FakeApi


def two_nodes() -> FakeApi:
    api = tutorial()
    api.put("nodes", node("second", cpu="2", memory="4Gi"))
    return api


def test_without_another_node_there_is_no_place(mcad: Type) -> None:
    result = mcad("what-if", "--drain", "minikube")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["APPWRAPPER", "PODS", "FIT", "ON", "NO", "PLACE"]
    assert lines[1].split() == ["default/0001-aw-generic-deployment-1", "2", "<none>", "2"]
    assert lines[2] == "1 pod there has no AppWrapper: not planned."


@pytest.mark.parametrize("api", [two_nodes()])
def test_pods_fit_on_the_other_node(mcad: Type) -> None:
    (move,) = json.loads(mcad("what-if", "--drain", "minikube", "-o", "json").stdout)["moves"]
    assert (move["places"], move["unplaced"]) == ({"second": 2}, 0)
    assert mcad("what-if", "--drain", "node/second").stdout == "No pods of AppWrappers are there.\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--drain", "minikub"), 'there is no node "minikub". Did you mean "minikube"?'),
        (("--drain", "minikube", "--without", "a"), "--drain is asked alone"),
        (("--drain", "minikube", "--until", "2026-11-29T00:00:00Z"), "--drain is asked alone"),
        ((), "--set or --drain"),
    ],
)
def test_what_cannot_be_planned_is_said(mcad: Type, given: tuple[str, ...], said: str) -> None:
    result = mcad("what-if", *given)
    assert result.exit_code != 0
    assert said in result.stderr
