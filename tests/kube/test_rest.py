"""RestApi over real sockets: what goes out, and what every kind of broken answer becomes."""

import asyncio
import gzip
import json
import socket
from contextlib import aclosing

import pytest

from mcad.kube import rest as rest_module
from mcad.kube.connection import Connection
from mcad.kube.errors import ApiError, BadAnswer, ConnectionLost, KubeError, RequestTimeout
from mcad.kube.port import MERGE_PATCH, Request, Response
from mcad.kube.rest import RestApi
from tests.fakeapi import answer, content, hang, refuse, reset, stream
from tests.kube.support import FakeClock, connection, eventually
from tests.serving import free_port, read_request, serve_raw

GET = Request("GET", "/x")
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

ZIPPED = gzip.compress(b"{}" * 100, mtime=0)


def encoded(body: bytes, encoding: str = "gzip") -> Response:
    """An answer that says that it is in this encoding."""
    return Response(200, body, {"Content-Encoding": encoding})


async def lines_of(api: RestApi, idle_timeout: float = 1.0) -> list[bytes]:
    async with aclosing(api.stream(GET, idle_timeout)) as lines:
        return [line async for line in lines]


class TestRequest:
    async def test_what_is_sent(self, server, api):
        server.fail_always("POST", "/x", answer({}))
        await api.request(Request("POST", "/x", {"a": "1 &=?"}, {"b": "ä"}))
        await api.request(
            Request("POST", "/x", body=b'{"raw":1}', content_type=MERGE_PATCH, headers={"X": "y"})
        )
        first, second = server.requests
        assert first.params == {"a": "1 &=?"}
        assert content(first) == {"b": "ä"}
        assert first.headers["Content-Type"] == "application/json"
        assert first.headers["Accept"] == "application/json"
        assert first.headers["User-Agent"].startswith("mcad/")
        assert "Authorization" not in first.headers
        assert second.body == b'{"raw":1}'
        assert (second.headers["Content-Type"], second.headers["X"]) == (MERGE_PATCH, "y")

    async def test_any_status_is_an_answer(self, server, api):
        for code in (200, 201, 404, 409, 422, 500, 503):
            server.fail("GET", "/x", refuse(code, "Why", Retry_After="3"))
            got = await api.request(GET)
            assert (got.status, got.headers["Retry-After"]) == (code, "3")
            assert got.json()["reason"] == "Why"

    async def test_redirects_are_not_followed(self, server, api):
        server.fail("GET", "/x", refuse(307, Location="/elsewhere"))
        assert (await api.request(GET)).status == 307
        assert len(server.requests) == 1

    async def test_a_path_prefix_is_kept(self, server, clock):
        server.fail_always("GET", "/", answer({}))
        async with RestApi(connection(server.url + "/k8s/clusters/c1/"), clock) as api:
            await api.request(Request("GET", "/api/v1/pods"))
        assert server.requests[0].path == "/k8s/clusters/c1/api/v1/pods"

    async def test_a_quoted_path_is_not_quoted_again(self):
        raw = []

        async def handler(reader, writer):
            raw.append(await read_request(reader))
            writer.write(OK)

        async with serve_raw(handler) as url, RestApi(connection(url), FakeClock()) as api:
            await api.request(Request("GET", "/roles/a%3Ab", {"q": "a/b c"}))
        assert raw[0].startswith(b"GET /roles/a%3Ab?q=a%2Fb+c HTTP/1.1\r\n")

    async def test_answers_may_be_gzip_and_streams_may_not(self, server, api):
        """A proxy that compresses a stream keeps its events back."""
        server.fail("GET", "/x", encoded(gzip.compress(b"{}")), stream(b"{}\n"))
        assert (await api.request(GET)).body == b"{}"
        assert await lines_of(api) == [b"{}"]
        asked = [one.headers["Accept-Encoding"] for one in server.requests]
        assert asked == ["gzip", "identity"]

    async def test_an_encoding_that_was_not_asked_for_is_a_bad_answer(self, server, api):
        server.fail("GET", "/x", encoded(b"{}", "br"), encoded(gzip.compress(b"{}\n")))
        with pytest.raises(BadAnswer, match="encoding br"):
            await api.request(GET)
        with pytest.raises(BadAnswer, match="stream in the encoding gzip"):
            await lines_of(api)

    @pytest.mark.parametrize(
        ("body", "why"),
        [
            (b"xxxx" + bytes(4), "not gzip"),
            (ZIPPED[:-1], "more than 1000 bytes"),
            (ZIPPED[:-9] + bytes(8), "not all of it"),
            (ZIPPED[:-8] + b"0123" + ZIPPED[-4:], "not gzip"),
            (ZIPPED + bytes(4), "says 0"),
            (ZIPPED[:-4] + bytes(4), "not gzip"),
            (gzip.compress(b"x" * 1001, mtime=0), "more than 1000 bytes"),
        ],
    )
    async def test_gzip_that_is_torn_or_too_large_is_a_bad_answer(
        self, server, api, monkeypatch, body, why
    ):
        monkeypatch.setattr(rest_module, "BODY_BYTES_MAX", 1000)
        server.fail("GET", "/x", encoded(body), encoded(gzip.compress(b"x" * 1000)))
        with pytest.raises(BadAnswer, match=why):
            await api.request(GET)
        assert len((await api.request(GET)).body) == 1000

    @pytest.mark.parametrize("encoding", ["gzip", "br", "utf-8"])
    @pytest.mark.parametrize("body", [b"", b"xxxx"])
    async def test_the_status_of_a_refusal_counts_whatever_its_body(
        self, server, api, encoding, body
    ):
        refusal = Response(429, body, {"Content-Encoding": encoding, "Retry-After": "7"})
        server.fail("GET", "/x", refusal, refusal)
        answer = await api.request(GET)
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
        with pytest.raises(ApiError) as caught:
            await lines_of(api)
        assert (caught.value.status, caught.value.retry_after) == (429, 7.0)

    async def test_a_credential_is_renewed_whatever_the_body_of_the_refusal(
        self, server, api, monkeypatch
    ):
        renewed = []

        async def renew(self: Connection) -> None:
            renewed.append(self)

        monkeypatch.setattr(Connection, "renew", renew)
        server.fail("GET", "/x", Response(401, b"", {"Content-Encoding": "gzip"}))
        assert (await api.request(GET)).status == 401
        assert len(renewed) == 1

    @pytest.mark.parametrize("encoding", ["gzip", "GZIP", "identity", ""])
    async def test_no_body_and_no_encoding_are_fine(self, server, api, encoding):
        body = gzip.compress(b"{}") if encoding.lower() == "gzip" else b"{}"
        empty = Response(204, b"", {"Content-Encoding": encoding})
        server.fail("GET", "/x", encoded(body, encoding), empty)
        assert (await api.request(GET)).body == b"{}"
        assert (await api.request(GET)).body == b""

    async def test_an_answer_has_a_size_limit(self, server, api, monkeypatch):
        monkeypatch.setattr(rest_module, "BODY_BYTES_MAX", 1000)
        server.fail("GET", "/x", answer(b"x" * 1001), answer(b"x" * 1000))
        with pytest.raises(BadAnswer):
            await api.request(GET)
        assert (await api.request(GET)).status == 200


class TestFaults:
    async def test_a7_every_request_has_a_timeout_even_if_none_is_named(self, server, clock):
        server.fail("GET", "/x", hang)
        async with RestApi(connection(server.url), clock, timeout_s=0.05) as api:
            with pytest.raises(RequestTimeout, match=r"GET /x: no answer within 0\.05 s"):
                await api.request(GET)

    @pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
    async def test_what_could_not_be_sent_in_time_is_not_sent_later(
        self, server, api, clock, method, monkeypatch
    ):
        """As if the process had been stopped for a minute just before it sends."""

        async def headers(self: Connection) -> dict[str, str]:
            clock.now += 60.0
            return {}

        monkeypatch.setattr(Connection, "headers", headers)
        with pytest.raises(RequestTimeout, match="no answer within 15 s"):
            await api.request(Request(method, "/x", body={}), 15.0)
        await asyncio.sleep(0.05)
        assert server.requests == []

    async def test_a_slowly_dripping_answer_ends_in_time(self, server, api):
        server.fail("GET", "/x", stream(*[b"x", 0.01] * 1000))
        with pytest.raises(RequestTimeout):
            await api.request(GET, 0.1)

    async def test_a1_a5_a_refused_connection_is_a_kube_error(self, clock):
        async with RestApi(connection(f"http://127.0.0.1:{free_port()}"), clock) as api:
            with pytest.raises(ConnectionLost):
                await api.request(GET)
            with pytest.raises(ConnectionLost):
                await lines_of(api)

    async def test_a_reset_is_a_lost_connection(self, server, api):
        server.fail("GET", "/x", reset)
        with pytest.raises(ConnectionLost):
            await api.request(GET)

    @pytest.mark.parametrize(
        "garbage",
        [
            b"",
            b"\x00\x01\x02\xff" * 100,
            b"SSH-2.0-OpenSSH_9.6\r\n",
            b"HTTP/1.1 two hundred\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: nope\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nxxxx",
            b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n{}",
        ],
        ids=lambda garbage: repr(garbage)[:50],
    )
    async def test_no_garbage_raises_anything_but_a_kube_error(self, garbage):
        async def handler(reader, writer):
            await read_request(reader)
            writer.write(garbage)

        async with serve_raw(handler) as url, RestApi(connection(url), FakeClock()) as api:
            with pytest.raises(KubeError):
                await api.request(GET, 1.0)
            with pytest.raises(KubeError):
                await lines_of(api)

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "PATCH"])
    async def test_a7_nothing_is_sent_twice_in_silence(self, method):
        """A pooled connection that dies: aiohttp itself would repeat PUT and DELETE."""
        received = []

        async def handler(reader, writer):
            for _ in range(2):
                received.append(await read_request(reader))
                if len(received) == 1:
                    writer.write(OK)

        async with serve_raw(handler) as url, RestApi(connection(url), FakeClock()) as api:
            await api.request(GET)
            with pytest.raises(ConnectionLost):
                await api.request(Request(method, "/x"))
            assert len(received) == 2

    async def test_after_closing_requests_fail_like_lost_connections(self, server, clock):
        api = RestApi(connection(server.url), clock)
        await api.aclose()
        with pytest.raises(ConnectionLost):
            await api.request(GET)

    async def test_cancellation_is_respected_and_leaves_nothing_behind(self, server, api):
        server.fail("GET", "/x", hang)
        task = asyncio.ensure_future(api.request(GET))
        await eventually(lambda: server.requests)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        server.fail("GET", "/x", answer({}))
        assert (await api.request(GET)).status == 200


class TestPools:
    async def test_a7_the_number_of_connections_is_bounded(self, server, clock):
        for _ in range(3):
            server.fail("GET", "/x", hang)
        async with RestApi(connection(server.url), clock, connections=2) as api:
            tasks = [asyncio.ensure_future(api.request(GET, 0.2)) for _ in range(3)]
            await eventually(lambda: len(server.requests) == 2)
            await asyncio.sleep(0.05)
            assert len(server.requests) == 2
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(result) for result in results} == {RequestTimeout}

    async def test_watches_never_take_the_workers_connections(self, server, clock):
        server.fail_always("GET", "/w", stream(b"{}\n", then="silent"))
        server.fail_always("GET", "/x", answer({}))
        async with RestApi(connection(server.url), clock, connections=1) as api:
            watches = [api.stream(Request("GET", "/w"), 5.0) for _ in range(5)]
            for watch in watches:
                assert await anext(watch) == b"{}"
            assert (await api.request(GET)).status == 200
            for watch in watches:
                await watch.aclose()

    async def test_connections_are_reused(self):
        accepted = 0

        async def handler(reader, writer):
            nonlocal accepted
            accepted += 1
            while True:
                await read_request(reader)
                writer.write(OK)

        async with serve_raw(handler) as url, RestApi(connection(url), FakeClock()) as api:
            for _ in range(5):
                await api.request(GET)
        assert accepted == 1

    def test_a7_keep_alive_is_on_with_client_gos_numbers(self):
        address = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))
        with rest_module._socket(address) as opened:
            assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 15
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 9


class TestStream:
    async def test_lines_arrive_as_they_are_sent(self, server, api):
        server.fail("GET", "/x", stream(b'{"a":1}\n{"b"', 0.01, b":2}\n", 0.01, b"\n"))
        assert await lines_of(api) == [b'{"a":1}', b'{"b":2}']

    async def test_a3_5_a_half_open_stream_ends_after_the_idle_time(self, server, api):
        server.fail("GET", "/x", stream(b"{}\n", then="silent"))
        async with aclosing(api.stream(GET, 0.1)) as lines:
            assert await anext(lines) == b"{}"
            with pytest.raises(RequestTimeout):
                await anext(lines)

    async def test_a_stream_without_headers_ends_in_time(self, server, clock):
        server.fail("GET", "/x", hang)
        async with RestApi(connection(server.url), clock, timeout_s=0.05) as api:
            with pytest.raises(RequestTimeout):
                await lines_of(api, 60.0)

    async def test_a_stream_outlives_the_timeout_of_requests(self, server, clock):
        server.fail("GET", "/x", stream(*[b"{}\n", 0.15] * 10))
        async with RestApi(connection(server.url), clock, timeout_s=1.0) as api:
            assert len(await lines_of(api)) == 10

    async def test_a_refused_stream_is_an_api_error(self, server, api):
        server.fail("GET", "/x", refuse(410, "Expired"), refuse(429, Retry_After="4"))
        with pytest.raises(ApiError) as caught:
            await lines_of(api)
        assert caught.value.gone
        with pytest.raises(ApiError) as caught:
            await lines_of(api)
        assert caught.value.retry_after == 4.0

    async def test_a_reset_in_mid_stream(self, server, api):
        server.fail("GET", "/x", stream(b'{"a":1}\n{"b":', then="reset"))
        got = []
        with pytest.raises(ConnectionLost):  # noqa: PT012 - lines first, then the error
            async with aclosing(api.stream(GET, 1.0)) as lines:
                while True:
                    got.append(await anext(lines))
        assert got == [b'{"a":1}']

    async def test_a_last_line_that_was_cut_is_not_delivered(self, server, api):
        server.fail("GET", "/x", stream(b'{"a":1}\n{"b":'))
        assert await lines_of(api) == [b'{"a":1}']

    async def test_a_line_of_many_megabytes(self, server, api):
        """aiohttp's own readline() gives up at its buffer limit."""
        line = json.dumps({"x": "y" * 20_000_000}).encode()
        server.fail("GET", "/x", stream(line + b"\n{}\n"))
        assert [len(line) for line in await lines_of(api)] == [len(line), 2]

    async def test_closing_early_closes_the_connection(self, server, api):
        server.fail("GET", "/x", stream(*[b"{}\n", 0.01] * 10_000))
        async with aclosing(api.stream(GET, 1.0)) as lines:
            await anext(lines)
        assert not api._streams.connector._acquired
