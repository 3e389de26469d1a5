"""Commands warn if no dispatcher is running."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from mcad.api.config import Config
from mcad.api.published import ANNOTATION, publish
from mcad.cli.main import main
from mcad.cli.pages.describe import _one_ahead
from mcad.client.figures.presence import Heartbeat, Presence
from mcad.core.views.rows import FITS_AS_STORED
from tests.cli.cluster import appwrapper, crowd, deployment, lease, tutorial
from tests.cli.conftest import FakeEnvironment, Type
from tests.fakeapi import FakeApi

Json = dict[str, Any]

LEASE = "leases", "mcad-dispatcher"
WARNING = (
    "warning: no dispatcher is running (last Lease renewal: 2027-01-15T07:59:58Z): "
    "nothing is dispatched until one is started\n"
)
RELEASED = {"holderIdentity": "", "leaseDurationSeconds": 1}


@pytest.fixture
def api() -> FakeApi:
    found = crowd()
    write(found)
    return found


def write(api: FakeApi, **spec: Any) -> None:
    api.change(*LEASE, lambda obj: obj.update(spec=lease(**spec)["spec"]))


def why(said: str) -> tuple[str, str]:
    row = json.loads(said)["items"][0]
    return row["waitsFor"], row["why"]


def test_a_dispatcher_that_renews_its_lease_is_running(mcad: Type) -> None:
    said = mcad("get", "fits", "-o", "json")
    assert why(said.stdout) == ("", FITS_AS_STORED)
    assert said.stderr == ""


@pytest.mark.parametrize(
    "spec",
    [RELEASED, {"holderIdentity": None}, {"leaseDurationSeconds": 1, "renewTime": "garbage"}],
    ids=["released", "never held", "garbage"],
)
def test_a_lease_without_a_holder_is_no_dispatcher(spec: Json, api: FakeApi, mcad: Type) -> None:
    write(api, **spec)
    said = mcad("get", "fits", "-o", "json")
    assert why(said.stdout) == ("NoDispatcher", "It fits, but no dispatcher is running.")
    assert said.stderr.startswith("warning: no dispatcher is running")


@pytest.mark.parametrize(
    ("renewed", "is_running"),
    [("07:59:40", True), ("07:59:39", False), ("08:00:05", True)],
    ids=["15 s and a skew of 5 s", "over", "a clock that is ahead"],
)
def test_a_lease_holds_for_its_duration(
    renewed: str, is_running: bool, api: FakeApi, mcad: Type
) -> None:
    write(api, renewTime=f"2027-01-15T{renewed}.000000Z")
    assert (mcad("queue", "-A").stderr == "") is is_running


def test_no_lease_is_no_dispatcher_and_no_right_to_read_it_says_nothing(
    api: FakeApi, mcad: Type
) -> None:
    api.remove(*LEASE)
    said = mcad("queue")
    told = "warning: no dispatcher is running: nothing is dispatched until one is started\n"
    assert said.stderr == told
    api.deny("leases")
    said = mcad("get", "fits", "-o", "json")
    assert (why(said.stdout), said.stderr) == (("", FITS_AS_STORED), "")


@pytest.mark.parametrize(
    "args",
    [("queue",), ("get",), ("describe", "fits"), ("describe", "fits", "fragmented"), ("top",)],
    ids=" ".join,
)
def test_it_is_told_once_where_it_matters(args: tuple[str, ...], api: FakeApi, mcad: Type) -> None:
    write(api, **RELEASED)
    said = mcad(*args)
    assert (said.exit_code, said.stderr) == (0, WARNING)
    assert "dispatched next" not in said.stdout


def test_the_capacity_of_nodes_needs_no_dispatcher(api: FakeApi, mcad: Type) -> None:
    write(api, **RELEASED)
    assert mcad("capacity").stderr == ""


def test_only_an_appwrapper_that_fits_waits_for_a_dispatcher() -> None:
    absent = Heartbeat(Presence.ABSENT)
    row = {"position": 1, "waitsFor": "cpu", "why": "cpu: ..."}
    assert absent.applied_to(row) == row
    running = {"position": 0, "waitsFor": "", "why": ""}
    assert absent.applied_to(running) == running


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


def publish_text(api: FakeApi, text: str) -> None:
    metadata = {"annotations": {ANNOTATION: text}}
    api.change(*LEASE, lambda obj: obj["metadata"].update(metadata))


def test_figures_rest_on_the_settings_of_the_dispatcher_that_leads(
    mcad: Type, api: FakeApi
) -> None:
    def publish_as(holder: str, **settings: Any) -> None:
        publish_text(api, publish(Config(**settings), holder))

    def binding(*more: str) -> str:
        return str(why(mcad("get", "fragmented", "-o", "json", *more).stdout)[1])

    assert "no placement on nodes does" in binding()
    publish_as("mcad-1", fit="aggregate")
    assert binding() == FITS_AS_STORED
    assert "no placement on nodes does" in binding("--set", "fit=nodes")
    publish_as("another", fit="aggregate")
    assert "no placement on nodes does" in binding()


def test_settings_that_make_no_sense_are_told(mcad: Type, api: FakeApi) -> None:
    publish_text(api, "{")
    assert "use the version of mcad that runs there" in mcad("get").stderr
    told = json.loads(publish(Config(), "mcad-1"))
    told["settings"]["later"] = 1
    publish_text(api, json.dumps(told))
    assert "does not know: later; figures may differ" in mcad("get").stderr
