"""Requests with the standard library: connections, and servers that do not answer."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from mcad.kube import plain
from mcad.kube.errors import ConnectionLost, RequestTimeout
from mcad.kube.kubeconfig import Plain
from mcad.kube.port import Request


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


async def test_a_silent_server_is_a_timeout(listening: socket.socket) -> None:
    port = listening.getsockname()[1]
    with pytest.raises(RequestTimeout, match=r"no answer within 0\.1 s"):
        await plain.send(f"http://127.0.0.1:{port}", Request("GET", "/"), 0.1)


async def test_every_warning_of_an_answer_is_read(listening: socket.socket) -> None:
    port = listening.getsockname()[1]
    told = b"".join(b'Warning: 299 - "' + text + b'"\r\n' for text in (b"one, and more", b"two"))

    def answer() -> None:
        with listening.accept()[0] as connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + told + b"\r\n")

    answering = asyncio.create_task(asyncio.to_thread(answer))
    answered = await plain.send(f"http://127.0.0.1:{port}", Request("GET", "/"), 5)
    await answering
    assert answered.warnings == ("one, and more", "two")


async def test_a_server_that_is_not_there_is_lost(listening: socket.socket) -> None:
    port = listening.getsockname()[1]
    listening.close()
    with pytest.raises(ConnectionLost, match="refused"):
        await plain.send(f"http://127.0.0.1:{port}", Request("GET", "/"), 5)


class Server(ThreadingHTTPServer):
    """Answers with the number of its connection; ``asked`` has the method and it per request."""

    def __init__(self, *, closes: bool) -> None:
        self.asked: list[tuple[str, int]] = []
        self.connections = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                server.connections += 1
                self.number = server.connections
                super().setup()

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.asked.append((self.command, self.number))
                text = f"{self.number}".encode() * (self.command != "HEAD")
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                self.close_connection = closes

            do_GET = do_HEAD = do_POST = answer  # noqa: N815 - the names of http.server

            def log_message(self, *said: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)


@contextmanager
def serving(*, closes: bool = False) -> Iterator[Server]:
    """A server in a thread; with ``closes`` it closes connections without a word."""
    with Server(closes=closes) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


async def ask(server: Server, *methods: str) -> list[tuple[str, int]]:
    """Send these requests one after the other by one PlainApi; what the server saw."""
    port = server.server_address[1]
    with closing(plain.PlainApi(Plain(f"http://127.0.0.1:{port}", {}, None))) as api:
        for method in methods:
            answer = await api.request(
                Request(method, "/", body=b"{}" if method == "POST" else None)
            )
            assert answer.status == 200
    return server.asked


async def test_reads_share_a_connection_and_a_write_has_its_own() -> None:
    with serving() as server:
        asked = await ask(server, "GET", "HEAD", "POST", "GET")
    assert asked == [("GET", 1), ("HEAD", 1), ("POST", 2), ("GET", 2)]


async def test_a_read_on_a_connection_that_the_server_has_closed_is_sent_again() -> None:
    with serving(closes=True) as server:
        asked = await ask(server, "GET", "GET")
    assert asked == [("GET", 1), ("GET", 2)]


async def test_a_connection_whose_asker_has_gone_is_not_kept() -> None:
    with serving() as server:
        link = plain.Link(f"http://127.0.0.1:{server.server_address[1]}")
        link.close()
        assert (await link.send(Request("GET", "/"), 5, {})).status == 200
        assert not link._kept
