"""The Python client on an embedded cluster over HTTP: ``from mcad import Client``."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client as models

import mcad
from tests.cli.cluster import kubeconfig
from tests.cli.embedded import Embedded, wait_for
from tests.e2e.support import appwrapper, configmap, deployment, pod
from tests.fakeapi import GROUP, SERVED, FakeApi
from tests.serving import served

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]


def job(name: str, cpu: str) -> models.V1Job:
    """A Job as a model of the client library."""
    container = models.V1Container(
        name="main",
        image="busybox:1.36",
        resources=models.V1ResourceRequirements(requests={"cpu": cpu}),
    )
    spec = models.V1PodSpec(restart_policy="Never", containers=[container])
    return models.V1Job(
        api_version="batch/v1",
        kind="Job",
        metadata=models.V1ObjectMeta(name=name),
        spec=models.V1JobSpec(template=models.V1PodTemplateSpec(spec=spec)),
    )


def test_a_day(client: mcad.Client) -> None:
    first = client.submit([configmap("settings"), job("first", "6")], name="first", priority=3)
    assert first.wait(timeout=20).state == "Running"
    assert repr(first) == "<AppWrapper default/first: Running>"
    second = client.submit(job("second", "6"), name="second")
    with pytest.raises(mcad.TimedOutError, match="not dispatched within"):
        second.wait(timeout=0.5)
    (row,) = client.queue()
    assert (row.namespace, row.name, row.position) == ("default", "second", 1)
    assert row.demand == {"cpu": "6", "pods": "1"}
    assert row.waits_for == "cpu"
    assert row.first_seen is not None
    assert datetime.now(UTC) - row.first_seen < timedelta(minutes=5)
    why = second.why()
    assert why.held_by == {"default/first": "6"}
    assert [one.kind for one in why.would_start] == ["ends", "nodes", "request"]
    assert why.would_start[0].appwrappers == ("default/first",)
    assert str(why).splitlines()[2] == "  If default/first ends."
    assert client.what_if(without="first").starts == ("default/second",)
    assert client.what_if(nodes=1, like="node-1").starts == ("default/second",)
    first.delete()
    assert second.refresh().wait("running", timeout=20).state == "Running"
    assert not client.queue()
    assert [one.name for one in client.queue(waiting_only=False)] == ["second"]


def test_what_if_it_were_submitted(client: mcad.Client, tmp_path: Path) -> None:
    path = tmp_path / "aw.yaml"
    path.write_text(yaml.safe_dump(appwrapper("new", pod("new", "2"))))
    (found,) = client.what_if(str(path))
    assert found.now is None
    assert found.then is not None
    assert (found.appwrapper, found.then.starts_next) == ("default/new", True)
    assert client.what_if(path, settings={"preemption": True}).starts == ("default/new",)


def test_reasons_are_given_while_it_waits(client: mcad.Client) -> None:
    client.submit(pod("big", "8"), name="big").wait("running", timeout=20)
    client.submit(pod("late", "1"), name="late")
    said: list[str] = []
    with pytest.raises(mcad.TimedOutError):
        client.wait("late", timeout=1, on_reason=said.append)
    assert said[0].startswith("default/late waits: ")


def test_a_failure_ends_a_wait(client: mcad.Client) -> None:
    failing = appwrapper("fails", pod("fails", command=("sh", "-c", "exit 3")))
    prefix = "workload.codeflare.dev.appwrapper/"
    failing["metadata"]["annotations"] = {
        prefix + "retryLimit": "0",
        prefix + "failureGracePeriodDuration": "0s",
    }
    with pytest.raises(mcad.FailedError, match="default/fails has failed"):
        client.submit(failing).wait("completed", timeout=20)
    assert client.get("fails").wait("failed", timeout=20).state == "Failed"


@pytest.mark.filterwarnings("ignore:.* is not installed in the cluster")
@pytest.mark.parametrize("name", ["aw-raycluster.yaml", "aw-01.yaml", "aw-pytorchjob-v1beta1.yaml"])
def test_a_manifest_goes_through_unchanged(client: mcad.Client, name: str) -> None:
    """Those of codeflare-sdk are such files; both dialects, as a path or read."""
    manifest = yaml.safe_load((ROOT / "samples" / name).read_text())
    by_path = client.submit(ROOT / "samples" / name, dry_run=True)
    as_dict = client.submit([manifest], dry_run=True)
    for one in (by_path, as_dict):
        assert one.raw["apiVersion"] == manifest["apiVersion"]
        items = {*manifest["spec"]} & {"resources", "components"}
        assert {key: one.raw["spec"][key] for key in items} == {
            key: manifest["spec"][key] for key in items
        }
    assert not client.queue(waiting_only=False)


def test_a_leaf_and_the_older_dialect(client: mcad.Client) -> None:
    made = client.submit(
        pod("x"), name="x", leaf={"teams": "red"}, dialect="v1beta1", priority=-1, dry_run=True
    )
    assert made.raw["metadata"]["labels"] == {"teams": "red"}
    assert made.raw["apiVersion"] == f"{GROUP}/v1beta1"
    assert made.raw["spec"]["priority"] == -1


FAULTY = appwrapper("faulty", pod("faulty", "much"))
BROKEN: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no name": (pod("x"), {}, "name: is missing"),
    "nothing": ([], {"name": "x"}, "objects: is empty"),
    "no object": ([3], {"name": "x"}, r"objects\[0\]: is int; pass a manifest"),
    "not JSON": ([{"kind": {1, 2}}], {"name": "x"}, r"objects\[0\]: cannot be sent as JSON"),
    "no file": ("missing.yaml", {"name": "x"}, "missing.yaml: there is no such file"),
    "two": ([appwrapper("a"), appwrapper("b")], {}, "one by one"),
    "a named one": (appwrapper("a", pod("a")), {"priority": 3}, "is an AppWrapper already"),
    "another namespace": (
        appwrapper("a", pod("a"), namespace="team"),
        {"namespace": "other"},
        "is for namespace team, not other",
    ),
    "a fault": (FAULTY, {}, "nothing was sent: 1 fault to correct first"),
    "an unknown field": (
        pod("x") | {"spek": {}},
        {"name": "x"},
        "nothing was sent: 1 fault to correct first",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_submitted(client: mcad.Client, case: str) -> None:
    objects, options, said = BROKEN[case]
    with pytest.raises(mcad.McadError, match=said):
        client.submit(objects, **options)
    assert not client.queue(waiting_only=False)


def test_the_faults_are_listed(client: mcad.Client) -> None:
    with pytest.raises(mcad.InvalidError) as raised:
        client.submit(FAULTY)
    (fault,) = raised.value.faults
    assert fault.startswith("objects: ")
    assert "cpu" in fault


def test_what_is_not_there(client: mcad.Client) -> None:
    for call in (client.get, client.why, client.delete, client.wait):
        with pytest.raises(mcad.NotFoundError, match='no AppWrapper "none" in namespace team'):
            call("team/none")
    assert client.wait("none", "deleted") is None  # type: ignore[func-returns-value]
    for name in ("", "a/b/c", "/x"):
        with pytest.raises(mcad.McadError, match="write NAME or NAMESPACE/NAME"):
            client.get(name)


def test_a_cluster_without_appwrappers_says_what_to_install(tmp_path: Path) -> None:
    api = FakeApi(served=tuple(one for one in SERVED if one.plural != "appwrappers"))
    with served(api) as url, mcad.Client(kubeconfig=kubeconfig(tmp_path, url)) as client:
        for call in (client.get, client.delete, client.wait):
            with pytest.raises(mcad.McadError, match="AppWrappers are not installed"):
                call("any")


def test_another_of_the_same_name_is_another(client: mcad.Client) -> None:
    first = client.submit(pod("one"), name="one")
    first.delete()
    first.wait("deleted", timeout=20)
    client.submit(pod("one"), name="one").wait(timeout=20)
    with pytest.raises(mcad.NotFoundError, match="created anew"):
        first.refresh()
    with pytest.raises(mcad.McadError):
        first.delete()
    assert client.get("one").state == "Running"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "say what is different"),
        ({"nodes": 2}, "nodes and like go together"),
        ({"nodes": 2, "like": "node-l"}, 'no node "node-l". Did you mean "node-1"'),
        ({"without": "none"}, 'no AppWrapper "default/none"'),
        ({"settings": {"polcy": "Backfill"}}, "policy"),
        ({"quota": {"teams/red": {"cpu": "4"}}}, 'no node "red" in a quota tree "teams"'),
    ],
)
def test_questions_that_make_no_sense(
    client: mcad.Client, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(mcad.McadError, match=said):
        client.what_if(**changes)


def test_notebooks_show_tables(client: mcad.Client) -> None:
    client.submit(pod("big", "8"), name="big").wait(timeout=20)
    late = client.submit(pod("late"), name="late")
    wait_for(client.queue, "late is seen")
    assert "<td>late</td>" in client.queue()._repr_html_()
    assert "<td>late</td>" in client.queue()[0]._repr_html_()
    assert "default/big ends." in late.why()._repr_html_()
    assert "<td>starts</td>" in client.what_if(without="big")._repr_html_()
    assert "default/late" in late._repr_html_()
    assert repr(client.queue()) == "<Queue of 1: default/late>"


def test_html_is_escaped() -> None:
    row = {
        "namespace": "<b>",
        "name": "&",
        "state": "Pending",
        "position": None,
        "priority": 0,
        "demand": None,
        "waitsFor": "cpu",
        "why": "<script>",
        "firstSeen": None,
    }
    page = mcad.Queue([mcad.QueueRow.of(row)])._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_notes_about_the_figures_are_warnings(tmp_path: Path) -> None:
    """No dispatcher runs in this cluster, so what is stored comes with a warning."""
    with (
        Embedded(tmp_path).running(dispatches=False) as silent,
        mcad.Client(kubeconfig=str(silent.kubeconfig)) as client,
        pytest.warns(mcad.McadWarning, match="the dispatcher does not answer"),
    ):
        assert not client.queue()


def test_no_server(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    where = {"name": "x", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
    whole = {"clusters": [where], "users": [{"name": "x", "user": {}}], "contexts": [context]}
    config.write_text(yaml.safe_dump(whole | {"current-context": "x"}))
    before = threading.active_count()
    with pytest.raises(mcad.McadError, match="the API server cannot be reached"):
        mcad.Client(kubeconfig=str(config))
    assert threading.active_count() == before


def test_a_closed_client_says_so(cluster: Embedded) -> None:
    client = mcad.Client(kubeconfig=str(cluster.kubeconfig))
    client.close()
    client.close()
    with pytest.raises(mcad.McadError, match="the client is closed"):
        client.queue()


def test_a_forgotten_client_ends_its_thread(cluster: Embedded) -> None:
    before = threading.active_count()
    client = mcad.Client(kubeconfig=str(cluster.kubeconfig))
    assert threading.active_count() == before + 1
    del client
    gc.collect()
    assert threading.active_count() == before


def test_a_callback_that_calls_the_client_gets_an_error(client: mcad.Client) -> None:
    client.submit(pod("whole", "8"), name="whole").wait(timeout=20)
    client.submit(pod("late"), name="late")
    with pytest.raises(mcad.McadError, match="on_reason"):
        client.wait("late", timeout=10, on_reason=lambda _: client.queue())


async def test_the_asynchronous_client(cluster: Embedded) -> None:
    async with mcad.AsyncClient(kubeconfig=str(cluster.kubeconfig), namespace="default") as client:
        made = await client.submit(deployment("web", 2), name="web")
        await made.wait("running", timeout=20)
        assert [row.name for row in await client.queue(waiting_only=False)] == ["web"]
        await made.delete()
        await made.wait("deleted", timeout=20)
    with pytest.raises(mcad.McadError, match="closed"):
        await client.queue()


def test_both_clients_have_the_same_methods() -> None:
    for sync, other in (
        (mcad.Client, mcad.AsyncClient),
        (mcad.AppWrapper, mcad.AsyncAppWrapper),
    ):
        names = {name for name in vars(other) if not name.startswith("_")}
        assert names == {name for name in vars(sync) if not name.startswith("_")} - {"raw"}
        for name in names:
            one, two = vars(sync)[name], vars(other)[name]
            if inspect.isfunction(one):
                assert inspect.signature(one).parameters == inspect.signature(two).parameters, name


def test_the_package_imports_nothing_until_it_is_used() -> None:
    code = "import sys, mcad; print([m for m in sys.modules if m.startswith('mcad.')]); mcad.Client"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "['mcad.version']"
    assert set(mcad.__all__) == {*dir(mcad)}
    for name in mcad.__all__:
        assert getattr(mcad, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Clint'"):
        mcad.Clint  # noqa: B018
