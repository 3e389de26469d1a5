"""``mcad wrap``: an AppWrapper around any manifests, and its way through ``mcad submit``."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Type
from tests.fakeapi import GROUP, FakeApi

Json = dict[str, Any]

JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "busybox"}]}}},
}
SERVICE: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}
WIDGET: Json = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
ROLE: Json = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "r"},
}
BAD_POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "one"}}}]},
}
HOOK: Json = {**JOB, "metadata": {"name": "h", "annotations": {"helm.sh/hook": "test"}}}


def text(*objects: Json) -> str:
    return yaml.safe_dump_all(objects)


def at(namespace: str, obj: Json = JOB) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def test_items_keep_their_order_and_every_option_is_written(mcad: Type) -> None:
    options = ("--name", "x", "-n", "team", "--priority", "5", "--leaf", "gold=red")
    result = mcad("wrap", "-f", "-", *options, stdin=text(SERVICE, at("team"), WIDGET))
    assert (result.exit_code, result.stderr) == (0, "")
    assert yaml.safe_load(result.stdout) == {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "x", "namespace": "team", "labels": {"gold": "red"}},
        "spec": {
            "priority": 5,
            "components": [{"template": one} for one in (SERVICE, at("team"), WIDGET)],
        },
    }


def test_the_other_dialect_as_json_without_options(mcad: Type, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text(JOB))
    result = mcad("wrap", str(path), "--name", "x", "--dialect", "v1beta1", "-o", "json")
    assert json.loads(result.stdout) == {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": "x"},
        "spec": {"resources": {"GenericItems": [{"generictemplate": JOB}]}},
    }


def test_the_namespace_of_an_item_is_that_of_its_appwrapper(mcad: Type) -> None:
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=text(SERVICE, at("team")))
    assert yaml.safe_load(result.stdout)["metadata"]["namespace"] == "team"


def test_hooks_and_cluster_scoped_objects_are_named_and_left_out(mcad: Type) -> None:
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=text(ROLE, HOOK, JOB))
    assert [one["template"] for one in yaml.safe_load(result.stdout)["spec"]["components"]] == [JOB]
    first, second = result.stderr.splitlines()
    assert "document 1: ClusterRole r is left out: it is cluster-scoped" in first
    assert "document 2: Job h is left out: Helm runs it as a hook" in second


def test_what_it_prints_can_be_submitted(api: FakeApi, mcad: Type) -> None:
    made = mcad("wrap", "-f", "-", "--name", "x", stdin=text(JOB)).stdout
    result = mcad("submit", "-f", "-", stdin=made)
    assert result.stdout == f"appwrapper.{GROUP}/x created\n"


@pytest.mark.parametrize(
    ("objects", "options", "code", "said"),
    [
        ([HOOK], (), 1, "nothing is left to wrap"),
        ([at("a"), at("b", SERVICE)], (), 1, "document 2: is for namespace b, not a"),
        ([at("a")], ("-n", "b"), 1, "is for namespace a, not b"),
        ([{"kind": "AppWrapper"}], (), 1, "is an AppWrapper already"),
        ([{"kind": "Job", "metadata": {"name": "x"}}], (), 1, "apiVersion"),
        ([BAD_POD], (), 1, "'one' is not a quantity"),
        ([JOB], ("--leaf", "gold"), 2, "write TREE=LEAF"),
    ],
)
def test_what_cannot_be_wrapped_says_why(
    mcad: Type, objects: list[Json], options: tuple[str, ...], code: int, said: str
) -> None:
    result = mcad("wrap", "-f", "-", "--name", "x", *options, stdin=text(*objects))
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
