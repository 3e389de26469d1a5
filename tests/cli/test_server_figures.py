"""``--server``: what is asked at the dispatcher's port, and answers that are not a dispatcher's."""

import asyncio
import threading

import pytest

from mcad.client.figures.of_server import server_at
from mcad.kube.port import Request, Response
from tests.cli.conftest import Type
from tests.fakeapi import FakeApi, answer, refuse
from tests.serving import answering, served

ROW = {
    "namespace": "default",
    "name": "a",
    "uid": "u",
    "position": 1,
    "headOfLine": True,
    "state": "Pending",
    "queuejobstate": "Backoff",
    "priority": 0,
    "firstSeen": "2027-01-15T07:59:00.000000Z",
    "demand": {"cpu": "1"},
    "attempt": 0,
    "waitsFor": "cpu",
    "why": "cpu: 1 requested, 0 available, 1 missing.",
}

CAPACITY = {
    "nodes": [],
    "total": {book: {"cpu": "1"} for book in ("allocatable", "used", "reserved", "free")},
    "unplaced": {},
}
QUOTA = {
    "tree": "t",
    "resources": ["cpu"],
    "nodes": [
        {
            "node": "a",
            "parent": "",
            "path": ["a"],
            "hardLimit": False,
            "leaf": True,
            "nominal": {"cpu": "1"},
            **{book: {} for book in ("allocated", "borrowed", "lent", "waiting")},
        }
    ],
    "faults": [],
    "warnings": [],
}
DETAIL = ROW | {
    "dialect": "v1beta1",
    "inLine": 1,
    "ahead": [],
    "figures": [],
    "items": [],
    "podSets": [],
    "pods": {"pending": 0, "running": 0, "succeeded": 0, "failed": 0},
}


def test_a_server_is_asked_without_any_connection_to_the_cluster(api: FakeApi, mcad: Type) -> None:
    dispatcher = FakeApi()
    dispatcher.fail_always("GET", "", answer({"items": [ROW]}))
    with served(dispatcher) as url:
        by_url = mcad("queue", "--server", url + "/", "--no-headers")
        by_address = mcad("get", "a", "--server", url.removeprefix("http://"), "--no-headers")
    assert by_url.stdout == "a   1   Pending   0   cpu=1   cpu   60s\n"
    assert by_address.stdout == by_url.stdout
    asked = [one.path for one in dispatcher.requests]
    assert asked == ["/api/v1/queue", "/api/v1/appwrappers"]
    assert api.requests == []


def text(words: str, status: int = 200) -> Response:
    return answer(words.encode(), status, "text/plain")


@pytest.mark.parametrize(
    ("status", "words"),
    [(403, "this is served on loopback only: run ..."), (503, "not synced yet; see /readyz")],
)
def test_a_dispatcher_that_does_not_answer_says_why(status: int, words: str, mcad: Type) -> None:
    with answering(text(f"{words}\n", status)) as url:
        told = f"error: the dispatcher at {url} does not answer: {words}\n"
        for args in (("queue",), ("describe", "a")):
            assert (mcad(*args, "--server", url).stderr) == told


def test_a_cancelled_request_does_not_wait_for_its_answer() -> None:
    asked, answered = threading.Event(), threading.Event()

    async def linger(_: Request) -> Response:
        asked.set()
        await asyncio.sleep(1)
        answered.set()
        return answer({})

    async def leave(url: str) -> None:
        asking = asyncio.ensure_future(server_at(url).capacity())
        await asyncio.to_thread(asked.wait, 10)
        asking.cancel()

    with answering(linger) as url:
        asyncio.run(leave(url))  # which waits for the threads of the loop
        assert asked.is_set()
        assert not answered.is_set()


@pytest.mark.parametrize(
    "case",
    [
        (text("not found", 404), "404 Not Found"),
        (text("broken", 500), "500 Internal Server Error"),
        (text("<html>"), "no JSON object"),
        (text("[]"), "no JSON object"),
        (text("{}"), "no list of AppWrappers"),
        (refuse(302, Location="http://example.com/"), "302 Found"),
    ],
    ids=lambda case: case[1],
)
def test_answers_that_are_not_a_dispatchers(case: tuple[Response, str], mcad: Type) -> None:
    said, words = case
    with answering(said) as url:
        result = mcad("queue", "--server", url)
        told = f"error: {url} is not an mcad dispatcher ({words}); is it the right port?\n"
        assert (result.exit_code, result.stderr) == (1, told)
        assert mcad("capacity", "--server", url).exit_code == 1
