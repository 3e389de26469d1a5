"""``mcad lint`` and ``mcad submit --wrap`` at the embedded cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Type
from tests.cli.embedded import Embedded
from tests.e2e.support import appwrapper, configmap, deployment, pod
from tests.fakeapi import GROUP, FakeApi

Json = dict[str, Any]

KUBECTL = f"appwrapper.{GROUP}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded(tmp_path_factory.mktemp("lint")).running() as running:
        running.create(appwrapper("taken", pod("x"), suspend=True))
        yield running


def misspelt(name: str) -> Json:
    wrong = pod("p")
    wrong["spec"]["containers"][0]["imagePulPolicy"] = "Always"
    return appwrapper(name, wrong)


def invalid(name: str) -> Json:
    return appwrapper(name, pod("p")) | {"spec": {"priority": "high", "components": []}}


UNKNOWN = appwrapper("a", configmap("c") | {"kind": "ConfigMab"})
ELSEWHERE = appwrapper("a", pod("p"), namespace="nowhere")
FINE = appwrapper("a", pod("p"))

CASES: dict[str, tuple[list[Json], int, str, str]] = {
    "fine": ([FINE], 0, f"standard input: {KUBECTL}/a has no faults\n", ""),
    "two": (
        [FINE, misspelt("b")],
        1,
        f"standard input, document 1: {KUBECTL}/a has no faults\n",
        'standard input, document 2: Pod default/p: unknown field "spec.containers[0].image',
    ),
    "an unknown kind": ([UNKNOWN], 0, "has no faults", 'Did you mean "v1 ConfigMap"?'),
    "invalid": ([invalid("a")], 1, "", "error: standard input: spec.priority: "),
    "a Job": ([configmap("c")], 1, "", "error: standard input: kind is ConfigMap, not AppWrapper"),
    "taken": (
        [appwrapper("taken", pod("x"))],
        0,
        f"{KUBECTL}/taken has no faults",
        "warning: standard input: an AppWrapper of this name exists in namespace default\n",
    ),
    "nowhere": ([ELSEWHERE], 0, "", "cannot be created in namespace nowhere (namespaces"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_found(cluster: Embedded, case: str) -> None:
    documents, code, said, told = CASES[case]
    result = cluster.mcad("lint", "-", stdin=yaml.safe_dump_all(documents))
    assert result.exit_code == code, result.output
    assert said in result.stdout
    assert told in result.stderr
    assert ("to correct" in result.stderr) is (code == 1)
    assert cluster.get("a") is None


def test_without_an_api_server_the_rest_is_checked(api: FakeApi, mcad: Type) -> None:
    api.break_down()
    result = mcad("lint", "-", stdin=yaml.safe_dump_all([misspelt("a"), invalid("b")]))
    assert result.exit_code == 1
    warning, fault, count = result.stderr.splitlines()
    assert warning.startswith(
        "warning: unknown fields of the items, unknown kinds, names that are taken and rights are "
        "not checked: "
    )
    assert "cannot be reached" in warning
    assert "document 2: spec.priority" in fault
    assert count == "1 fault to correct."
    assert result.stdout == f"standard input, document 1: {KUBECTL}/a has no faults\n"


def test_offline_asks_no_server(api: FakeApi, mcad: Type) -> None:
    result = mcad("lint", "--offline", "-", stdin=yaml.safe_dump(FINE))
    assert result.exit_code == 0
    assert result.stderr.endswith("names that are taken and rights are not checked (--offline)\n")
    assert not api.requests


# -- submit --wrap ---------------------------------------------------------------------------


def test_manifests_of_any_kind_are_wrapped_and_submitted(cluster: Embedded) -> None:
    documents = yaml.safe_dump_all([configmap("c"), deployment("d", 2)])
    args = ("submit", "--wrap", "--name", "app", "--priority", "3", "-")
    result = cluster.mcad(*args, "--wait", "--timeout", "20s", stdin=documents)
    assert (result.exit_code, result.output) == (
        0,
        f"{KUBECTL}/app created\n{KUBECTL}/app dispatched\n",
    )
    obj = cluster.get("app")
    assert obj is not None
    kinds = [one["template"]["kind"] for one in obj["spec"]["components"]]
    assert (kinds, obj["spec"]["priority"]) == (["ConfigMap", "Deployment"], 3)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--wrap",), "--wrap needs --name"),
        (("--name", "x"), "--name, --priority, --leaf and --dialect need --wrap"),
        (("--dialect", "v1beta1"), "need --wrap"),
    ],
)
def test_wrapping_needs_a_name(mcad: Type, args: tuple[str, ...], words: str) -> None:
    result = mcad("submit", *args, "-", stdin=yaml.safe_dump(pod("p")))
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
