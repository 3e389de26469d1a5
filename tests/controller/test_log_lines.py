"""The log has one line for each turn in the life of an AppWrapper, and none of its manifest."""

from __future__ import annotations

import logging
import re
from random import Random

import pytest
from msgspec.structs import replace

from mcad.api.config import Config
from mcad.cli.demo_cluster.cluster import dispatching, embedded_cluster
from mcad.cli.log_format import KeyValue
from mcad.controller.log_lines import LogLines
from mcad.kube.kinds import APPWRAPPERS
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from tests.core.bench import Bench, node, workload
from tests.manifests import (
    Json,
    bearing,
    components,
    config_map,
    deployment,
    failing,
    generic,
    job,
    pod,
)

SECRET = "do-not-log-me"
LINE = re.compile(r'msg="?(?P<what>[a-z ]+?)"? appwrapper=default/(?P<name>\S+) (?P<rest>.*)')


class Log:
    """The lines of the log."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def take(self) -> list[tuple[str, str, str]]:
        """(what, name, the rest) of every line since the last call."""
        lines = [KeyValue().format(record) for record in self._caplog.records]
        self._caplog.clear()
        assert not any(SECRET in line for line in lines)
        return [
            (found["what"], found["name"], found["rest"])
            for line in lines
            if "logger=controller.log_lines" in line and (found := LINE.search(line))
        ]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    caplog.set_level(logging.INFO)
    return Log(caplog)


def bad(name: str) -> Json:
    """A pod that the API server does not take, with something to hide in it."""
    wrong = pod(name)
    wrong["spec"]["containers"][0] |= {
        "env": [{"name": "PASSWORD", "value": SECRET}],
        "imagePullPolicy": SECRET,
    }
    return wrong


APPWRAPPERS_OF_ALL_ENDS = {
    "completes": components("completes", job("completes", 1, "100m", 20)),
    "waits": components("waits", deployment("waits", cpu="900m")),
    "fails": components("fails", bad("fails")),
    "invalid": components("invalid", config_map("Not A Name", {"k": SECRET})),
    "deleted": components("deleted", pod("deleted")),
    "stopped": components("stopped", pod("stopped")),
    "cleared": bearing(
        components("cleared", job("cleared", 1, "10m", 10)), successTTLDuration="5s"
    ),
    "reset": bearing(
        components("reset", failing("reset", "10m", 10)),
        failureGracePeriodDuration="1s",
        retryLimit="1",
    ),
    "given-up": generic(
        "given-up",
        deployment("given-up", 1, "10m"),
        schedulingSpec={
            "minAvailable": 2,
            "requeuing": {"timeInSeconds": 5, "maxNumRequeuings": 1, "growthType": "none"},
        },
    ),
}


def play(log: Log) -> list[list[tuple[str, str, str]]]:
    """Each element is what one life of the dispatcher logged, the second on what the first left."""

    async def live(cluster: Cluster, *, first: bool) -> None:
        async with dispatching(cluster, Config(), Random(5)) as client:
            clock = cluster.registry.clock
            for one in APPWRAPPERS_OF_ALL_ENDS.values() if first else ():
                version = one["apiVersion"].rpartition("/")[2]
                await client.create(replace(APPWRAPPERS, version=version), "default", one)
            await clock.sleep(60)
            if first:
                await client.patch(APPWRAPPERS, "default", "stopped", {"spec": {"suspend": True}})
                await client.delete(APPWRAPPERS, "default", "deleted")
            await clock.sleep(60)

    async def whole() -> list[list[tuple[str, str, str]]]:
        async with embedded_cluster(VirtualClock(), Random(3)) as cluster:
            cluster.add_node("node", cpu="1")
            lives = []
            for first in (True, False):
                await live(cluster, first=first)
                lives.append(log.take())
            return lives

    return run_virtually(whole())


def test_each_turn_is_one_line_and_none_is_repeated_after_a_restart(log: Log) -> None:
    first, second = play(log)
    assert sorted((what, name) for what, name, _ in first) == [
        ("cleared", "cleared"),
        ("completed", "cleared"),
        ("completed", "completes"),
        ("deleted", "deleted"),
        ("dispatched", "cleared"),
        ("dispatched", "completes"),
        ("dispatched", "deleted"),
        ("dispatched", "given-up"),
        ("dispatched", "given-up"),
        ("dispatched", "reset"),
        ("dispatched", "reset"),
        ("dispatched", "stopped"),
        ("failed", "fails"),
        ("failed", "reset"),
        ("given up", "given-up"),
        ("refused", "invalid"),
        ("refused", "waits"),
        ("reset", "reset"),
        ("taken back", "given-up"),
        ("taken back", "stopped"),
    ]
    assert second == []


def test_a_line_says_why_and_how_long(log: Log) -> None:
    lines = {(what, name): rest for what, name, rest in play(log)[0]}
    wanted = {
        ("dispatched", "completes"): r"attempt=1 reason=AppWrapperRunnable waited_s=0\.\d{3}",
        ("completed", "completes"): r"attempt=1 reason=PodsCompleted ran_s=2\d\.\d{3}",
        ("taken back", "stopped"): r"attempt=1 reason=Suspended ran_s=(59|6\d)\.\d{3}",
        ("deleted", "deleted"): r"attempt=1 reason=Deleted ran_s=(59|6\d)\.\d{3}",
        ("failed", "fails"): r"attempt=1 reason=ItemCreationFailure\. ran_s=0",
        ("reset", "reset"): r"attempt=1 reason=FoundFailedPods ran_s=1\d\.\d{3}",
        ("failed", "reset"): r"attempt=2 reason=FoundFailedPods ran_s=1\d\.\d{3}",
        ("cleared", "cleared"): r"attempt=1 reason=SuccessTTL ran_s=1\d\.\d{3}",
        ("given up", "given-up"): r"attempt=2 reason=MinPodsNotRunning ran_s=5\.\d{3}",
        ("refused", "invalid"): r"attempt=0 reason=InvalidAppWrapper waited_s=0\.\d{3}",
        ("refused", "waits"): r'attempt=0 reason=cpu waited_s=0\.\d{3} why=".* 900m missing\."',
    }
    assert {key for key, form in wanted.items() if not re.fullmatch(form, lines[key])} == set()


def test_a_teardown_that_waits_is_a_line_with_what_it_waits_for(log: Log) -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100))
    bench.settle()
    for thing in bench.things.values():
        thing.finalizers = ("example.com/keep",)
    bench.edit("uid-a", suspended=True)
    bench.settle()
    bench.events.clear()
    bench.advance(100)
    for event in bench.events:
        LogLines(bench.dispatcher.cluster).log(event)
    ((what, name, rest),) = log.take()
    assert (what, name) == ("teardown waits", "a")
    assert "because of its finalizer example.com/keep" in rest
