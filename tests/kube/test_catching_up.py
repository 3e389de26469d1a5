"""A reflector that goes on from where it was is as fresh as after a list, or it lists (ADR 55)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from mcad.kube import reflector as module
from mcad.kube.client import Client, Selection
from mcad.kube.document import Document
from mcad.kube.port import Request, Response
from mcad.kube.reflector import Reflector
from mcad.kube.versions import reaches
from tests.fakeapi import Chunks, FakeApi, Fault, answer, event, in_band, refuse
from tests.kube.support import PODS, RecordingSink, eventually, pod
from tests.kube.test_reflector import ALL

Told = list[tuple[object, ...]]


class Bench:
    """A reflector that has listed two pods and was ended; ``resumed`` is what it then tells."""

    def __init__(self, server: FakeApi, client: Client, selection: Selection | None = None) -> None:
        self.server = server
        self.sink = RecordingSink()
        self.reflector = Reflector(client, PODS, self.sink, Document.json, selection or Selection())

    async def stood_by(self) -> None:
        self.server.put("pods", pod("a"), pod("b"))
        await self._run(lambda: bool(self.server.streams), resume=False)
        assert self.lists == ["500"]
        self.server.requests.clear()
        self.sink.log.clear()

    async def resumed(self) -> Told:
        """What is told until it watches as usual: for minutes."""
        await self._run(lambda: self._watches_for_long() and bool(self.sink.syncs), resume=True)
        return self.sink.log

    async def _run(self, done: Callable[[], bool], *, resume: bool) -> None:
        task = asyncio.ensure_future(self.reflector.run(resume=resume))
        await eventually(done)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def _watches_for_long(self) -> bool:
        return any(int(one.params["timeoutSeconds"]) >= 300 for one in self.server.seen("WATCH"))

    @property
    def lists(self) -> list[str]:
        """The limits of the lists so far: 500 is a whole one, 1 asks for the version."""
        return [one.params["limit"] for one in self.server.seen("LIST")]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pods are many."""
    monkeypatch.setattr(module, "FEW", 2)


@pytest.fixture
async def bench(server: FakeApi, client: Client) -> Bench:
    bench = Bench(server, client)
    await bench.stood_by()
    return bench


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}}) + b"\n"


def told(*lines: bytes, ends: bool = False) -> Fault:
    """A watch that tells these lines, and then nothing more."""

    async def chunks() -> Chunks:
        for line in lines:
            yield line
        if not ends:
            await asyncio.Event().wait()

    async def fault(_: object) -> Chunks:
        return chunks()

    return fault


async def test_where_nothing_has_happened_nothing_is_listed(bench: Bench) -> None:
    assert await bench.resumed() == [("synced", False)]
    assert bench.lists == ["1"]


async def test_what_happened_meanwhile_is_told_before_it_is_synced(bench: Bench) -> None:
    """A pod that was made, one that changed, and one that was deleted."""
    server = bench.server
    gone = server.named("pods", "b")["metadata"]["uid"]
    server.put("pods", pod("c"), server.named("pods", "a"))
    server.remove("pods", "b")
    assert await bench.resumed() == [
        ("upserted", "c", "1003"),
        ("upserted", "a", "1004"),
        ("gone", "b", gone, True),
        ("synced", False),
    ]
    assert bench.lists == ["1"]


async def test_a_bookmark_tells_that_nothing_happened_to_the_kind(bench: Bench) -> None:
    """Other kinds have raised the version of the server; the short watch ends with a bookmark."""
    bench.server.put("configmaps", {"metadata": {"name": "x", "namespace": "y"}})
    bench.server.fail("WATCH", ALL, told(bookmark(1003)))
    assert await bench.resumed() == [("synced", False)]
    assert bench.lists == ["1"]
    assert bench.server.seen("WATCH")[0].params["timeoutSeconds"] == "3"


@pytest.mark.parametrize(
    "watch",
    [
        told(),
        told(b"nonsense\n"),
        in_band(410, "Expired"),
        refuse(410, "Expired", "too old resource version"),
        refuse(504, "Timeout", "Too large resource version"),
    ],
    ids=["says nothing", "nonsense", "expires", "is too old", "is ahead"],
)
async def test_a_watch_that_does_not_come_to_the_present_is_followed_by_a_list(
    bench: Bench, watch: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CATCH_UP_S", 0.2)
    gone = bench.server.named("pods", "b")["metadata"]["uid"]
    bench.server.remove("pods", "b")
    bench.server.put("pods", pod("c"))
    bench.server.fail("WATCH", ALL, watch)
    assert await bench.resumed() == [
        ("upserted", "c", "1004"),
        ("gone", "b", gone, False),
        ("synced", True),
    ]
    assert bench.lists == ["1", "500"]


async def test_a_watch_that_ends_before_its_bookmark_is_followed_by_another_one(
    bench: Bench,
) -> None:
    bench.server.remove("pods", "b")
    bench.server.put("configmaps", {"metadata": {"name": "x", "namespace": "y"}})
    bench.server.fail("WATCH", ALL, told(bookmark(1003), ends=True), told(bookmark(1004)))
    bench.server.objects["pods"]["default", "b"] = {"metadata": {}}
    assert await bench.resumed() == [("synced", False)]
    assert bench.lists == ["1"]
    first, second = bench.server.seen("WATCH")[:2]
    assert (first.params["resourceVersion"], second.params["resourceVersion"]) == ("1002", "1003")


async def test_few_objects_are_listed_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW", 3)
    bench.server.put("pods", pod("c"))
    assert await bench.resumed() == [("upserted", "c", "1003"), ("synced", True)]
    assert bench.lists == ["500"]


async def test_a_list_that_fails_is_repeated_as_a_whole_one(bench: Bench) -> None:
    bench.server.fail("LIST", ALL, *[refuse(403, "Forbidden", "no")] * 1)
    assert await bench.resumed() == [("synced", True)]
    assert bench.lists == ["1", "500"]


async def test_a_server_that_is_behind_what_is_known_was_restored(bench: Bench) -> None:
    """It would accept the version in silence once it is reached again."""
    bench.server.version = 900
    assert await bench.resumed() == [("synced", True)]
    assert bench.lists == ["1", "500"]


async def test_a_list_that_began_too_early_is_read_to_its_end_and_followed(
    server: FakeApi, client: Client
) -> None:
    """It has the pod that is deleted before it is complete."""
    bench, gate = Bench(server, client), asyncio.Event()
    server.put("pods", pod("a"), pod("b"))
    found = server._honest(Request("GET", ALL, {"limit": "500"}))
    assert isinstance(found, Response)

    async def held(_: object) -> Response:
        await gate.wait()
        return found

    server.fail("LIST", ALL, held)
    task = asyncio.ensure_future(bench.reflector.run())
    await eventually(lambda: bench.lists)
    assert bench.reflector.expect_more()
    server.remove("pods", "b")
    gate.set()
    await eventually(lambda: bench.sink.syncs)
    assert bench.sink.names("upserted") == ["a", "b"]
    assert bench.sink.log[-2][:2] == ("gone", "b")
    assert bench.sink.log[-1] == ("synced", False)
    assert bench.lists == ["500", "1"]
    assert not bench.reflector.expect_more()
    task.cancel()


async def test_a_list_that_began_too_early_is_repeated_if_it_cannot_be_followed(
    server: FakeApi, client: Client
) -> None:
    bench = Bench(server, client)
    server.put("pods", pod("a"), pod("b"))

    async def early(_: object) -> None:
        assert bench.reflector.expect_more()

    async def later(_: object) -> None:
        server.put("pods", pod("c"))

    server.fail("LIST", ALL, early, later)
    server.fail("WATCH", ALL, in_band(410, "Expired"))
    task = asyncio.ensure_future(bench.reflector.run())
    await eventually(lambda: bench.sink.syncs)
    assert bench.sink.log[-1] == ("synced", True)
    assert bench.lists == ["500", "1", "500"]
    assert bench.sink.names("upserted") == ["a", "b", "c"]
    task.cancel()


async def test_versions_that_are_no_numbers_are_not_waited_for(bench: Bench) -> None:
    body = {"kind": "List", "metadata": {"resourceVersion": "x"}, "items": []}

    async def unlike(_: object) -> Response:
        return answer(body)

    bench.server.fail("LIST", ALL, unlike)
    assert await bench.resumed() == [("synced", True)]
    assert bench.lists == ["1", "500"]
    assert len(bench.server.seen("WATCH")) == 1


async def test_a_number_of_objects_that_is_not_known_leads_to_a_list(bench: Bench) -> None:
    """A watch has lost an event, and the next one says that there was none."""
    bench.server.remove("pods", "b")
    bench.server.fail("WATCH", ALL, told(bookmark(1003)))
    await bench.resumed()
    assert bench.sink.names("gone") == ["b"]
    assert bench.lists == ["1", "500"]


async def test_a_number_says_nothing_once_the_watch_has_told_more(bench: Bench) -> None:
    """The list is of before the pod, the watch of after it: that is no reason to list them all."""
    server = bench.server
    server.put("pods", pod("c"))
    last = server.history[-1][3]
    server.fail("WATCH", ALL, told(event("ADDED", last) + b"\n", bookmark(1004)))
    server.put("pods", pod("d"))
    server.objects["pods"].pop(("default", "d"))
    server.version = 1004
    assert await bench.resumed() == [("upserted", "c", "1003"), ("synced", False)]
    assert bench.lists == ["1"]


async def test_without_a_version_it_lists(server: FakeApi, client: Client) -> None:
    bench = Bench(server, client)
    server.put("pods", pod("a"))
    assert await bench.resumed() == [("upserted", "a", "1001"), ("synced", False)]
    assert bench.lists == ["500"]


async def test_what_a_sink_has_forgotten_is_told_again(bench: Bench) -> None:
    bench.reflector.forget()
    await bench.resumed()
    assert bench.sink.names("upserted") == ["a", "b"]
    assert bench.lists == ["500"]


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [("9", "10", False), ("10", "10", True), ("11", "10", True), ("x", "10", False)],
)
def test_a_version_reaches_another_one_if_it_is_certainly_not_older(
    version: str, wanted: str, expected: bool
) -> None:
    assert reaches(version, wanted) is expected
    assert reaches("10", "y") is False
