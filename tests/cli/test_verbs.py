"""``mcad hold``, ``release``, ``priority``, ``cancel``: what they change, say, and refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from mcad.cli.arguments import choice
from mcad.cli.main import main
from tests.cli.conftest import FakeEnvironment
from tests.cli.embedded import Embedded, wait_for
from tests.e2e.support import appwrapper, pod
from tests.fakeapi import GROUP, FakeApi, refuse, reset

Json = dict[str, Any]

KUBECTL = f"appwrapper.{GROUP}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded(tmp_path_factory.mktemp("verbs")).running() as running:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
        running.create(namespace)
        yield running


@pytest.fixture(autouse=True)
def _clean(cluster: Embedded) -> Iterator[None]:
    yield
    cluster.mcad("cancel", "--all", "-A", "--yes")
    wait_for(lambda: not cluster.mcad("get", "-A", "-o", "name").stdout, "all are gone")


def put(cluster: Embedded, *names: str, cpu: str = "100m", **spec: Any) -> None:
    """AppWrappers of one pod; ``team-a/x`` is one of that namespace."""
    for full in names:
        namespace, _, name = full.rpartition("/")
        obj = appwrapper(name, pod(name, cpu), namespace=namespace or "default", **spec)
        obj["metadata"]["labels"] = {"of": "test"}
        cluster.create(obj)


def spec_of(cluster: Embedded, name: str, namespace: str = "default") -> Json:
    obj = cluster.get(name, namespace)
    assert obj is not None
    spec: Json = obj["spec"]
    return spec


def test_an_appwrapper_is_held_and_released(cluster: Embedded) -> None:
    put(cluster, "a")
    cluster.until("a", "Running")
    steps = [
        (("hold", "aw/a", "--dry-run"), f"{KUBECTL}/a held; its attempt ends (server dry run)\n"),
        (("hold", "a"), f"{KUBECTL}/a held; its attempt ends\n"),
        (("hold", "a"), f"{KUBECTL}/a unchanged: it is on hold already\n"),
        (("release", "a", "-o", "name"), f"{KUBECTL}/a\n"),
        (("release", "a"), f"{KUBECTL}/a unchanged: it is not on hold\n"),
    ]
    for number, (args, said) in enumerate(steps):
        result = cluster.mcad(*args)
        assert (result.exit_code, result.output) == (0, said), args
        assert spec_of(cluster, "a").get("suspend", False) is (number in (1, 2))
        cluster.until("a", "Running" if number in (0, 3, 4) else "Pending")


def test_the_priority_is_set_in_both_dialects(cluster: Embedded) -> None:
    put(cluster, "new", suspend=True)
    old = appwrapper("old", suspend=True)
    old["apiVersion"] = f"{GROUP}/v1beta1"
    old["spec"] = {"resources": {"GenericItems": [{"generictemplate": pod("p")}]}, "priority": 7}
    cluster.create(old)
    result = cluster.mcad("priority", "new", "old", "-7", "--yes")
    assert result.exit_code == 0
    assert sorted(result.stdout.splitlines()) == [
        f"{KUBECTL}/new set to priority -7",
        f"{KUBECTL}/old set to priority -7",
    ]
    assert [spec_of(cluster, name)["priority"] for name in ("new", "old")] == [-7, -7]
    same = cluster.mcad("priority", "new", "-7")
    assert same.stdout == f"{KUBECTL}/new unchanged: its priority is -7 already\n"


def test_a_higher_priority_goes_first(cluster: Embedded) -> None:
    put(cluster, "first", "second", cpu="100")
    assert cluster.mcad("queue", "-o", "name").stdout.split()[0] == f"{KUBECTL}/first"
    cluster.mcad("priority", "second", "5")
    wait_for(
        lambda: cluster.mcad("queue", "-o", "name").stdout.split()[0] == f"{KUBECTL}/second",
        "the second one is ahead",
    )


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_cancel_deletes_everything(cluster: Embedded, cascade: str) -> None:
    put(cluster, "a")
    cluster.until("a", "Running")
    dry = cluster.mcad("cancel", "a", "--dry-run")
    assert dry.stdout == f"{KUBECTL}/a deleted (server dry run)\n"
    assert cluster.get("a") is not None
    result = cluster.mcad("cancel", "a", "--cascade", cascade)
    assert (result.exit_code, result.output) == (0, f"{KUBECTL}/a deleted\n")
    pods = cluster.on_loop(lambda one: one.registry.kind("v1", "Pod"))
    wait_for(lambda: cluster.get("a") is None, "the AppWrapper is gone")
    wait_for(
        lambda: not cluster.on_loop(lambda one: one.registry.list_all(pods, "default")),
        "its pod is gone",
    )


def test_a_completed_one_is_left_as_it_is(cluster: Embedded) -> None:
    cluster.create(appwrapper("done", pod("done", command=("true",))))
    cluster.until("done", "Completed")
    for verb in (("hold", "done"), ("release", "done"), ("priority", "done", "3")):
        result = cluster.mcad(*verb)
        assert (result.exit_code, result.output) == (
            0,
            f"{KUBECTL}/done unchanged: it has completed\n",
        )


# -- which ones ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "held"),
    [
        (("a", "b", "aw/a"), ["a", "b"]),
        (("aw", "a"), ["a"]),
        (("team-a/c",), ["team-a/c"]),
        (("aw/team-a/c", "a"), ["a", "team-a/c"]),
        (("c", "-n", "team-a"), ["team-a/c"]),
        (("--all",), ["a", "b"]),
        (("--all", "-A"), ["a", "b", "team-a/c"]),
        (("-l", "of=test"), ["a", "b"]),
        (("-l", "of in (test)", "-A"), ["a", "b", "team-a/c"]),
        (("-l", "of=another"), []),
        (("-f", "-"), ["a", "team-a/c"]),
    ],
    ids=" ".join,
)
def test_what_can_be_named(cluster: Embedded, args: tuple[str, ...], held: list[str]) -> None:
    put(cluster, "a", "b", "team-a/c", cpu="100")
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "b"}}
    documents = [job, appwrapper("a"), appwrapper("c", namespace="team-a")]
    result = cluster.mcad("hold", *args, "--yes", stdin=yaml.safe_dump_all(documents))
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) == len(held)
    all_names = [("default", "a"), ("default", "b"), ("team-a", "c")]
    found = [
        name if space == "default" else f"{space}/{name}"
        for space, name in all_names
        if spec_of(cluster, name, space).get("suspend")
    ]
    assert found == held


def test_lines_name_the_namespace_where_it_may_differ(cluster: Embedded) -> None:
    put(cluster, "a", "team-a/a", cpu="100")
    said = cluster.mcad("hold", "--all", "-A", "--yes").stdout
    assert sorted(said.splitlines()) == [
        f"{KUBECTL}/a held in namespace default",
        f"{KUBECTL}/a held in namespace team-a",
    ]
    names = cluster.mcad("release", "--all", "-A", "--yes", "-o", "name").stdout.split()
    assert sorted(names) == ["default/a", "team-a/a"]


def test_bulk_output_is_what_verbs_take(cluster: Embedded) -> None:
    put(cluster, "a", "team-a/b", cpu="100")
    names = cluster.mcad("queue", "-A", "-o", "name").stdout.split()
    assert sorted(names) == ["default/a", "team-a/b"]
    assert cluster.mcad("hold", *names, "--yes").exit_code == 0
    assert cluster.mcad("queue", "-A", "--no-headers").stdout.count("Suspended") == 2


def test_one_that_is_missing_does_not_stop_the_others(cluster: Embedded) -> None:
    put(cluster, "a", cpu="100")
    result = cluster.mcad("hold", "nothing", "a")
    assert result.exit_code == 4
    assert result.stdout == f"{KUBECTL}/a held\n"
    told = 'error: no AppWrapper "nothing" in namespace default; see `mcad get -A`\n'
    assert result.stderr == told


def test_one_that_fails_does_not_stop_the_others(api: FakeApi) -> None:
    names = [obj["metadata"]["name"] for obj in api.objects["appwrappers"].values()][:2]
    api.deny(names[0], method="PATCH")
    result = CliRunner().invoke(main, ["hold", *names, "gone", "--yes"], obj=FakeEnvironment(api))
    assert result.exit_code == 1
    first, second = result.stderr.splitlines()
    assert first.startswith(f"error: default/{names[0]} cannot be held: ")
    assert first.endswith("ask an administrator for this right")
    assert second.startswith('error: no AppWrapper "gone"')
    assert result.stdout == f"{KUBECTL}/{names[1]} held\n"


ANOTHER = "metadata.uid: Invalid value: field is immutable"  # as a real API server words it


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (refuse(422, "Invalid", ANOTHER), 1, "cannot be held: it was deleted and created anew"),
        (refuse(409, "Conflict", "uid"), 1, "cannot be held: it was deleted and created anew"),
        (refuse(404, "NotFound", "no"), 4, "cannot be held: it was deleted meanwhile"),
        (refuse(422, "Invalid", "spec: no"), 1, "cannot be held: 422 Invalid: spec: no"),
        (reset, 1, "cannot be held for certain (PATCH /"),
    ],
)
def test_a_refused_change_is_told(api: FakeApi, answer: Any, code: int, words: str) -> None:
    api.fail("PATCH", "/appwrappers/", answer)
    name = "0001-aw-generic-deployment-1"
    result = CliRunner().invoke(main, ["hold", name], obj=FakeEnvironment(api))
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(f"error: default/{name} {words}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "name AppWrappers in one way: NAME, -f FILE, -l LABELS or --all"),
        (("aw",), "name AppWrappers in one way"),
        (("a", "--all"), "name AppWrappers in one way"),
        (("-A",), "name AppWrappers in one way"),
        (("a", "-A"), "a: a name needs one namespace: use -n instead of -A"),
        (("team-a/a", "-n", "default"), "team-a/a is not in namespace default: omit one"),
        (("a/b/c",), "'a/b/c' is not an AppWrapper: write NAME, NAMESPACE/NAME or aw/NAME"),
        (("-l", "a in b"), "-l 'a in b': unable to parse requirement"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage(cluster: Embedded, args: tuple[str, ...], words: str) -> None:
    result = cluster.mcad("hold", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert words in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}, "contains no AppWrapper"),
        (
            {
                "apiVersion": f"{GROUP}/v1beta2",
                "kind": "AppWrapper",
                "metadata": {"generateName": "x"},
            },
            "metadata.name is missing; use the name it was given",
        ),
    ],
    ids=["no AppWrapper", "generateName"],
)
def test_files_without_a_name(cluster: Embedded, content: Json, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(content))
    result = cluster.mcad("cancel", "-f", str(path))
    assert result.exit_code == 1
    assert words in result.stderr


# -- the question ----------------------------------------------------------------------------


def test_more_than_one_needs_an_answer(cluster: Embedded) -> None:
    put(cluster, "a", "b", cpu="100")
    result = cluster.mcad("hold", "--all")
    assert (result.exit_code, result.stdout) == (2, "")
    told = (
        "error: 2 AppWrappers would be held: default/a, default/b; repeat with --yes, or see with"
    )
    assert result.stderr.startswith(told)
    assert "suspend" not in spec_of(cluster, "a")
    assert len(cluster.mcad("hold", "--all", "--dry-run").stdout.splitlines()) == 2
    assert "suspend" not in spec_of(cluster, "a")


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_terminal_is_asked(
    cluster: Embedded, answer: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cluster, "a", "b", cpu="100")
    monkeypatch.setattr(choice, "is_interactive", lambda: True)
    result = cluster.mcad("hold", "--all", stdin=answer)
    assert result.exit_code == code
    assert result.stderr.startswith("2 AppWrappers would be held: default/a, default/b. Go on?")
    assert ("Nothing was changed." in result.stderr) is (code == 1)
    assert spec_of(cluster, "a").get("suspend", False) is (code == 0)
