"""``--server``: what is asked at the dispatcher's port, and answers that are not a dispatcher's."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
from aiohttp import web

from mcad.cli.server import server_at
from tests.cli.conftest import Type
from tests.cli.fakeapi import FakeApi
from tests.cli.serve import in_thread

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
    "adrift": {},
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

Answer = Callable[[web.Request], Awaitable[web.Response]]


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    with in_thread(app) as url:
        yield url


def test_a_server_is_asked_without_any_connection_to_the_cluster(api: FakeApi, mcad: Type) -> None:
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"items": [ROW]})

    with answering(answer) as url:
        by_url = mcad("queue", "--server", url + "/", "--no-headers")
        by_address = mcad("get", "a", "--server", url.removeprefix("http://"), "--no-headers")
    assert by_url.stdout == "a   1   Pending   0   cpu=1   cpu   60s\n"
    assert by_address.stdout == by_url.stdout
    assert asked == ["/api/v1/queue", "/api/v1/appwrappers"]
    assert api.requests == []


def _say(text: str, status: int = 200) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text, status=status)

    return answer


def test_a_dispatcher_that_cannot_see_says_why(mcad: Type) -> None:
    with answering(_say("AppWrappers are not installed\n", 503)) as url:
        result = mcad("queue", "--server", url)
    assert result.exit_code == 1
    assert result.stderr == (
        f"error: the dispatcher at {url} does not answer: AppWrappers are not installed\n"
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [(403, "this is told on loopback only: run ..."), (503, "not synced yet; see /readyz")],
)
def test_a_dispatcher_that_does_not_answer_says_why(status: int, words: str, mcad: Type) -> None:
    with answering(_say(f"{words}\n", status)) as url:
        told = f"error: the dispatcher at {url} does not answer: {words}\n"
        for args in (("queue",), ("describe", "a"), ("top",)):
            assert (mcad(*args, "--server", url).stderr) == told


def test_who_leaves_does_not_wait_for_an_answer() -> None:
    asked, answered = threading.Event(), threading.Event()

    async def linger(_: web.Request) -> web.Response:
        asked.set()
        await asyncio.sleep(1)
        answered.set()
        return web.Response(text="{}")

    async def leave(url: str) -> None:
        asking = asyncio.ensure_future(server_at(url).capacity())
        await asyncio.to_thread(asked.wait, 10)
        asking.cancel()

    with answering(linger) as url:
        asyncio.run(leave(url))  # which waits for the threads of the loop
        assert asked.is_set()
        assert not answered.is_set()


async def _elsewhere(_: web.Request) -> web.Response:
    raise web.HTTPFound("http://example.com/")


@pytest.mark.parametrize(
    "case",
    [
        (_say("not found", 404), "404 Not Found"),
        (_say("broken", 500), "500 Internal Server Error"),
        (_say("<html>"), "no JSON object"),
        (_say("[]"), "no JSON object"),
        (_say("{}"), "no list of AppWrappers"),
        (_elsewhere, "302 Found"),
    ],
    ids=lambda case: case[1],
)
def test_answers_that_are_not_a_dispatchers(case: tuple[Answer, str], mcad: Type) -> None:
    answer, words = case
    with answering(answer) as url:
        result = mcad("queue", "--server", url)
        told = f"error: {url} answers as no dispatcher does ({words}); is it the right port?\n"
        assert (result.exit_code, result.stderr) == (1, told)
        assert mcad("capacity", "--server", url).exit_code == 1
