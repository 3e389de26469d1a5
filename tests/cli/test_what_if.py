"""``mcad what-if``: what differs in the next cycles of the dispatcher."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cluster import crowd
from tests.cli.conftest import Type
from tests.cli.test_submit import wrapper, write
from tests.fakeapi import FakeApi

FIRST, SECOND = "0001-aw-generic-deployment-1", "0002-aw-generic-deployment-2"


def test_without_another_one_it_starts(mcad: Type) -> None:
    result = mcad("what-if", "--without", FIRST)
    assert result.exit_code == 0, result.output
    assert [line.split() for line in result.stdout.splitlines()[1:]] == [
        [f"default/{SECOND}", "number", "1", "in", "line", "(cpu)", "starts"],
        [f"default/{FIRST}", "Running", "<none>"],
    ]


def test_with_more_nodes_it_starts(mcad: Type) -> None:
    told = json.loads(mcad("what-if", "--nodes", "+1", "--like", "minikube", "-o", "json").stdout)
    (change,) = told["changes"]
    assert change["appwrapper"] == f"default/{SECOND}"
    assert (change["now"]["startsNext"], change["then"]["startsNext"]) == (False, True)


def test_one_that_was_never_created(mcad: Type, tmp_path: Path) -> None:
    path = write(tmp_path, wrapper("mine"))
    result = mcad("what-if", "-f", str(path))
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1].split()[:2] == ["default/mine", "<none>"]


def test_submit_shows_the_same_before_anything_is_sent(
    mcad: Type, api: FakeApi, tmp_path: Path
) -> None:
    path = write(tmp_path, wrapper("mine"))
    result = mcad("submit", path, "--dry-run=queue")
    assert result.stdout == mcad("what-if", "-f", path).stdout
    assert "default/mine" in result.stdout
    assert not [one for one in api.requests if one.method == "POST" and "visib" not in one.path]
    assert mcad("submit", path, "--dry-run=queue", "-o", "name").exit_code == 2


def test_nothing_differs(mcad: Type) -> None:
    result = mcad("what-if", "--set", "backoffTime=21")
    assert result.stdout == "Nothing would differ in the next cycles.\n"


@pytest.mark.parametrize("api", [crowd()])
def test_those_that_only_move_in_the_line_come_last(mcad: Type) -> None:
    lines = mcad("what-if", "--nodes", "+2", "--like", "node-a").stdout.splitlines()
    assert lines[1].split() == ["team-a/urgent", *["number", "1", "in", "line", "(cpu)", "starts"]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "say what is different"),
        (("--nodes", "+1"), "--nodes and --like go together"),
        (("--nodes", "+1", "--like", "minikub"), 'there is no node "minikub". Did you mean'),
        (("--without", "x"), '--without: there is no AppWrapper "default/x"'),
        (("--quota", "teams", "cpu=1"), '"teams" is not TREE/NODE'),
        (("--quota", "teams/red", "cpu"), '"cpu" is not RESOURCE=AMOUNT'),
        (("--quota", "teams/red", "cpu=x"), "--quota: cpu: 'x' is not a quantity"),
        (("--quota", "teams/red", "cpu=1"), 'no node "red" in a quota tree "teams"'),
        (("--set", "policy=Nonsense"), "policy"),
    ],
)
def test_a_mistake_is_told_with_its_flag(mcad: Type, given: tuple[str, ...], said: str) -> None:
    result = mcad("what-if", *given)
    missing = "there is no" in said or "no node" in said
    assert result.exit_code in ((4,) if missing else (1, 2))
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
