"""What the client asks for, to the figure, against a port that only remembers."""

import json
from random import Random
from typing import Any

import pytest
from msgspec import Raw

from mcad.kube.client import Client, CreateOptions, Selection
from mcad.kube.errors import ApiError, BadAnswer
from mcad.kube.pages import Page
from mcad.kube.port import Request, Response
from tests.kube.support import NODES, PODS, FakeClock


class Port:
    """Answers in turn, and remembers what was asked with how much time."""

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Request, float | None]] = []

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        self.asked.append((request, timeout))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def stream(self, request: Request, idle: float, opened: Any = None) -> Any:
        self.asked.append((request, idle))
        return opened


def told(status: int = 200, body: Any = None) -> Response:
    return Response(status, json.dumps(body or {}).encode())


def remembering(*answers: Response, **more: Any) -> tuple[Client, Port]:
    port = Port(*answers or (told(),))
    return Client(port, FakeClock(), Random(1), **more), port


@pytest.mark.parametrize("status", [200, 201, 202, 299])
async def test_what_is_a_success(status):
    client, _ = remembering(told(status, {"a": 1}))
    assert await client.create(PODS, "default", {}) == {"a": 1}


@pytest.mark.parametrize("status", [199, 300, 301, 400])
async def test_what_is_none(status):
    client, _ = remembering(told(status))
    with pytest.raises(ApiError) as caught:
        await client.create(PODS, "default", {})
    assert caught.value.status == status


async def test_a_write_has_all_of_its_time_a_read_half_of_it_for_one_attempt():
    client, port = remembering()
    await client.create(PODS, "default", {})
    await client.get(PODS, "default", "a")
    await client.create(PODS, "default", {}, timeout=7.0)
    await client.get(PODS, "default", "a", timeout=7.0)
    assert [timeout for _, timeout in port.asked] == [30.0, 15.0, 7.0, 7.0]


async def test_a_page_of_a_list_has_a_minute():
    client, port = remembering(told(200, {"metadata": {"resourceVersion": "7"}, "items": []}))
    pages = [page async for page in client.list_pages(PODS)]
    assert [(page.resource_version, page.first, page.last) for page in pages] == [("7", True, True)]
    [(request, timeout)] = port.asked
    assert (timeout, dict(request.params)) == (60.0, {"limit": "500"})
    assert dict(request.headers) == {}


async def test_requests_have_no_more_than_was_asked_for():
    client, port = remembering()
    await client.create(PODS, "default", {})
    await client.delete(PODS, "default", "a")
    await client.get(PODS, "default", "a")
    created, deleted, got = (request for request, _ in port.asked)
    assert (dict(created.params), dict(created.headers)) == ({}, {})
    assert dict(got.headers) == {}
    assert deleted.body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {},
    }


async def test_metadata_only_is_an_accept_header():
    """Whole objects are accepted from servers that cannot shorten them."""
    client, port = remembering()
    client.watch(PODS, "7", Selection(metadata_only=True))
    await client.get(PODS, "default", "a", metadata_only=True)
    await client.create(PODS, "default", {}, CreateOptions(metadata_only=True))
    await client.patch(PODS, "default", "a", {})
    await client.patch_status(PODS, "default", "a", {})
    await client.create_event("default", {})
    wanted = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
    assert {request.headers["Accept"] for request, _ in port.asked} == {wanted}
    client.watch(PODS, "7")
    assert "Accept" not in port.asked[-1][0].headers


async def test_the_parameters_of_a_watch():
    client, port = remembering()
    selection = Selection("team", "a=b", "c=d")
    client.watch(PODS, "7", selection)
    client.watch(PODS, "7", selection, seconds=15)
    (request, idle), (short, patience) = port.asked
    assert (short.params["timeoutSeconds"], patience) == ("15", 20.0)
    assert (request.method, idle) == ("GET", 70.0)
    assert {key: value for key, value in request.params.items() if key != "timeoutSeconds"} == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "labelSelector": "a=b",
        "fieldSelector": "c=d",
    }
    assert request.path == PODS.path("team")


async def test_the_caller_learns_that_a_watch_is_open():
    client, _ = remembering()
    opened = object()
    assert client.watch(PODS, "7", opened=opened) is opened  # the port's double gives it back


async def test_a_fenced_client_is_as_patient():
    client, port = remembering(timeout_s=4.0, idle_s=5.0)
    fenced = client.fenced(lambda: 100.0)
    await fenced.get(PODS, "default", "a")
    fenced.watch(PODS, "7")
    assert [timeout for _, timeout in port.asked] == [4.0, 5.0]


@pytest.mark.parametrize(
    ("allowed", "expected"), [(True, True), (False, False), ("true", False), (1, False)]
)
async def test_only_true_is_a_right(allowed, expected):
    client, port = remembering(told(201, {"status": {"allowed": allowed}}))
    assert await client.self_subject_access_review(NODES, "team", "get") is expected
    assert await client.self_subject_access_review(PODS, "team", "get", name="a") is expected
    assert await client.self_subject_access_review(PODS, None, "get") is expected
    asked = [request.body["spec"]["resourceAttributes"] for request, _ in port.asked]
    assert [(one["namespace"], one["name"]) for one in asked] == [("", ""), ("team", "a"), ("", "")]
    assert port.asked[0][1] == 15.0


async def test_a_page_that_is_no_json_is_found_when_it_is_read():
    page = Page(PODS, [Raw(b'{"a":')], "7", first=True, last=True)
    with pytest.raises(BadAnswer, match="no JSON"):
        assert page.items
