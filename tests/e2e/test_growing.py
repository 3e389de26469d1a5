"""The dispatcher on a real control plane with the real CRDs, beside the stand-in autoscaler, which
does what a test cannot ask of the real one: a cloud without machines, and bookings that expire."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mcad.kube.client import Client
from mcad.kube.clock import RealClock
from mcad.kube.connection import load
from mcad.kube.rest import RestApi
from tests.autoscaler.groups import Group, Moods, StockOut
from tests.autoscaler.standin import Figures, StandIn
from tests.controlplane.autoscaler import kinds
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.process import ACCOUNT, NAMESPACE, Dispatcher, install, printed
from tests.e2e.support import (
    appwrapper,
    conditions_of,
    create,
    delete,
    deployment,
    in_state,
    items,
    pods,
)
from tests.e2e.test_autoscaler import left

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
OWNER = "workload.codeflare.dev/appwrapper"
SMALL = Group("small", "4", 4, comes_s=2.0)
SCALE_UP = "ScaleUp"


@contextmanager
def growing(via: str, moods: Moods, *settings: str) -> Iterator[tuple[ControlPlane, Figures]]:
    """A control plane without nodes, the stand-in with one group, and the dispatcher."""
    flags = [flag for one in (f"scaleUp.via={via}", *settings) for flag in ("--set", one)]
    rights = ("--namespace", NAMESPACE, "--service-account", ACCOUNT)
    with controlplane_or_skip(kinds=printed("crd") + "\n---\n" + kinds()) as plane:
        for name in ("provisioningrequests", "capacitybuffers"):
            plane.wait_for_crd(f"{name}.autoscaling.x-k8s.io")
        account = install(plane)
        plane.apply(printed("rbac", *rights, *flags))
        with (
            Dispatcher(plane, account, *flags),
            standing_in(plane.admin_kubeconfig, moods) as figures,  # last: moods count from here
        ):
            yield plane, figures
            delete(plane)
            plane.wait_for(lambda: not left(plane), 60, "no request is left")


@contextmanager
def standing_in(kubeconfig: Path, moods: Moods) -> Iterator[Figures]:
    """The stand-in, in a thread of its own."""
    figures, ends = Figures(), threading.Event()

    async def runs() -> None:
        clock = RealClock()
        async with RestApi(await load(clock, str(kubeconfig)), clock) as api:
            one = StandIn(Client(api, clock, Random(1)), [SMALL], moods, unneeded_s=5.0)
            one.figures = figures
            work = asyncio.ensure_future(one.run())
            while not ends.is_set() and not work.done():
                await asyncio.sleep(0.2)
            if work.done():
                work.result()
            work.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(runs()))
    thread.start()
    try:
        yield figures
    finally:
        ends.set()
        thread.join()


def gang(name: str, count: int) -> Json:
    """Each pod needs a node of its own."""
    return appwrapper(name, deployment(name, count, "3"))


def of(plane: ControlPlane, name: str) -> list[Json]:
    """The pods of an AppWrapper that are on a node."""
    found = [one for one in pods(plane) if one["metadata"].get("labels", {}).get(OWNER) == name]
    return [one for one in found if one["spec"].get("nodeName")]


def told(plane: ControlPlane, name: str) -> str:
    """What the condition ScaleUp says."""
    said = conditions_of(plane, name).get(SCALE_UP, {})
    return f"{said.get('status')} {said.get('reason')}: {said.get('message')}"


def test_a_gang_that_gets_a_part_of_its_nodes_gives_them_to_the_next_one() -> None:
    with growing("CapacityBuffer", Moods(), "scaleUp.timeout=12") as (plane, figures):
        create(plane, gang("large", 6))
        plane.wait_for(lambda: len(items(plane, "/api/v1/nodes")) == 4, 30, "a part comes")
        create(plane, gang("small", 3))
        plane.wait_for(lambda: "False TimedOut" in told(plane, "large"), 40, "it is told so")
        plane.wait_for(lambda: len(of(plane, "small")) == 3, 60, "the other one runs")
        assert not of(plane, "large")
        plane.wait_for(lambda: len(items(plane, "/api/v1/nodes")) == 3, 60, "the idle one goes")
        assert figures.made == 4


def test_a_gang_for_which_there_are_no_machines_for_a_while_starts_after_that() -> None:
    moods = Moods([StockOut("small", 0.0, 20.0)], given_up_s=15.0)
    with growing("ProvisioningRequest", moods, "scaleUp.timeout=10") as (plane, figures):
        create(plane, gang("gang", 3))
        plane.wait_for(lambda: "False TimedOut" in told(plane, "gang"), 40, "it is told so")
        # Its objects are deleted while the status is written; the next request comes after 30 s.
        plane.wait_for(lambda: not left(plane), 10, "its request goes")
        plane.wait_for(lambda: in_state(plane, "Running"), 120, "it runs")
        plane.wait_for(lambda: len(of(plane, "gang")) == 3, 20, "all pods have nodes")
        plane.wait_for(lambda: not left(plane), 20, "its request goes")
        assert figures.made == 3
        assert figures.ordered == 6  # three had no answer


def test_a_booking_that_expires_before_the_nodes_come_is_asked_for_again() -> None:
    moods = Moods(late=1.0, booking_s=3.0)  # nodes come after six seconds
    with growing("ProvisioningRequest", moods) as (plane, figures):
        create(plane, gang("gang", 3))
        plane.wait_for(lambda: in_state(plane, "Running"), 60, "it runs")
        plane.wait_for(lambda: len(of(plane, "gang")) == 3, 20, "all pods have nodes")
        assert len(figures.requests) >= 2
        assert figures.made == 3  # what was ordered before was not ordered again
