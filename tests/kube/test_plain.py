"""One quick GET with the standard library: what becomes of servers that do not answer."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from mcad.kube import plain
from mcad.kube.errors import ConnectionLost, RequestTimeout
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
