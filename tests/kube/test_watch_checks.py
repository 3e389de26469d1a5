"""A watch that told nothing is checked by one object and the count of the others (ADR 43)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
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


@dataclass
class Bench:
    """A server, and what a reflector tells of it."""

    server: FakeApi
    sink: RecordingSink
    clock: FakeClock

    def lasting(self, *lines: bytes, seconds: float = SECONDS) -> Fault:
        """A watch that the server ends after so long, having told these lines."""

        async def chunks() -> Chunks:
            for line in lines:
                yield line + b"\n"
            self.clock.now += seconds

        async def fault(_: object) -> Chunks:
            return chunks()

        return fault

    async def play(self, *watches: Fault, selection: Selection | None = None) -> None:
        """Let these watches pass, and the one after them begin."""
        self.server.fail("WATCH", ALL, *watches)
        async with RestApi(connection(self.server.url), self.clock) as api:
            client = client_of(api, self.clock)
            async with reflecting(client, self.sink, PODS, selection, WATCHED):
                await eventually(lambda: len(self.server.seen("WATCH")) == len(watches) + 1)
                await asyncio.sleep(0.05)

    @property
    def lists(self) -> list[str]:
        """The limits of the lists so far: 500 is a whole one, 1 a check."""
        return [one.params["limit"] for one in self.server.seen("LIST")]


@pytest.fixture
def bench(server: FakeApi, clock: FakeClock) -> Bench:
    server.put("pods", pod("a"), pod("b"))
    return Bench(server, RecordingSink(), clock)


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


async def test_silence_for_as_long_as_was_asked_is_a_sign_of_life(bench: Bench) -> None:
    """An idle API server that has just started sends no bookmarks."""
    await bench.play(*[bench.lasting()] * 5)
    assert bench.sink.errors == []
    assert bench.lists == ["500", *["1"] * 5]
    assert max(bench.clock.sleeps) == 0
    signs = bench.sink.alive_at
    assert max(after - before for before, after in pairwise(signs)) <= SECONDS


@pytest.mark.parametrize("secret", ["put", "remove"])
async def test_a_watch_that_keeps_events_back_is_found_when_it_ends(
    secret: str, bench: Bench
) -> None:
    server, sink = bench.server, bench.sink

    async def kept_back(_: object) -> None:
        if secret == "put":
            server.put("pods", pod("new"))
        else:
            server.remove("pods", "b")

    server.fail("WATCH", ALL, kept_back)
    server.always.append(("WATCH", ALL, bench.lasting()))
    async with connected(server.url, sink, bench.clock, watch_s=WATCHED):
        await eventually(lambda: sink.syncs == 2)
    assert bench.lists[:3] == ["500", "1", "500"]
    assert (sink.names("upserted"), sink.names("gone")) == (
        (["a", "b", "new"], []) if secret == "put" else (["a", "b"], ["b"])
    )


async def test_a_server_that_is_behind_is_listed(bench: Bench) -> None:
    """It was restored, and waits in silence for the version that it had told before."""
    await bench.play(bench.lasting(bookmark(999999)), bench.lasting())
    assert bench.lists == ["500", "1", "500"]


async def test_a_count_that_no_list_explains_is_borne(bench: Bench) -> None:
    """Kubernetes calls it an estimate: a server that miscounts must not be listed for ever."""
    wrong = {"resourceVersion": "1002", "continue": "1:1002", "remainingItemCount": 5}
    first = pod("a") | {"metadata": pod("a")["metadata"] | {"uid": "u", "resourceVersion": "1001"}}

    async def miscounted(request: Request) -> Response | None:
        is_check = request.params.get("limit") == "1"
        return answer({"metadata": wrong, "items": [first]}) if is_check else None

    bench.server.fail_always("LIST", ALL, miscounted)
    await bench.play(*[bench.lasting()] * 4)
    assert bench.lists == ["500", "1", "500", "1", "1", "1"]


async def test_a_count_that_a_list_explains_is_believed_again(bench: Bench) -> None:
    """The same number of objects may be kept back a second time."""

    def keeping_back(name: str) -> Fault:
        mute = bench.lasting()

        async def fault(request: Request) -> Answer | None:
            bench.server.put("pods", pod(name))
            return await mute(request)

        return fault

    await bench.play(keeping_back("c"), bench.lasting(bookmark(1002)), keeping_back("d"))
    assert bench.sink.names("upserted") == ["a", "b", "c", "d"]
    assert bench.lists == ["500", "1", "500", "1", "500"]


async def test_what_cannot_be_counted_is_not_compared(bench: Bench) -> None:
    """With a selector the server does not say how many objects are left."""
    labelled = [pod(name) for name in "abc"]
    for one in labelled:
        one["metadata"]["labels"] = {"team": "a"}
    bench.server.put("pods", *labelled)
    await bench.play(*[bench.lasting()] * 3, selection=Selection(label_selector="team"))
    assert bench.lists == ["500", "1", "1", "1"]


async def test_a_watch_with_events_is_not_checked(bench: Bench) -> None:
    await bench.play(*[bench.lasting(bookmark(1000))] * 3)
    assert bench.lists == ["500"]


async def test_a_watch_that_ends_early_is_no_silence(bench: Bench) -> None:
    await bench.play(*[bench.lasting(seconds=SECONDS - 5)] * 3)
    assert bench.lists == ["500"]
