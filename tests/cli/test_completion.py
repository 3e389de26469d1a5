"""Completion in the shell: commands, options, names and namespaces; nothing at all on failure."""

import asyncio
import time

import pytest
from click.testing import CliRunner

from mcad.cli.arguments import completion_candidates
from mcad.cli.main import COMMANDS, main
from mcad.kube.port import Request, Response
from tests.cli.conftest import FakeEnvironment, Type
from tests.fakeapi import FakeApi, refuse, reset


def completed(api: FakeApi, line: str) -> list[str]:
    """What bash is offered for the last word of a line."""
    words = line.split(" ")
    env = {
        "_MCAD_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    result = CliRunner().invoke(main, [], obj=FakeEnvironment(api), env=env)
    assert result.exit_code == 0
    assert result.stderr == ""
    return [offer.partition(",")[2] for offer in result.stdout.splitlines() if offer]


def test_commands_and_options(api: FakeApi) -> None:
    assert completed(api, "mcad ") == list(COMMANDS)
    assert completed(api, "mcad des") == ["describe"]
    assert "--kubeconfig" in completed(api, "mcad queue --k")
    assert completed(api, "mcad completion z") == ["zsh"]
    assert completed(api, "mcad wait x --for d") == ["dispatched", "deleted"]
    assert completed(api, "mcad queue --state r") == ["running", "runningholdcompletion"]
    assert completed(api, "mcad get -o j") == ["json", "jsonpath="]


def test_names_and_namespaces(api: FakeApi) -> None:
    names = ["0001-aw-generic-deployment-1", "0002-aw-generic-deployment-2"]
    assert completed(api, "mcad describe ") == names
    assert completed(api, "mcad get 0002") == names[1:]
    assert completed(api, "mcad describe aw/0002") == [f"aw/{names[1]}"]
    assert completed(api, "mcad describe pod/0002") == []
    assert completed(api, "mcad describe aw 0001") == names[:1]
    for verb in ("hold", "release", "priority", "requeue", "cancel", "wait", "tree", "logs"):
        assert completed(api, f"mcad {verb} 0002") == names[1:]
    assert completed(api, "mcad events aw/0002") == [f"aw/{names[1]}"]
    assert completed(api, "mcad capacity m") == ["minikube"]
    assert completed(api, "mcad capacity node/m") == ["node/minikube"]
    assert completed(api, "mcad describe -n team-a ") == []
    assert completed(api, "mcad queue -n ") == ["default", "team-a"]
    assert completed(api, "mcad queue --namespace t") == ["team-a"]


def test_it_asks_for_names_only(api: FakeApi) -> None:
    completed(api, "mcad describe ")
    assert "PartialObjectMetadataList" in api.requests[-1].headers["Accept"]


@pytest.mark.parametrize("fault", [reset, refuse(401), refuse(403)])
def test_it_is_silent_on_failure(fault: str, api: FakeApi) -> None:
    api.fail_always("*", "", fault)
    assert completed(api, "mcad describe ") == []


def test_it_does_not_wait_long(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(request: Request, timeout: float | None = None) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(api, "request", hang)
    monkeypatch.setattr(completion_candidates, "PATIENCE_S", 0.05)
    began = time.monotonic()
    assert completed(api, "mcad describe ") == []
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(shell: str, mcad: Type) -> None:
    result = mcad("completion", shell)
    assert result.exit_code == 0
    assert f"_MCAD_COMPLETE={shell}_complete" in result.stdout
