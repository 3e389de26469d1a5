"""The reflector against a server that lies, dies, forgets and talks nonsense."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from mcad.kube.client import WATCH_S, Selection
from mcad.kube.document import Document
from mcad.kube.errors import ApiError, BadAnswer, ConnectionLost, RequestTimeout
from mcad.kube.reflector import ABSENT_S, FRUITLESS_MAX, Reflector
from mcad.kube.rest import RestApi
from tests.fakeapi import answer, in_band, refuse, reset, stream
from tests.kube.support import (
    PODS,
    WRAPPERS,
    FakeClock,
    RecordingSink,
    client_of,
    connection,
    eventually,
    pod,
)
from tests.serving import serve

ALL = PODS.path()


@pytest.fixture
def sink():
    return RecordingSink()


@asynccontextmanager
async def reflecting(client, sink, resource=PODS, selection=None, watch_s=WATCH_S):
    """A running reflector; it is cancelled at the end, and must not have ended by itself."""
    reflector = Reflector(client, resource, sink, Document.json, selection or Selection())
    reflector.watch_s = watch_s
    task = asyncio.ensure_future(reflector.run())
    try:
        yield reflector
    finally:
        ended = task.done()
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
        assert not ended, results


@asynccontextmanager
async def connected(url, sink, clock, resource=PODS, watch_s=WATCH_S, **timeouts):
    """A running reflector with a client of its own."""
    async with (
        RestApi(connection(url), clock) as api,
        reflecting(client_of(api, clock, **timeouts), sink, resource, watch_s=watch_s),
    ):
        yield


class TestListAndWatch:
    async def test_a3_1_custom_objects_are_plain_dicts(self, server, client, sink):
        server.put("appwrappers", {"metadata": {"name": "aw"}, "spec": {"items": [1]}})
        got = []
        sink.upserted = got.append
        async with reflecting(client, sink, WRAPPERS):
            await eventually(lambda: sink.syncs)
        assert got[0]["spec"] == {"items": [1]}
        # Items of lists come without these two.
        assert got[0]["apiVersion"] == "workload.codeflare.dev/v1beta2"
        assert got[0]["kind"] == "AppWrapper"

    async def test_what_exists_then_what_happens(self, server, client, sink):
        server.put("pods", pod("a"))
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            server.put("pods", pod("b"))
            server.put("pods", server.named("pods", "a"))
            uid = server.named("pods", "b")["metadata"]["uid"]
            server.remove("pods", "b")
            await eventually(lambda: sink.names("gone"))
        assert sink.log == [
            ("upserted", "a", "1001"),
            ("synced", False),
            ("upserted", "b", "1002"),
            ("upserted", "a", "1003"),
            ("gone", "b", uid, True),
        ]
        assert sink.errors == []

    async def test_a3_4_the_watch_asks_for_what_it_needs(self, server, client, sink):
        selection = Selection(None, "a=b", "spec.nodeName!=", metadata_only=True)
        async with reflecting(client, sink, PODS, selection):
            await eventually(lambda: server.streams)
        watch = server.seen("WATCH")[0]
        assert 300 <= int(watch.params.pop("timeoutSeconds")) <= 600
        assert watch.params == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "1000",
            "labelSelector": "a=b",
            "fieldSelector": "spec.nodeName!=",
        }
        assert "as=PartialObjectMetadata;" in watch.headers["Accept"]

    async def test_a3_6_an_empty_kind_is_synced(self, client, sink):
        async with reflecting(client, sink):
            await eventually(lambda: sink.syncs)
        assert sink.log == [("synced", False)]

    async def test_slim_is_what_the_sink_gets(self, server, client, sink):
        got = []
        sink.upserted = got.append
        for number in range(3):
            server.put("pods", pod(f"p{number}"))
        reflector = Reflector(client, PODS, sink, lambda document: document.identity.name)
        task = asyncio.ensure_future(reflector.run())
        await eventually(lambda: sink.syncs)
        task.cancel()
        assert got == ["p0", "p1", "p2"]

    async def test_p14_lists_opened_watches_bookmarks_and_events_are_signs_of_life(
        self, server, client, sink, clock
    ):
        async with reflecting(client, sink):
            await eventually(lambda: len(sink.alive_at) == 2)
            clock.now += 1
            server.version += 1  # something happened to another kind
            server.bookmark()
            await eventually(lambda: len(sink.alive_at) == 3)
            clock.now += 7
            server.put("pods", pod("a"))
            await eventually(lambda: len(sink.alive_at) == 4)
        assert sink.alive_at == [100.0, 100.0, 101.0, 108.0]

    async def test_p14_a_watch_that_is_refused_is_no_sign_of_life(self, server, client, sink):
        server.fail("WATCH", ALL, *[refuse(503)] * (FRUITLESS_MAX - 1))
        async with reflecting(client, sink):
            await eventually(lambda: server.streams and len(sink.alive_at) == 2)
        assert len(sink.errors) == FRUITLESS_MAX - 1

    async def test_p11_running_again_starts_with_a_fresh_list(self, server, client, sink):
        server.put("pods", pod("a"))
        reflector = Reflector(client, PODS, sink, Document.json)
        for syncs in (1, 2):
            task = asyncio.ensure_future(reflector.run())
            await eventually(lambda syncs=syncs: sink.syncs == syncs)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert sink.log == [("upserted", "a", "1001"), ("synced", False), ("synced", True)]


class TestReconnecting:
    async def test_a4_the_version_advances_with_events_and_bookmarks(self, server, client, sink):
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            server.put("pods", pod("a"))
            await eventually(lambda: sink.names("upserted"))
            server.send(None)
            await eventually(lambda: len(server.seen("WATCH")) == 2 and server.streams)
            server.version += 1  # something happened to another kind
            server.bookmark()
            await eventually(lambda: len(sink.alive_at) == 5)  # a list, two watches, two lines
            server.send(None)
            await eventually(lambda: len(server.seen("WATCH")) == 3)
        versions = [watch.params["resourceVersion"] for watch in server.seen("WATCH")]
        assert versions == ["1000", "1001", "1002"]
        assert len(server.seen("LIST")) == 1
        assert sink.errors == []

    async def test_nothing_is_missed_or_repeated_across_reconnects(self, server, client, sink):
        async with reflecting(client, sink):
            for number in range(10):
                await eventually(lambda: server.streams)
                server.send(None)
                server.put("pods", pod(f"p{number}"))
                await eventually(lambda number=number: len(sink.log) == number + 2)
        assert sink.names("upserted") == [f"p{number}" for number in range(10)]

    async def test_a3_5_a_half_open_watch_is_left_after_the_silence(self, server, sink):
        server.fail("WATCH", ALL, stream(then="silent"))
        async with connected(server.url, sink, FakeClock(), idle_s=0.1):
            await eventually(lambda: len(server.seen("WATCH")) == 2)
            server.put("pods", pod("a"))
            await eventually(lambda: sink.names("upserted"))
        assert isinstance(sink.errors[0], RequestTimeout)
        assert len(server.seen("LIST")) == 1

    async def test_watches_that_stay_silent_lead_to_a_list(self, server, sink):
        """A version of the future, from before a restore: the server waits until it is reached."""
        server.fail("WATCH", ALL, *[stream(then="silent")] * 2)
        async with connected(server.url, sink, FakeClock(), idle_s=0.1):
            await eventually(lambda: sink.syncs == 2)
        assert len(server.seen("WATCH")) in (2, 3)

    async def test_no_pause_is_added_to_a_silence(self, server, sink):
        """An idle server that sends no bookmarks: pauses that grew made the silence last for longer
        than it may (P14), and readiness came and went."""
        server.fail("WATCH", ALL, *[stream(then="silent")] * 6)
        clock = FakeClock()
        async with connected(server.url, sink, clock, idle_s=0.05):
            await eventually(lambda: len(server.seen("WATCH")) == 7)
        assert max(clock.sleeps) == 0

    @pytest.mark.parametrize("then", ["reset", "end"])
    async def test_a_chunk_cut_short_is_asked_for_again(self, server, client, sink, then):
        event = {"type": "ADDED", "object": {**pod("a"), "metadata": {"name": "a"}}}
        server.fail("WATCH", ALL, stream(json.dumps(event).encode()[:-9], then=then))
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            server.put("pods", pod("b"))
            await eventually(lambda: sink.names("upserted") == ["b"])
        assert {watch.params["resourceVersion"] for watch in server.seen("WATCH")} == {"1000"}


class TestExpiry:
    @pytest.mark.parametrize("how", ["http", "in-band"])
    async def test_a4_410_lists_again_and_reports_the_difference(self, server, client, sink, how):
        for name in ("kept", "changed", "removed", "replaced"):
            server.put("pods", pod(name))
        uids = {name: obj["metadata"]["uid"] for (_, name), obj in server.objects["pods"].items()}
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            sink.log.clear()
            server.send(None)
            server.fail("WATCH", ALL, refuse(410) if how == "http" else in_band(410, "Expired"))
            server.put("pods", server.named("pods", "changed"))
            server.remove("pods", "removed")
            server.remove("pods", "replaced")
            server.put("pods", pod("replaced"))
            server.put("pods", pod("new"))
            server.compact()
            await eventually(lambda: sink.syncs)
            await eventually(lambda: server.streams)
        replaced = str(server.named("pods", "replaced")["metadata"]["resourceVersion"])
        assert sink.log == [
            ("upserted", "changed", server.named("pods", "changed")["metadata"]["resourceVersion"]),
            ("upserted", "new", server.named("pods", "new")["metadata"]["resourceVersion"]),
            ("gone", "replaced", uids["replaced"], False),
            ("upserted", "replaced", replaced),
            ("gone", "removed", uids["removed"], False),
            ("synced", True),
        ]
        assert sink.errors == []

    async def test_a3_8_a_relist_of_unchanged_objects_reports_nothing(self, server, client, sink):
        for number in range(600):
            server.put("pods", pod(f"p{number}"))
        server.fail("WATCH", ALL, refuse(410))
        async with reflecting(client, sink):
            await eventually(lambda: sink.syncs == 2)
        assert len(sink.names("upserted")) == 600
        assert sink.names("gone") == []

    async def test_an_expired_token_in_mid_list_loses_and_repeats_nothing(
        self, server, client, sink
    ):
        for number in range(1100):
            server.put("pods", pod(f"p{number:04}"))
        server.tokens_to_expire = 1
        async with reflecting(client, sink):
            await eventually(lambda: sink.syncs)
        assert sink.names("upserted") == [f"p{number:04}" for number in range(1100)]

    async def test_objects_of_a_void_page_that_vanished_are_gone(self, server, client, sink):
        for number in range(600):
            server.put("pods", pod(f"p{number:03}"))

        async def expire(_):
            server.remove("pods", "p000")
            return refuse(410, "Expired")

        first_page = json.dumps(
            {
                "metadata": {"resourceVersion": "1", "continue": "500:1"},
                "items": [server.named("pods", f"p{number:03}") for number in range(500)],
            }
        ).encode()
        server.fail("LIST", ALL, answer(first_page), expire)
        async with reflecting(client, sink):
            await eventually(lambda: sink.syncs)
        assert sink.names("gone") == ["p000"]
        assert len(sink.names("upserted")) == 600

    async def test_a3_7_a_deletion_has_its_last_state_and_its_uid(self, server, client, sink):
        last = []
        sink.gone = lambda uid, namespace, name, obj: last.append((uid, namespace, obj["status"]))
        server.put("pods", {**pod("a"), "status": {"phase": "Succeeded"}})
        uid = server.named("pods", "a")["metadata"]["uid"]
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            server.remove("pods", "a")
            await eventually(lambda: last)
        assert last == [(uid, "default", {"phase": "Succeeded"})]

    async def test_a_new_uid_under_a_known_name_is_gone_then_upserted(self, server, client, sink):
        old = server.put("pods", pod("a"))["metadata"]["uid"]
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            new = {
                **server.named("pods", "a"),
                "metadata": {**server.named("pods", "a")["metadata"], "uid": "new"},
            }
            server.put("pods", new)
            await eventually(lambda: sink.names("gone"))
        assert sink.log[2:] == [("gone", "a", old, False), ("upserted", "a", "1002")]

    async def test_a_deletion_of_an_unknown_uid_is_reported_and_checked_by_a_list(
        self, server, client, sink
    ):
        server.put("pods", pod("a"))
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            stranger = {
                **server.named("pods", "a"),
                "metadata": {**server.named("pods", "a")["metadata"], "uid": "other"},
            }
            server.send(json.dumps({"type": "DELETED", "object": stranger}).encode())
            await eventually(lambda: sink.syncs == 2)
        assert sink.log[2:] == [("gone", "a", "other", True), ("synced", True)]


class TestNonsense:
    @pytest.mark.parametrize(
        "line",
        [
            b"not json",
            b"{",
            b"[]",
            b"null",
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"type":"ADDED"}',
            b'{"type":"ADDED","object":[]}',
            b'{"type":"ADDED","object":{}}',
            b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}',
            b'{"type":"ADDED","object":{"metadata":{"name":1,"uid":2,"resourceVersion":3}}}',
            b'{"type":"EXPLODED","object":{"metadata":'
            b'{"name":"a","uid":"u","resourceVersion":"1"}}}',
            b'{"type":"BOOKMARK","object":{"metadata":{}}}',
            b'{"type":"BOOKMARK","object":{}}',
            b'{"type":"ERROR","object":{}}',
            b'{"type":7,"object":{}}',
        ],
        ids=lambda line: repr(line)[:45],
    )
    async def test_a4_a_malformed_line_is_neither_a_crash_nor_an_event_nor_a_loss(
        self, server, client, sink, line
    ):
        server.fail("WATCH", ALL, stream(line + b"\n"))
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            server.put("pods", pod("after"))
            await eventually(lambda: sink.names("upserted"))
        assert sink.names("upserted") == ["after"]
        assert len(sink.errors) == 1
        assert isinstance(sink.errors[0], BadAnswer | ApiError)

    async def test_a_status_without_envelope_is_an_error(self, server, client, sink):
        server.fail("WATCH", ALL, stream(b'{"kind":"Status","code":410,"reason":"Gone"}\n'))
        async with reflecting(client, sink):
            await eventually(lambda: sink.syncs == 2)

    async def test_nonsense_that_stays_leads_to_a_list(self, server, client, sink):
        server.fail("WATCH", ALL, *[stream(b"nonsense\n")] * (2 * FRUITLESS_MAX - 1))
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
        assert sink.syncs == 2
        assert len(server.seen("WATCH")) == 2 * FRUITLESS_MAX

    @pytest.mark.parametrize(
        "body",
        [
            *(b"<html>", b"{}", b'{"metadata":{},"items":[]}', b'{"items":[{}],"metadata":{}}'),
            b'{"kind": "Status", "status": "Success"}',
        ],
    )
    async def test_a_list_of_nonsense_is_not_synced(self, server, client, sink, body):
        server.fail("LIST", ALL, answer(body))
        async with reflecting(client, sink):
            await eventually(lambda: sink.syncs)
        assert len(server.seen("LIST")) == 2
        assert isinstance(sink.errors[0], BadAnswer)

    async def test_an_object_nested_without_end_does_not_hide_the_others(
        self, server, client, sink
    ):
        metadata = '{"name":"deep","uid":"u","resourceVersion":"1"}'
        deep = f'{{"metadata":{metadata},"x":{"[" * 9000}{"]" * 9000}}}'
        other = json.dumps(server.put("pods", pod("other")))
        page = f'{{"metadata":{{"resourceVersion":"2"}},"items":[{deep},{other}]}}'
        event = deep.replace('"deep","uid":"u"', '"later","uid":"v"')
        server.fail("LIST", ALL, answer(page.encode()))
        server.fail("WATCH", ALL, stream(f'{{"type":"ADDED","object":{event}}}\n'.encode()))
        async with reflecting(client, sink):
            await eventually(lambda: sink.names("upserted") == ["deep", "other", "later"])
        assert sink.errors == []

    async def test_a4_a_burst_of_events(self, server, client, sink):
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            for number in range(5000):
                server.put("pods", pod(f"p{number}"))
            await eventually(lambda: len(sink.names("upserted")) == 5000)


class TestFailures:
    @pytest.mark.parametrize(
        "fault",
        [
            in_band(500, "InternalError"),
            refuse(500),
            refuse(403),
            refuse(410),
            reset,
            stream(),
            stream(b"garbage\n"),
            in_band(410, "Expired"),
        ],
        ids=["500 in-band", "500", "403", "410", "reset", "empty", "garbage", "410 in-band"],
    )
    async def test_a3_2_no_hot_loop(self, server, sink, fault):
        clock = FakeClock(horizon=60.0)
        server.fail_always("WATCH", ALL, fault)
        async with connected(server.url, sink, clock):
            await eventually(clock.parked.is_set)
        assert len(server.requests) <= 16  # the client's informer: 1,801 in 2 s

    async def test_a3_2_no_hot_loop_while_the_server_is_dead(self, sink):
        async with serve() as server:
            url = server.url
        clock = FakeClock(horizon=60.0)
        async with connected(url, sink, clock):
            await eventually(clock.parked.is_set)
        assert len(sink.errors) <= 8
        assert {type(error) for error in sink.errors} == {ConnectionLost}

    async def test_an_outage_costs_no_relist(self, server, client, sink):
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            server.fail("WATCH", ALL, *[reset] * 20)
            server.send(None)
            await eventually(lambda: len(server.seen("WATCH")) == 22)
        assert sink.syncs == 1

    @pytest.mark.parametrize("fault", [refuse(504, "Timeout"), stream()], ids=["504", "empty"])
    async def test_a_version_that_is_never_watched_is_given_up(self, server, client, sink, fault):
        """A version of the future, after a restore from a backup; a proxy that swallows streams."""
        server.fail("WATCH", ALL, *[fault] * FRUITLESS_MAX)
        async with reflecting(client, sink):
            await eventually(lambda: sink.syncs == 2)

    async def test_403_is_reported_in_the_servers_words_and_retried(self, server, client, sink):
        server.fail_always("LIST", ALL, refuse(403, "Forbidden", 'User "x" cannot list pods'))
        async with reflecting(client, sink):
            await eventually(lambda: len(sink.errors) > 3)
            assert sink.log == []
            server.recover()
            await eventually(lambda: sink.syncs)
        assert 'User "x" cannot list pods' in str(sink.errors[0])

    async def test_retry_after_is_honoured(self, server, client, sink, clock):
        server.fail("LIST", ALL, refuse(429, Retry_After="17"))
        async with reflecting(client, sink):
            await eventually(lambda: sink.syncs)
        assert clock.sleeps[0] == 17.0

    async def test_p11_a_kind_that_is_not_installed_is_reported_and_asked_for_slowly(
        self, server, sink
    ):
        server.served = ()
        clock = FakeClock(horizon=600.0)
        async with connected(server.url, sink, clock, WRAPPERS):
            await eventually(clock.parked.is_set)
            assert len(server.requests) < 20
            assert 5.0 <= clock.sleeps[0] < 10.0
            assert clock.sleeps[-1] >= 60.0
            assert server.seen("WATCH") == []
        assert sink.log == []
        assert {error.status for error in sink.errors} == {404}

    async def test_a_kind_installed_later_is_found(self, server, client, sink):
        server.served = ()
        async with reflecting(client, sink, WRAPPERS):
            await eventually(lambda: sink.errors)
            server.served = (WRAPPERS,)
            server.put("appwrappers", {"metadata": {"name": "aw"}})
            await eventually(lambda: sink.names("upserted") == ["aw"])

    async def test_one_404_does_not_wipe_out_what_is_known(self, server, client, sink):
        """An API server that is just starting denies kinds which it does serve."""
        server.put("pods", pod("a"))
        async with reflecting(client, sink):
            for syncs in (2, 3, 4):
                await eventually(lambda: server.streams)
                server.fail("WATCH", ALL, refuse(404))
                server.fail("LIST", ALL, refuse(404))
                server.send(None)
                await eventually(lambda syncs=syncs: sink.syncs == syncs)
        assert sink.names("gone") == []

    async def test_a_kind_that_is_removed_takes_its_objects_along(
        self, server, client, sink, clock
    ):
        server.put("pods", pod("a"))
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            server.fail_always("GET", ALL, refuse(404))
            server.send(None)
            await eventually(lambda: sink.names("gone") == ["a"])
        assert clock.now - 100.0 >= ABSENT_S
        assert sink.syncs == 1

    async def test_a_server_that_starts_may_deny_a_kind_for_a_while(
        self, server, client, sink, clock
    ):
        """404 for a quarter of a minute, as long as its CRDs are not loaded, with 503 between."""
        server.put("pods", pod("a"))
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
            server.fail("WATCH", ALL, refuse(404))
            server.fail("LIST", ALL, *[refuse(404)] * 3, refuse(503), refuse(404))
            server.send(None)
            await eventually(lambda: sink.syncs == 2)
        assert sink.names("gone") == []
        assert clock.now - 100.0 >= ABSENT_S

    async def test_it_waits_until_a_kind_may_be_listed_at_first_and_after_a_404(
        self, server, client, sink
    ):
        asked = 0

        async def ready():
            nonlocal asked
            asked += 1

        async with reflecting(client, sink) as reflector:
            reflector.ready = ready
            await eventually(lambda: server.streams)
            assert asked == 1
            server.fail("WATCH", ALL, refuse(410))
            server.send(None)
            await eventually(lambda: sink.syncs == 2 and server.streams)
            assert asked == 1
            server.fail("WATCH", ALL, refuse(404))
            server.fail("LIST", ALL, refuse(404))
            server.send(None)
            await eventually(lambda: sink.syncs == 3)
        assert asked == 2
        assert sink.listings == 4

    async def test_run_anew_it_lists_the_version_that_is_served_now(self, server, client, sink):
        old, new = WRAPPERS, replace(WRAPPERS, version="v1")
        server.put("appwrappers", {"metadata": {"name": "aw"}})
        reflector = Reflector(client, old, sink, Document.json)
        for resource in (old, new):
            server.served = (resource,)
            reflector.resource = resource
            task = asyncio.ensure_future(reflector.run())
            await eventually(lambda: server.streams)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await eventually(lambda: not server.streams)
        assert sink.log == [("upserted", "aw", "1001"), ("synced", False), ("synced", True)]
        assert server.seen("WATCH", new.path())

    async def test_a_settled_watch_that_ends_is_followed_at_once(self, server, client, sink, clock):
        async def long_lived(request):
            clock.now += 301
            return await stream()(request)

        server.fail("WATCH", ALL, long_lived, long_lived)
        async with reflecting(client, sink):
            await eventually(lambda: len(server.seen("WATCH")) == 3)
        assert clock.sleeps == [0.0, 0.0]

    async def test_cancellation_closes_the_watch(self, server, client, api, sink):
        async with reflecting(client, sink):
            await eventually(lambda: server.streams)
        await eventually(lambda: not server.streams)
        assert not api._streams.connector._acquired
