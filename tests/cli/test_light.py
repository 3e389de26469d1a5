"""What a person waits for at every key or look is imported without the heavy libraries."""

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
import yaml

from mcad.kube.port import Request, Response
from tests.cli.cluster import kubeconfig, tutorial
from tests.cli.test_server_figures import CAPACITY, DETAIL, QUOTA, ROW
from tests.fakeapi import answer
from tests.serving import answering, served

LOGIN = "client.authentication.k8s.io/v1"
HEAVY = (
    "kubernetes",
    "pydantic",
    "aiohttp",
    "numpy",
    "mcad.sim",
    "mcad.controller",
    "mcad.journal",
    "yaml",
    "textual",
    "rich",
)
STATE = "mcad.core.state"
WORDS = {
    STATE,
    f"{STATE}.quantity",
    f"{STATE}.quota_records",
    f"{STATE}.reasons",
    f"{STATE}.records",
    f"{STATE}.reservation",
    f"{STATE}.spelling",
    f"{STATE}.units",
    f"{STATE}.waiting_reason",
}
"""The modules of the core that say how things are called and how amounts are written."""
RECORDS = WORDS | {f"{STATE}.model", f"{STATE}.run_policy"}
"""The same and records, for commands that read AppWrappers."""
FIRST = "0001-aw-generic-deployment-1"
PATIENCE_S = 30  # of a completion, on a busy machine: the import of the client library counts
PATIENT = (
    "from mcad.cli.arguments import completion_candidates as candidates\n"
    f"candidates.PATIENCE_S = {PATIENCE_S}\n"
)
CODE = """\
import sys
from mcad.cli.main import main
try:
    main()
finally:
    found = [one for one in {heavy} if one in sys.modules]
    # Of the core there are words and amounts, and nothing that decides.
    found += [one for one in sys.modules if one.startswith("mcad.core.") and one not in {words}]
    print(found, file=sys.stderr)"""


def imported(
    *args: str,
    but: tuple[str, ...] = (),
    words: Collection[str] = WORDS,
    before: str = "",
    fails: bool = False,
    **env: str,
) -> tuple[str, str]:
    """Output, and which of the heavy modules a command imported, as a list in text."""
    heavy = [one for one in HEAVY if one not in but]
    done = subprocess.run(
        [sys.executable, "-c", before + CODE.format(heavy=heavy, words=set(words)), *args],
        capture_output=True,
        text=True,
        check=not fails,
        env=os.environ | env,
    )
    return done.stdout, done.stderr.strip()


@pytest.mark.parametrize(
    "args",
    [
        ("queue",),
        ("get", "a", "-o", "json"),
        ("describe", "a"),
        ("capacity",),
        ("quota",),
        ("quota", "a", "-o", "wide"),
        ("why", "a"),
        ("what-if", "--without", "a"),
        ("what-if", "--drain", "n"),
    ],
    ids=" ".join,
)
def test_the_dispatcher_is_asked_with_the_standard_library(
    args: tuple[str, ...], tmp_path: Path
) -> None:
    async def dispatcher(request: Request) -> Response:
        path = request.path.removeprefix("/api/v1/")
        kind = path.partition("/")[0] if path.count("/") == 0 else "detail"
        trees = {"enabled": True, "trees": [QUOTA]}
        if kind == "detail" and path.startswith("quota"):
            return answer(QUOTA["nodes"][0] | {"tree": "t", "holders": [], "queue": []})
        if kind == "detail" and path.startswith("what-if"):
            return answer({"changes": [], "moves": [], "others": 0})
        said = {"capacity": CAPACITY, "detail": DETAIL, "quota": trees}.get(kind, {"items": [ROW]})
        return answer(said)

    none = {"KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path)}
    with answering(dispatcher) as url:
        but = ("yaml",) if args[0] == "what-if" else ()  # which reads manifests
        said, heavy = imported(*args, "--server", url, but=but, **none)
    assert said
    assert heavy == "[]"


@pytest.mark.parametrize("led", [True, False], ids=["asked", "stored"])
@pytest.mark.parametrize(
    "args",
    [("queue",), ("get",), ("describe", FIRST), ("capacity",), ("why", FIRST), ("history",)],
    ids=lambda args: args[0],
)
def test_the_visibility_api_is_asked_with_the_standard_library_and_yaml(
    args: tuple[str, ...], led: bool, tmp_path: Path
) -> None:
    with served(tutorial(led=led)) as url:
        fails = args == ("capacity",) and not led
        words = WORDS if led and args != ("history",) else RECORDS
        env = {"KUBECONFIG": kubeconfig(tmp_path, url)}
        said, heavy = imported(*args, but=("yaml",), words=words, fails=fails, **env)
    assert bool(said) is not (fails or args == ("history",))  # where nothing has ended
    assert heavy.splitlines()[-1] == "[]"
    assert ("what is stored is shown" in heavy) is not led


def test_names_are_completed_with_the_standard_library_and_yaml(tmp_path: Path) -> None:
    with served(tutorial()) as url:
        line = "mcad describe 00"
        said, heavy = imported(
            but=("yaml",),
            before=PATIENT,
            _MCAD_COMPLETE="bash_complete",
            COMP_WORDS=line,
            COMP_CWORD="2",
            KUBECONFIG=kubeconfig(tmp_path, url),
        )
    assert len(said.splitlines()) == 2
    assert heavy == "[]"


@pytest.mark.parametrize("words", [("version",), ("--help",), ("queue", "--help")])
def test_what_needs_no_cluster_imports_little(words: tuple[str, ...]) -> None:
    assert imported(*words)[1] == "[]"


@pytest.mark.parametrize("args", [("hold", FIRST), ("cancel", FIRST), ("priority", FIRST, "3")])
def test_verbs_take_the_standard_library_and_yaml(args: tuple[str, ...], tmp_path: Path) -> None:
    with served(tutorial()) as url:
        said, heavy = imported(
            *args, but=("yaml",), words=RECORDS, KUBECONFIG=kubeconfig(tmp_path, url)
        )
    assert said.startswith("appwrapper.workload.codeflare.dev/")
    assert heavy == "[]"


def test_commands_and_options_are_completed_with_nothing_else() -> None:
    said, heavy = imported(_MCAD_COMPLETE="bash_complete", COMP_WORDS="mcad des", COMP_CWORD="1")
    assert said.strip() == "plain,describe"
    assert heavy == "[]"


def test_a_login_that_takes_a_plugin_is_left_to_the_client_library(tmp_path: Path) -> None:
    token = {"token": "secret"}
    answer = {"apiVersion": LOGIN, "kind": "ExecCredential", "status": token}
    plugin = {"apiVersion": LOGIN, "command": "echo", "args": [json.dumps(answer)]}
    api = tutorial()
    with served(api) as url:
        path = Path(kubeconfig(tmp_path, url))
        config = yaml.safe_load(path.read_text())
        config["users"][0]["user"] = {"exec": plugin | {"interactiveMode": "Never"}}
        path.write_text(yaml.safe_dump(config))
        env = {"_MCAD_COMPLETE": "bash_complete", "COMP_WORDS": "mcad get 00", "COMP_CWORD": "2"}
        said, heavy = imported(before=PATIENT, KUBECONFIG=str(path), **env)
    assert len(said.splitlines()) == 2
    assert "kubernetes" in heavy
    assert {one.headers["Authorization"] for one in api.requests} == {"Bearer secret"}


COLLECTS = """\
import gc, sys
sys.argv = ["mcad", "version"]
from mcad.cli.start import main
try:
    main()
except SystemExit:
    print(gc.isenabled(), gc.get_freeze_count() > 0)
"""


def test_garbage_is_collected_once_the_command_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTS], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "True True"
