"""A status that came with a backup or a copy: the AppWrapper queues, runs and ends as a new one."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from mcad.api.config import Config
from mcad.api.status import STATUS
from mcad.api.wire import to_json
from mcad.cli.demo_cluster.cluster import embedded_cluster
from mcad.controller.runtime import Controller
from mcad.kube.client import Client
from mcad.kube.kinds import APPWRAPPERS
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.serving.server import SimApi
from tests.controller.test_runtime import Rig, add_appwrapper
from tests.fakeapi import held
from tests.manifests import components, job

Json = dict[str, Any]

NOW_US = 1_800_000_000_000_000
LONG_AGO, SINCE = "2026-01-01T00:00:00Z", "2027-01-15T08:00:00.5Z"
JOB = {"group": "batch", "version": "v1", "resource": "jobs", "kind": "Job"}
PODS = ("", "pods")


def stored(state: str, **record: Any) -> Json:
    """A status as a dispatcher writes it for an attempt that stands."""
    inventory = [{**JOB, "namespace": "default", "name": "train"}]
    attempt = {"attempt": 1, "epoch": 1, "phase": "dispatched", "inventory": inventory}
    return {"state": state, "controllerfirsttimestamp": LONG_AGO, "dispatch": attempt | record}


async def outcome(status: Json) -> tuple[str, int]:
    """The state that an AppWrapper with this status comes to, and the pods that it has made."""
    async with embedded_cluster(VirtualClock(NOW_US), Random(3)) as cluster:
        cluster.add_node("node-1", cpu="8")
        api, clock = SimApi(cluster.registry), cluster.registry.clock
        client = Client(api, clock, Random(7))
        await client.create(APPWRAPPERS, "default", components("aw", job("train", 2, "1", 30.0)))
        await client.patch_status(APPWRAPPERS, "default", "aw", to_json({"status": status}))
        controller = Controller(Client(api, clock, Random(1)), Config(), identity="one")
        life = asyncio.ensure_future(controller.run(asyncio.Event()))
        await clock.sleep(120.0)
        found = await client.get(APPWRAPPERS, "default", "aw")
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        return found["status"]["state"], len(list(cluster.registry.store.items(PODS)))


@pytest.mark.parametrize("state", ["Running", "Completed", "Failed"])
@pytest.mark.parametrize(
    "record",
    [{"uid": "other", "intentTime": SINCE}, {"intentTime": LONG_AGO}],
    ids=["the uid of another object", "an older version, before the object"],
)
def test_an_appwrapper_with_the_status_of_another_one_runs(state: str, record: Json) -> None:
    assert run_virtually(outcome(stored(state, **record))) == ("Completed", 2)


async def test_fields_that_are_not_ours_stay() -> None:
    """MCAD's own, and those of a later release after a rollback; also what comes in meanwhile."""
    theirs = {"isdispatched": True, "later": {"nested": [1]}}
    gate = asyncio.Event()
    async with Rig() as rig:
        add_appwrapper(rig.server, "a", "1m")
        stored = theirs | {"claim": {"nodes": ["of a former release"]}}
        rig.server.change("appwrappers", "a", lambda obj: obj.update(status=stored))
        rig.server.fail("PUT", "/appwrappers/", held(gate))
        await rig.clock.advance(1)
        rig.server.change("appwrappers", "a", lambda obj: obj["status"].update(meanwhile=7))
        gate.set()
        await rig.clock.advance(5)
        status = rig.status("a")
        assert status["state"] == "Running"
        assert {key: status[key] for key in status.keys() - STATUS} == theirs | {"meanwhile": 7}


def test_an_end_on_its_own_record_stays() -> None:
    """So what the others show is not that every status is ignored."""
    assert run_virtually(outcome(stored("Completed", intentTime=SINCE))) == ("Completed", 0)
