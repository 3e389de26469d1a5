"""``mcad pause`` and ``mcad resume``, on the embedded cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mcad.kube.kinds import QUOTA_SUBTREES
from tests.cli.embedded import Embedded, wait_for
from tests.e2e.support import appwrapper, pod

Json = dict[str, Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded(tmp_path_factory.mktemp("pause")).running() as running:
        yield running


@pytest.fixture(autouse=True)
def _clean(cluster: Embedded) -> Iterator[None]:
    yield
    cluster.mcad("resume", "--all")
    cluster.mcad("cancel", "--all", "-A", "--yes")
    wait_for(lambda: not cluster.mcad("get", "-A", "-o", "name").stdout, "all are gone")


def waits_for(cluster: Embedded, name: str) -> str:
    obj = cluster.get(name) or {}
    backoff = [c for c in obj.get("status", {}).get("conditions", []) if c["type"] == "Backoff"]
    return str(backoff[0]["reason"]) if backoff and backoff[0]["status"] == "True" else ""


def test_dispatch_stops_and_goes_on(cluster: Embedded) -> None:
    cluster.create(appwrapper("before", pod("before")))
    cluster.until("before", "Running")
    done = cluster.mcad("pause", "--reason", "the storage is moved")
    assert (done.exit_code, done.stdout) == (0, "Dispatch is paused for the whole cluster.\n")
    cluster.create(appwrapper("after", pod("after")))
    wait_for(lambda: waits_for(cluster, "after") == "DispatchPaused", "after is paused")
    listed = cluster.mcad("queue")
    assert listed.stderr == (
        "warning: Dispatch is paused for the whole cluster (DispatchPause cluster): "
        "the storage is moved\n"
    )
    assert "DispatchPaused" in listed.stdout
    assert "the storage is moved" in cluster.mcad("describe", "after").stdout
    assert "the storage is moved" in cluster.mcad("why", "after").stdout
    assert (cluster.get("before") or {})["status"]["state"] == "Running"
    resumed = cluster.mcad("resume")
    assert (resumed.exit_code, resumed.stdout) == (
        0,
        "Dispatch is resumed for the whole cluster.\n",
    )
    cluster.until("after", "Running")
    assert cluster.mcad("queue").stderr == "No AppWrappers wait in namespace default.\n"


def test_a_namespace(cluster: Embedded) -> None:
    cluster.mcad("pause", "-n", "default")
    cluster.create(appwrapper("here", pod("here")))
    wait_for(lambda: waits_for(cluster, "here") == "DispatchPaused", "here is paused")
    assert cluster.mcad("queue").stderr == ""
    assert cluster.mcad("resume", "-n", "default").exit_code == 0
    cluster.until("here", "Running")


def test_what_cannot_be_done(cluster: Embedded) -> None:
    none = cluster.mcad("resume")
    assert none.exit_code == 4
    assert none.stderr == "error: dispatch is not paused for the whole cluster\n"
    cluster.mcad("pause", "--quota", "teams/red", "--reason", "x")
    twice = cluster.mcad("pause", "--quota", "teams/red")
    assert twice.exit_code == 1
    assert "(DispatchPause quota-teams-red): x already; `mcad resume` ends that" in twice.stderr
    other = cluster.mcad("resume")
    assert other.exit_code == 4
    assert "; Dispatch is paused for quota tree teams, node red" in other.stderr
    for wrong in (
        ("pause", "--quota", "teams"),
        ("pause", "-n", "a", "--quota", "teams/red"),
        ("resume", "--all", "-n", "a"),
    ):
        assert cluster.mcad(*wrong).exit_code == 2


SUBTREE = {
    "apiVersion": QUOTA_SUBTREES.api_version,
    "kind": "QuotaSubtree",
    "metadata": {"name": "teams", "labels": {"tree": "gold"}},
    "spec": {"parent": "company", "children": [{"name": "research", "quotas": {"requests": {}}}]},
}
NOT_THERE = {
    ("-n", "defualt"): 'there is no namespace defualt yet. Did you mean "default"?',
    ("--quota", "gild/research"): 'there is no quota tree gild yet. Did you mean "gold"?',
    (
        "--quota",
        "gold/reserch",
    ): 'quota tree gold has no node reserch yet. Did you mean "research"?',
}


@pytest.mark.parametrize("scope", NOT_THERE, ids=lambda scope: scope[1])
def test_a_pause_of_what_is_not_there_is_a_warning(
    cluster: Embedded, scope: tuple[str, ...]
) -> None:
    """It may be created later, and nothing of it may start then."""
    if cluster.on_loop(lambda one: one.registry.find(_subtrees(one), ("default", "teams"))) is None:
        cluster.create(SUBTREE)
    done = cluster.mcad("pause", *scope)
    assert (done.exit_code, done.stderr) == (0, f"warning: {NOT_THERE[scope]}\n")
    assert done.stdout.startswith("Dispatch is paused for ")


@pytest.mark.parametrize(
    "scope", [("-n", "default"), ("--quota", "gold/company"), ("--quota", "gold/research"), ()]
)
def test_a_pause_of_what_is_there_is_none(cluster: Embedded, scope: tuple[str, ...]) -> None:
    if cluster.on_loop(lambda one: one.registry.find(_subtrees(one), ("default", "teams"))) is None:
        cluster.create(SUBTREE)
    done = cluster.mcad("pause", *scope)
    assert (done.exit_code, done.stderr) == (0, "")


def _subtrees(cluster: Any) -> Any:
    return cluster.registry.kind(SUBTREE["apiVersion"], SUBTREE["kind"])


def test_one_without_the_kind_says_what_to_install(cluster: Embedded) -> None:
    crds = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
    name = "dispatchpauses.workload.codeflare.dev"

    def remove(embedded: Any) -> None:
        embedded.registry.delete(embedded.registry.kind(*crds), ("", name))

    cluster.on_loop(remove)
    done = cluster.mcad("pause")
    assert done.exit_code == 1
    assert "DispatchPauses are not installed" in done.stderr
    cluster.create(appwrapper("still", pod("still")))
    cluster.until("still", "Running")
