"""What the Python client reads of a cluster, and holds: quota, capacity, Events, logs, progress."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import mcad
from mcad.client.config import load_config
from mcad.client.scope import Settings
from mcad.sim.cluster import Cluster
from tests.cli.embedded import ONE_NODE, Embedded, wait_for
from tests.e2e.support import appwrapper, deployment, pod

ROOT = Path(__file__).parents[2]
TEAMS = ROOT / "samples/quota"


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A cluster with the quota tree of the samples; research borrows."""
    folder = tmp_path_factory.mktemp("teams")
    with Embedded(
        folder, ONE_NODE, load_config(Settings(None, ("quotaEnabled=true",)))
    ).running() as cluster:
        done = cluster.mcad("quota", "check", "-f", str(TEAMS / "teams.yaml"))
        assert done.exit_code == 0, done.output
        cluster.create(*yaml.safe_load_all((TEAMS / "teams.yaml").read_text()))
        for name in ("aw-research.yaml", "aw-borrower.yaml"):
            done = cluster.mcad("submit", "-f", str(TEAMS / name), "--wait", "--timeout", "20s")
            assert done.exit_code == 0, done.output
        yield cluster


def test_shares_are_those_of_the_command(teams: Embedded) -> None:
    with mcad.Client(kubeconfig=str(teams.kubeconfig)) as client:
        quota = client.quota()
        assert [one.name for one in quota] == ["cluster", "research", "product", "ops", "default"]
        root, research, product, *_ = client.quota("teams")
        assert (research.nominal, research.used) == ({"cpu": "4"}, {"cpu": "6"})
        assert research.borrowed == {"cpu": "2"}
        assert {**(product.lent or {})}.keys() == {"cpu"}
        said = json.loads(teams.mcad("quota", "teams", "-o", "json").output)
        assert [one.raw for one in quota] == said["nodes"]
        assert research.path == ("research", "cluster")
        assert (root.leaf, research.leaf) == (False, True)
        assert repr(research) == "<QuotaNode teams/research: cpu 6 used>"
        assert "<td>research</td>" in quota._repr_html_()
        with pytest.raises(mcad.NotFoundError, match='no quota tree "tems"; there is teams'):
            client.quota("tems")


def test_without_quota_it_is_said(client: mcad.Client) -> None:
    with pytest.raises(mcad.McadError, match="quota is off"):
        client.quota()


def test_capacity(client: mcad.Client) -> None:
    client.submit(pod("two", "2"), name="two").wait("running", timeout=20)
    wait_for(lambda: client.capacity().total.used.get("cpu") == "2", "the pod is bound")
    capacity = client.capacity()
    (node,) = capacity
    assert (node.name, node.state) == ("node-1", "Ready")
    assert (node.allocatable["cpu"], node.used["cpu"], node.free["cpu"]) == ("8", "2", "6")
    assert (capacity.total.free, capacity.unplaced) == (node.free, {})
    assert repr(capacity).startswith("<Capacity of 1 node: cpu 6, ")
    assert "<td>node-1</td>" in capacity._repr_html_()


def test_events_of_the_appwrapper_and_its_pods(client: mcad.Client) -> None:
    made = client.submit(deployment("web", 1), name="web")
    made.wait("running", timeout=20)
    wait_for(lambda: len({one.subject for one in made.events()}) > 1, "Events of pods are written")
    events = made.events()
    assert [one.reason for one in events] == [one.reason for one in client.events("web")]
    assert {"AppWrapper/web", "Deployment/web"} <= {one.subject for one in events}
    times = [one.time for one in events if one.time is not None]
    assert len(times) == len(events)
    first = events[0]
    assert first.count == 1
    assert str(events).splitlines()[0] == str(first)
    assert f"<td>{first.reason}</td>" in events._repr_html_()


def test_logs_of_all_pods(client: mcad.Client) -> None:
    made = client.submit([pod("one"), pod("two")], name="pair")
    made.wait("running", timeout=20)
    first, second = made.logs()
    assert [(one.pod, one.item, one.state) for one in (first, second)] == [
        ("one", 0, "Running"),
        ("two", 1, "Running"),
    ]
    assert str(first) == first.text != ""
    assert client.logs("pair", item=1) == (second,)
    assert [one.text for one in made.logs(tail=0)] == ["", ""]
    with pytest.raises(mcad.McadError, match="pod one has no container x; choose"):
        made.logs(container="x")


def test_what_waits_has_no_logs(client: mcad.Client) -> None:
    assert client.submit(pod("whole", "9"), name="whole").logs() == ()


def test_a_container_that_has_not_started_has_an_empty_log(
    cluster: Embedded, client: mcad.Client
) -> None:
    made = client.submit(pod("late"), name="late").wait("running", timeout=20)

    def unstarted(running: Cluster) -> None:
        kind = running.registry.kind("v1", "Pod")
        obj = running.registry.get(kind, ("default", "late"))
        assert obj["status"]["containerStatuses"]
        status = obj["status"] | {"phase": "Pending", "containerStatuses": []}
        running.registry.update_status(kind, obj | {"status": status})

    cluster.on_loop(unstarted)
    (log,) = made.logs()
    assert (log.state, log.text) == ("Pending", "")


def test_hold_and_release(client: mcad.Client) -> None:
    made = client.submit(pod("held", "8"), name="held").wait("running", timeout=20)
    assert made.hold().raw["spec"]["suspend"] is True
    assert made.hold().raw["spec"]["suspend"] is True
    (row,) = wait_for(client.queue, "its attempt has ended")
    assert (row.name, row.state) == ("held", "Pending")
    assert row.waits_for == "Suspended"
    made.release().wait("running", timeout=20)
    client.hold("held")
    client.release("held")
    made.wait("running", timeout=20)


def test_what_has_ended_is_not_held(client: mcad.Client) -> None:
    done = appwrapper("done", pod("done", command=("true",)))
    client.submit(done).wait("completed", timeout=20)
    with pytest.raises(mcad.McadError, match="default/done cannot be held: it has completed"):
        client.hold("done")
    with pytest.raises(mcad.McadError, match="cannot be released: it has completed"):
        client.get("done").release()


def test_progress_is_reported_as_it_changes(client: mcad.Client) -> None:
    first = client.submit(pod("first", "8"), name="first").wait("running", timeout=20)
    second = client.submit(pod("second", "8"), name="second")
    found: list[mcad.Progress] = []

    with pytest.raises(mcad.TimedOutError):
        second.wait("running", timeout=3, on_progress=found.append)
    assert "number 1 in line: cpu: 8 requested" in str(found[-1])
    first.delete()
    assert len(found) == len(set(map(str, found)))
    second.wait("running", timeout=20, on_progress=found.append)
    assert (found[-1].state, found[-1].position, found[-1].pods["running"]) == ("Running", 0, 1)
    assert str(found[-1]) == "default/second: Running (pods: 1 running)"


def test_what_a_report_of_progress_raises_ends_the_wait(client: mcad.Client) -> None:
    client.submit(pod("big", "9"), name="big")
    with pytest.raises(ZeroDivisionError):
        client.wait("big", on_progress=lambda _: 1 / 0)
    with pytest.raises(mcad.McadError, match="on_progress"):
        client.wait("big", on_progress=lambda _: client.queue())


def test_without_a_dispatcher_nothing_is_computed(tmp_path: Path) -> None:
    with (
        Embedded(tmp_path).running(dispatches=False) as silent,
        mcad.Client(kubeconfig=str(silent.kubeconfig)) as client,
    ):
        with pytest.raises(mcad.UnavailableError, match="the capacity is not stored"):
            client.capacity()
        with (
            pytest.warns(mcad.McadWarning, match="what is stored is shown"),
            pytest.raises(mcad.McadError, match="quota is off, or its trees are in other"),
        ):
            client.quota()


async def test_the_asynchronous_client_reads_the_same(teams: Embedded) -> None:
    async with mcad.AsyncClient(kubeconfig=str(teams.kubeconfig)) as client:
        assert [one.name for one in await client.quota("teams")][1] == "research"
        assert [node.name for node in await client.capacity()] == ["node-1"]
        made = await client.get("aw-research")
        assert "AppWrapper/aw-research" in {one.subject for one in await made.events()}
        assert await made.logs() == await client.logs("aw-research")
        assert (await (await made.hold()).release()).name == "aw-research"
