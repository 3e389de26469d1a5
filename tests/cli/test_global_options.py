"""Options before and after the verb, as kubectl has them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from mcad.cli.arguments.global_options import GlobalOption, without_equals
from mcad.cli.main import COMMANDS, main
from mcad.client.scope import Target
from tests.cli.cluster import crowd, kubeconfig, tutorial
from tests.cli.conftest import FakeEnvironment
from tests.cli.test_completion import completed
from tests.fakeapi import FakeApi, answer, hang
from tests.serving import answering, served

FIRST = "0001-aw-generic-deployment-1"

Say = Callable[..., Result]


class Recorder(FakeEnvironment):
    """Remembers which API server commands ask, and how long they wait for it."""

    def __init__(self, api: FakeApi) -> None:
        super().__init__(api)
        self.targets: list[Target] = []

    @asynccontextmanager
    async def open(self, target: Target) -> Any:
        self.targets.append(target)
        yield self.api, "default"

    def namespace(self, target: Target) -> str:
        self.targets.append(target)
        return "default"


@pytest.fixture
def world() -> Recorder:
    return Recorder(crowd())


@pytest.fixture
def say(world: Recorder) -> Say:
    return lambda *args: CliRunner().invoke(main, args, obj=world)


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("-n", "team-a", "queue"), ("queue", "-n", "team-a")),
        (("-nteam-a", "queue"), ("queue", "--namespace=team-a")),
        (("-n=team-a", "queue"), ("queue", "-n", "team-a")),
        (("-n", "team-b", "queue", "-n", "team-a"), ("queue", "-n", "team-a")),
        (("-o", "name", "get", "-A"), ("get", "-A", "-o", "name")),
        (("-o=json", "get", "-A"), ("get", "-A", "-ojson")),
        (("get", "-A", "-o=yaml"), ("get", "-A", "-o", "yaml")),
        (("get", "-A", "-o=jsonpath={.kind}"), ("get", "-A", "-ojsonpath={.kind}")),
        (("--no-headers", "get", "-A"), ("get", "-A", "--no-headers")),
        (("-l", "x=y", "get", "-A"), ("get", "-A", "-l=x=y")),
        (("-o", "json", "quota"), ("quota", "show", "-o", "json")),
        (("-ojson", "-n", "team-a", "why", "urgent"), ("why", "-ojson", "team-a/urgent")),
    ],
    ids=" ".join,
)  # fmt: skip
def test_before_and_after_the_verb(words: tuple[str, ...], same: tuple[str, ...], say: Say) -> None:
    result, expected = say(*words), say(*same)
    assert (result.exit_code, result.output) == (expected.exit_code, expected.output)
    assert "No such option" not in result.output


def test_which_server_is_asked_and_as_whom(world: Recorder, say: Say) -> None:
    given = ("--context", "c", "--kubeconfig", "k", "--as", "ann", "--as-group", "a")
    target = Target("k", "c", "ann", ("a", "b"), 90.0)
    rest = ("--as-group=b", "--request-timeout", "90s")
    for words in ((*given, *rest, "get", "-A"), ("get", "-A", *given, *rest)):
        world.targets.clear()
        assert say(*words).exit_code == 0
        assert [Target(*(getattr(one, name) for name in Target.__struct_fields__))
                for one in world.targets] == [target]  # fmt: skip


def test_every_command_that_asks_a_server_has_all_of_them() -> None:
    root = click.Context(main)
    missing: list[str] = []
    for name in COMMANDS:
        command = main.get_command(root, name)
        own = {one.name: one for one in command.params}
        if "kubeconfig" in own and name not in ("run", "demo"):
            wanted = ("context", "as_user", "as_groups", "request_timeout_s")
            missing += [one for one in wanted if not isinstance(own.get(one), GlobalOption)]
        for one in ("namespace", "form", "selector", "no_headers"):
            if one in own and name != "rbac":  # where it is where to install
                assert isinstance(own[one], GlobalOption), (name, one)
    assert missing == []


@pytest.mark.parametrize("words", [("version",), ("completion", "bash"), ("crd",)])
def test_what_asks_no_server_ignores_those_about_the_server(
    words: tuple[str, ...], say: Say
) -> None:
    result = say("-n", "x", "--context", "y", "--as", "z", *words)
    assert (result.exit_code, result.output) == (0, say(*words).output)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("-l", "a=b", "version"), "-l"),
        (("--no-headers", "why", "x"), "--no-headers"),
        (("-o", "json", "logs", "x"), "-o"),
    ],
)
def test_an_option_before_a_command_that_does_not_have_it(
    words: tuple[str, ...], option: str, say: Say
) -> None:
    result = say(*words)
    command = next(one for one in words if one in COMMANDS)
    assert result.exit_code == 2
    assert f"`mcad {command}` has no option {option}" in result.stderr


def test_a_form_that_a_command_does_not_have_is_said_before_the_verb_too(say: Say) -> None:
    result = say("-o", "wide", "describe", "urgent")
    assert result.exit_code == 2
    assert "'wide' is not one of json, yaml, jsonpath=TEMPLATE" in result.stderr


def test_equals_signs_of_other_programs_are_left_alone() -> None:
    words = ["demo", "-o=json", "--", "sh", "-c=x"]
    assert without_equals(words) == ["demo", "-ojson", "--", "sh", "-c=x"]
    assert without_equals(["--reason=x", "a=b", "-o", "c=d"]) == ["--reason=x", "a=b", "-o", "c=d"]


def test_a_pause_before_the_verb_has_the_same_scope(world: Recorder, say: Say) -> None:
    assert say("-n", "team-a", "pause").stdout == "Dispatch is paused for namespace team-a.\n"


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (("capacity", "-o", "custom-columns=N:.name,S:.state"), "N "),
        (("capacity", "-o", "jsonpath={.nodes[*].name}"), "full node-a"),
        (("-o", "jsonpath={.appwrapper.name}", "describe", "team-a/urgent"), "urgent"),
        (("describe", "team-a/urgent", "-o", "custom-columns=N:.appwrapper.name"), "N\nurgent"),
        (("version", "-o", "jsonpath={.version}"), "0."),
    ],
)
def test_templates_of_other_commands(words: tuple[str, ...], paths: str, say: Say) -> None:
    result = say(*words)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(paths)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("jsonpath={.items[}", "in .items[: '[' is not a key"),
        ("jsonpath={.items[*]..name}", "in .items[*]..name: '..name': recursive descent"),
        ("custom-columns=N:.a,P:.b[", "in .b[: '[' is not a key"),
        ("custom-columns=N", "'N' is not a column: write TITLE:.path"),
    ],
)
def test_a_bad_path_is_named(form: str, words: str, say: Say) -> None:
    result = say("get", "-A", "-o", form)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_column_that_no_row_has_is_a_warning(say: Say) -> None:
    result = say("get", "-A", "--no-headers", "-o", "custom-columns=P:.posision")
    assert set(result.stdout.split()) == {"<none>"}
    assert result.stderr == 'warning: no row has .posision. Did you mean "position"?\n'


def test_the_timeout_is_that_of_each_request(tmp_path: Path) -> None:
    """One that is shorter than the program's own, and 0 for these."""
    api = tutorial()
    with served(api) as url:
        path = kubeconfig(tmp_path, url)
        api.fail("GET", "/version", hang)
        words = ["--kubeconfig", path, "--request-timeout=1", "hold", FIRST]
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 1
        assert "GET /version: no answer within 1 s" in result.stderr
        words[2] = "--request-timeout=0"
        assert CliRunner().invoke(main, words).exit_code == 0


def test_the_port_of_the_dispatcher_knows_no_users() -> None:
    with answering(answer({"items": []})) as url:
        result = CliRunner().invoke(main, ["--as", "ann", "queue", "-A", "--server", url])
    assert result.exit_code == 1
    assert "knows no users: omit --as, or --server" in result.stderr


def test_completion_asks_the_server_that_is_named_before_the_verb(api: FakeApi) -> None:
    assert completed(api, "mcad -n ") == ["default", "team-a"]
    assert completed(api, "mcad -n team-a describe ") == []
    assert completed(api, "mcad --context c des") == ["describe"]
    assert "--request-timeout" in completed(api, "mcad --req")


@pytest.fixture
def api() -> FakeApi:
    return tutorial()
