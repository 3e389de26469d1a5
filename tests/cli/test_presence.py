"""Whether a dispatcher is running, by its Lease, and what is ahead of the head of the line."""

from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from mcad.api.config import Config
from mcad.cli.main import main
from mcad.cli.pages.describe import _one_ahead
from mcad.client.figures.presence import Heartbeat, Presence, read_presence
from mcad.kube.client import Client
from tests.cli.cluster import appwrapper, crowd, deployment, lease, tutorial
from tests.cli.conftest import FakeEnvironment, StoppedClock
from tests.fakeapi import FakeApi

Json = dict[str, Any]

LEASE = "leases", "mcad-dispatcher"
RELEASED = {"holderIdentity": "", "leaseDurationSeconds": 1}


@pytest.fixture
def api() -> FakeApi:
    found = crowd()
    write(found)
    return found


def write(api: FakeApi, **spec: Any) -> None:
    api.change(*LEASE, lambda obj: obj.update(spec=lease(**spec)["spec"]))


async def heard(api: FakeApi) -> Heartbeat:
    return await read_presence(Client(api, StoppedClock(), Random(1)), Config())


@pytest.mark.parametrize(
    "spec",
    [RELEASED, {"holderIdentity": None}, {"leaseDurationSeconds": 1, "renewTime": "garbage"}],
    ids=["released", "never held", "garbage"],
)
async def test_a_lease_without_a_holder_is_no_dispatcher(spec: Json, api: FakeApi) -> None:
    assert (await heard(api)).presence is Presence.RUNNING
    write(api, **spec)
    found = await heard(api)
    assert found.presence is Presence.ABSENT
    assert found.notes[0].startswith("no dispatcher is running")


@pytest.mark.parametrize(
    ("renewed", "is_running"),
    [("07:59:40", True), ("07:59:39", False), ("08:00:05", True)],
    ids=["15 s and a skew of 5 s", "over", "a clock that is ahead"],
)
async def test_a_lease_holds_for_its_duration(renewed: str, is_running: bool, api: FakeApi) -> None:
    write(api, renewTime=f"2027-01-15T{renewed}.000000Z")
    assert ((await heard(api)).presence is Presence.RUNNING) is is_running


async def test_no_lease_is_no_dispatcher_and_no_right_to_read_it_says_nothing(
    api: FakeApi,
) -> None:
    api.remove(*LEASE)
    assert (await heard(api)).presence is Presence.ABSENT
    api.deny("leases")
    found = await heard(api)
    assert (found.presence, found.notes) == (Presence.UNKNOWN, ())


def test_the_head_of_the_line_need_not_be_the_first_in_it() -> None:
    api = tutorial()
    huge = deployment("huge", replicas=1, cpu="100", memory="1Gi")
    api.put("appwrappers", appwrapper("huge", "u1", "07:00:00", huge))
    taken = deployment("0001-aw-generic-deployment-1", replicas=1, cpu="1m", memory="1Mi")
    api.put("appwrappers", appwrapper("small", "u2", "07:01:00", taken))
    world = FakeEnvironment(api)
    said = CliRunner().invoke(main, ["describe", "0002-aw-generic-deployment-2"], obj=world).stdout
    assert "Position:     3 of 3, next to be dispatched once room is free\n" in said
    assert (
        "Ahead:        default/huge (does not fit even with every AppWrapper gone), "
        "default/small (on hold: WaitingForName)\n"
    ) in said
    said = CliRunner().invoke(main, ["describe", "huge"], obj=world).stdout
    assert "Position:     1 of 3\nAhead:        <none>\n" in said


@pytest.mark.parametrize(
    ("waits_for", "why"),
    [
        ("", "it fits"),
        ("lending", "lets another AppWrapper go first"),
        ("blocked", "lets another AppWrapper go first"),
        ("MissingRight", "on hold: MissingRight"),
        ("cpu", "does not fit even with every AppWrapper gone"),
    ],
)
def test_what_is_ahead_of_the_head_says_why_it_does_not_block(waits_for: str, why: str) -> None:
    row = {"namespace": "a", "name": "b", "waitsFor": waits_for}
    assert _one_ahead(row, of_head=True) == f"a/b ({why})"
    assert _one_ahead(row, of_head=False) == "a/b"
