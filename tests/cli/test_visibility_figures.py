"""The visibility API is the source of figures."""

import json
from random import Random

import pytest
from msgspec import to_builtins

from mcad.api.list_page import PageFacts, PageQuery
from mcad.client.errors import McadError
from mcad.client.figures.of_visibility import VisibilityFigures
from mcad.client.figures.polled import ListPage
from mcad.kube.client import Client
from mcad.kube.clock import RealClock
from mcad.kube.port import Response
from tests.cli.conftest import Type
from tests.cli.test_server_figures import CAPACITY, DETAIL, QUOTA, ROW
from tests.fakeapi import FakeApi, answer

ROOT = "/apis/visibility.workload.codeflare.dev/v1beta1"
ALL = f"{ROOT}/appwrapperreports"
OWN = f"{ROOT}/namespaces/default/appwrapperreports"
TOLD = ROW | {"why": "the dispatcher says so"}


def report(status: object) -> Response:
    return answer({"metadata": {}, "status": status})


@pytest.fixture
def visible(api: FakeApi) -> FakeApi:
    """A dispatcher that tells of one AppWrapper, other than what would be counted."""
    api.fail_always("HEAD", f"{ROOT}/", answer(b""))
    api.fail_always("GET", "appwrapperreports$", answer({"items": [{"status": TOLD}]}))
    api.fail_always("GET", f"{OWN}/a$", report(DETAIL | {"why": TOLD["why"]}))
    api.fail_always("GET", f"{ROOT}/capacityreports/cluster", report(CAPACITY))
    view = {"enabled": True, "trees": [QUOTA]}
    api.fail_always("GET", f"{ROOT}/quotareports/cluster$", report(view))
    return api


PAUSES = "/apis/workload.codeflare.dev/v1alpha1/dispatchpauses"


def listed(api: FakeApi) -> list[str]:
    """What was not asked from the dispatcher."""
    return [one for one in asked(api) if not one.startswith(ROOT)]


def asked(api: FakeApi) -> list[str]:
    return [one.path for one in api.requests if one.path != "/version"]


@pytest.mark.parametrize(
    ("args", "path"),
    [
        (("queue", "-o", "wide"), OWN),
        (("queue", "-A", "-o", "wide"), ALL),
        (("get", "-o", "wide"), OWN),
        (("capacity",), f"{ROOT}/capacityreports"),
        (("quota",), f"{ROOT}/quotareports"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_dispatcher_is_asked_first_and_nothing_is_listed(
    args: tuple[str, ...], path: str, visible: FakeApi, mcad: Type
) -> None:
    result = mcad(*args)
    assert (result.exit_code, result.stderr) == (0, "")
    assert asked(visible)[0] == path
    assert listed(visible) == [PAUSES]
    if args[0] not in ("capacity", "quota"):
        assert TOLD["why"] in result.stdout


def test_a_pause_of_the_whole_cluster_is_noted(visible: FakeApi, mcad: Type) -> None:
    spec = {"reason": "upgrade"}
    visible.put("dispatchpauses", {"metadata": {"name": "p"}, "spec": spec})
    said = "warning: Dispatch is paused for the whole cluster (DispatchPause p): upgrade\n"
    assert mcad("queue").stderr == said
    visible.change("dispatchpauses", "p", lambda obj: obj.update(spec={"namespace": "team"}))
    assert mcad("queue").stderr == ""
    visible.deny("dispatchpauses")
    assert mcad("queue").stderr == ""


def test_one_appwrapper_is_its_object_its_events_and_the_report(
    visible: FakeApi, mcad: Type
) -> None:
    name = next(iter(visible.objects["appwrappers"].values()))["metadata"]["name"]
    visible.fail_always("GET", f"{OWN}/{name}$", report(DETAIL | {"why": TOLD["why"]}))
    result = mcad("describe", name)
    assert result.exit_code == 0
    assert TOLD["why"] in result.stdout
    assert "Events:" in result.stdout
    assert not [one for one in asked(visible) if one.endswith(("/nodes", "/pods"))]


def test_the_queue_asks_for_what_it_shows(visible: FakeApi, mcad: Type) -> None:
    mcad("queue", "-o", "wide")
    mcad("queue")
    told = [dict(one.params) for one in visible.seen("GET", ROOT)]
    wishes = [one for one in told if one]
    assert wishes == [{"waiting": "true", "starts": "true"}, {"waiting": "true"}]


def test_labels_are_those_of_the_objects(visible: FakeApi, mcad: Type) -> None:
    (obj, *_) = visible.objects["appwrappers"].values()
    obj["metadata"]["labels"] = {"team": "a"}
    obj["metadata"]["uid"] = TOLD["uid"]
    assert mcad("queue", "-l", "team", "--no-headers").stdout.split()[0] == TOLD["name"]
    assert mcad("queue", "-l", "stage").stdout == ""


@pytest.mark.parametrize(
    "body", [b"<html>", {"items": 1}, {"items": [{}]}, {"items": [{"status": None}]}, {}]
)
def test_an_answer_that_is_none_is_one_line(body: object, api: FakeApi, mcad: Type) -> None:
    api.fail_always("HEAD", f"{ROOT}/", answer(b""))
    api.fail_always("GET", f"{OWN}$", answer(body))
    result = mcad("queue")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


def test_an_appwrapper_that_the_dispatcher_does_not_know_yet(visible: FakeApi, mcad: Type) -> None:
    name = next(iter(visible.objects["appwrappers"].values()))["metadata"]["name"]
    gone = {"kind": "Status", "reason": "NotFound", "details": {"name": name}, "code": 404}
    visible.fail_always("GET", f"{OWN}/{name}$", answer(gone, 404))
    result = mcad("describe", name, "-o", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["appwrapper"] is None


async def test_pages_are_asked_with_the_rights_of_the_caller(visible: FakeApi) -> None:
    client = Client(visible, RealClock(), Random(1))
    mine, everywhere = (VisibilityFigures(client, one, max_age_s=30) for one in ("default", None))
    query = PageQuery(namespace="team", page=2, size=7)
    older = await mine.page(query)
    assert older == ListPage([TOLD], None)  # all rows: it does not know pages
    assert (visible.requests[-1].path, dict(visible.requests[-1].params)) == (
        OWN,
        {"starts": "true", "maxAge": "30", "namespace": "team", "page": "2", "pageSize": "7"},
    )
    facts = PageFacts(
        number=2,
        pages=3,
        matching=20,
        total=30,
        in_line=10,
        on_hold=5,
        others={"Running": 15},
        states=["Pending"],
        namespaces=["team"],
        paused="paused",
    )
    visible.fail(
        "GET",
        "appwrapperreports$",
        answer({"items": [{"status": TOLD}], "page": to_builtins(facts)}),
    )
    assert await everywhere.page(query) == ListPage([TOLD], facts)
    assert visible.requests[-1].path == ALL
    visible.fail("GET", "appwrapperreports$", answer({"items": [], "page": {"number": "x"}}))
    with pytest.raises(McadError, match="is not an mcad dispatcher"):
        await everywhere.page(query)
