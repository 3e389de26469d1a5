"""A watch that told nothing is checked by one object and the count of the others (ADR 43)."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from mcad.kube.client import Selection
from mcad.kube.port import Request, Response
from mcad.kube.rest import RestApi
from tests.fakeapi import Answer, Chunks, FakeApi, Fault, answer, event
from tests.kube.support import (
    PODS,
    FakeClock,
    RecordingSink,
    client_of,
    connection,
    eventually,
    pod,
)
from tests.kube.test_reflector import ALL, connected, reflecting

SECONDS = 15
WATCHED = (SECONDS, SECONDS)


def lasting(clock: FakeClock, seconds: float, *lines: bytes) -> Fault:
    """A watch that the server ends after so long, having told these lines."""

    async def chunks() -> Chunks:
        for line in lines:
            yield line + b"\n"
        clock.now += seconds

    async def fault(_: object) -> Chunks:
        return chunks()

    return fault


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


async def play(
    server: FakeApi,
    sink: RecordingSink,
    clock: FakeClock,
    *watches: Fault,
    selection: Selection | None = None,
) -> None:
    """Let these watches pass, and the one after them begin."""
    server.fail("WATCH", ALL, *watches)
    async with RestApi(connection(server.url), clock) as api:
        client = client_of(api, clock)
        async with reflecting(client, sink, PODS, selection, WATCHED):
            await eventually(lambda: len(server.seen("WATCH")) == len(watches) + 1)
            await asyncio.sleep(0.05)


def lists(server: FakeApi) -> list[str]:
    """The limits of the lists so far: 500 is a whole one, 1 a check."""
    return [one.params["limit"] for one in server.seen("LIST")]


async def test_silence_for_as_long_as_was_asked_is_a_sign_of_life(
    server: FakeApi, sink: RecordingSink, clock: FakeClock
) -> None:
    """An idle API server that has just started sends no bookmarks."""
    server.put("pods", pod("a"), pod("b"), pod("c"))
    await play(server, sink, clock, *[lasting(clock, SECONDS)] * 5)
    assert sink.errors == []
    assert lists(server) == ["500", *["1"] * 5]
    assert max(clock.sleeps) == 0
    signs = sink.alive_at
    assert max(after - before for before, after in pairwise(signs)) <= SECONDS


@pytest.mark.parametrize("secret", ["put", "remove"])
async def test_a_watch_that_tells_less_than_a_list_is_found_when_it_ends(
    secret: str, server: FakeApi, sink: RecordingSink, clock: FakeClock
) -> None:
    server.put("pods", pod("a"), pod("b"))

    async def kept_back(_: object) -> None:
        if secret == "put":
            server.put("pods", pod("new"))
        else:
            server.remove("pods", "b")

    server.fail("WATCH", ALL, kept_back)
    server.always.append(("WATCH", ALL, lasting(clock, SECONDS)))
    async with connected(server.url, sink, clock, watch_s=WATCHED):
        await eventually(lambda: sink.syncs == 2)
    assert lists(server)[:3] == ["500", "1", "500"]
    assert (sink.names("upserted"), sink.names("gone")) == (
        (["a", "b", "new"], []) if secret == "put" else (["a", "b"], ["b"])
    )


async def test_a_server_that_is_behind_is_listed(
    server: FakeApi, sink: RecordingSink, clock: FakeClock
) -> None:
    """It was restored, and waits in silence for the version that it had told before."""
    server.put("pods", pod("a"))
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "999999"}})
    await play(server, sink, clock, lasting(clock, SECONDS, bookmark), lasting(clock, SECONDS))
    assert lists(server) == ["500", "1", "500"]


async def test_a_count_that_no_list_explains_is_borne(
    server: FakeApi, sink: RecordingSink, clock: FakeClock
) -> None:
    """Kubernetes calls it an estimate: a server that miscounts must not be listed for ever."""
    server.put("pods", pod("a"), pod("b"))
    wrong = {"resourceVersion": "1002", "continue": "1:1002", "remainingItemCount": 5}
    first = pod("a") | {"metadata": pod("a")["metadata"] | {"uid": "u", "resourceVersion": "1001"}}

    async def miscounted(request: Request) -> Response | None:
        is_check = request.params.get("limit") == "1"
        return answer({"metadata": wrong, "items": [first]}) if is_check else None

    server.fail_always("LIST", ALL, miscounted)
    await play(server, sink, clock, *[lasting(clock, SECONDS)] * 4)
    assert lists(server) == ["500", "1", "500", "1", "1", "1"]


async def test_a_count_that_a_list_explains_is_believed_again(
    server: FakeApi, sink: RecordingSink, clock: FakeClock
) -> None:
    """The same number of objects may be kept back a second time."""
    server.put("pods", pod("a"), pod("b"))
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "1002"}})
    told = lasting(clock, SECONDS, bookmark)

    def keeping_back(name: str) -> Fault:
        mute = lasting(clock, SECONDS)

        async def fault(request: Request) -> Answer | None:
            server.put("pods", pod(name))
            return await mute(request)

        return fault

    await play(server, sink, clock, keeping_back("c"), told, keeping_back("d"))
    assert sink.names("upserted") == ["a", "b", "c", "d"]
    assert lists(server) == ["500", "1", "500", "1", "500"]


async def test_what_cannot_be_counted_is_not_compared(
    server: FakeApi, sink: RecordingSink, clock: FakeClock
) -> None:
    """With a selector the server does not say how many objects are left."""
    labelled = [pod(name) for name in "abc"]
    for one in labelled:
        one["metadata"]["labels"] = {"team": "a"}
    server.put("pods", *labelled)
    selection = Selection(label_selector="team")
    await play(server, sink, clock, *[lasting(clock, SECONDS)] * 3, selection=selection)
    assert lists(server) == ["500", "1", "1", "1"]


async def test_a_watch_that_told_something_is_not_checked(
    server: FakeApi, sink: RecordingSink, clock: FakeClock
) -> None:
    server.put("pods", pod("a"))
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "1000"}})
    await play(server, sink, clock, *[lasting(clock, SECONDS, bookmark)] * 3)
    assert lists(server) == ["500"]


async def test_a_watch_that_ends_early_is_no_silence(
    server: FakeApi, sink: RecordingSink, clock: FakeClock
) -> None:
    server.put("pods", pod("a"))
    await play(server, sink, clock, *[lasting(clock, SECONDS - 5)] * 3)
    assert lists(server) == ["500"]
