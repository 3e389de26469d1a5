"""What a write of an AppWrapper's status costs, by the connections on which it travels.

    python -m benchmarks.transports [--count 1500] [--rounds 3]

COUNT AppWrappers get a new status from each arm in each round, as merge patches of the dispatcher's
kind, over TLS and HTTP/1.1 on loopback. Arms begin a round by turns, and each one opens its
connections before it is measured:

- *new connections*: 8 writes at a time, each on a connection of its own.
- *kept connections*: the dispatcher's ``RestApi`` with 8 connections, which stay open. (It has 32,
  and at most 24 writes of dispatches under way.)
- *kept connections, json.dumps*: the same; bodies are made by ``json``, not by ``msgspec``.
- *kept, 32 connections*: the same as the second, with as many writes under way as *pipelined* has.
- *pipelined*: 8 connections with 4 requests under way on each, which aiohttp cannot do, so a bare
  client does. It has no timeouts and hardly reads headers, so its own CPU time is lower anyway.
- *bare, 32 connections*: that client without pipelining. What *pipelined* has ahead of *kept*, and
  this one has too, is not due to pipelining.

*Opened* counts the TLS handshakes while an arm was measured. A collection of the API server's
garbage takes as much of its CPU as some 200 writes, and comes about once in 500 of them. With few
AppWrappers the server's column and the rate would mostly say whether one came: of 150 writes on
kept connections each took 2.3 to 3.6 ms without one, and 5.5 and 7.1 with one.

Pipelining is not used, whatever it costs. After a request with a method that is not idempotent, as
PATCH and POST are, a client should wait for the answer before it sends the next request on that
connection (RFC 9112, section 9.3.2): when a connection breaks, it cannot know which of the requests
were carried out. An exception is a client that can find out. The dispatcher can (P1, P5), but with
requests of their own for each unknown outcome, and here one broken connection leaves four of them.
Nor does it let the server do more at a time: that of Go begins the next request of a connection
when it has answered the one before, so 32 requests on 8 connections are 8 at work, and a slow one
delays those behind it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.cluster import APPWRAPPERS, appwrapper, cluster, create, pod
from benchmarks.dispatch_rate import cpu_s
from benchmarks.measuring import cpu_ms, quantile, speed
from benchmarks.status_writes import status_of
from mcad.api.wire import to_json
from mcad.kube.clock import RealClock
from mcad.kube.connection import Connection, load
from mcad.kube.port import JSON, MERGE_PATCH, NOTHING, Request, Response
from mcad.kube.rest import GZIP, RestApi, user_agent
from tests.controlplane.controlplane import ControlPlane

Json = dict[str, Any]
Send = Callable[[str, bytes], Awaitable[Response]]
"""Patches the object at a path, one request at a time."""
Encode = Callable[[Json], bytes]
ENCODINGS = 20_000  # of one body, to measure one of them


@asynccontextmanager
async def rest(
    connection: Connection, count: int, headers: Mapping[str, str] = NOTHING
) -> AsyncIterator[Sequence[Send]]:
    """The dispatcher's client; one sender for each of its connections, which are open."""
    async with RestApi(connection, RealClock(), connections=count) as api:

        async def send(path: str, body: bytes) -> Response:
            request = Request("PATCH", path, body=body, content_type=MERGE_PATCH, headers=headers)
            return await api.request(request)

        hello = Request("GET", "/version", headers=headers)
        await asyncio.gather(*(api.request(hello) for _ in range(count)))
        yield [send] * count


class Stream:
    """A connection on which a request is written before the answer to the last one is read."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str
    ) -> None:
        """``head`` are the headers that all requests have."""
        self._reader, self._writer, self._head = reader, writer, head
        self._turn = asyncio.Lock()

    async def send(self, path: str, body: bytes) -> Response:
        head = f"PATCH {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        async with self._turn:  # it is given in the order of the requests, which answers have too
            return await read_answer(self._reader)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


@asynccontextmanager
async def bare(connection: Connection, count: int, under_way: int) -> AsyncIterator[Sequence[Send]]:
    """So many connections, with so many senders for each."""
    credential, address = await connection.credential(), urlsplit(connection.base_url)
    headers = {"Host": address.netloc, "Accept": JSON, "Accept-Encoding": GZIP}
    headers |= {"User-Agent": user_agent(), "Content-Type": MERGE_PATCH, **credential.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    connect = partial(
        asyncio.open_connection,
        address.hostname,
        address.port,
        ssl=credential.ssl_context,
        server_hostname=connection.server_name,
    )
    opened = await asyncio.gather(*(connect() for _ in range(count)))
    streams = [Stream(reader, writer, head) for reader, writer in opened]
    try:
        yield [stream.send for stream in streams] * under_way
    finally:  # after a refusal answers still come, so closing fails: the refusal is what counts
        await asyncio.gather(*(stream.close() for stream in streams), return_exceptions=True)


async def read_answer(reader: asyncio.StreamReader) -> Response:
    """The next answer, of the two forms that Go's server gives it: of a known length, or chunks."""
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    fields = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in fields}
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    else:
        body = b"".join([chunk async for chunk in _chunks(reader)])
    return Response(int(status.split()[1]), body)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The pieces of a body, up to the empty one; no trailers come after it."""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)


def dumped(body: Json) -> bytes:
    return json.dumps(body).encode()


class Arm(NamedTuple):
    """How statuses are written: with one task for each sender."""

    name: str
    opened: Callable[[Connection], AbstractAsyncContextManager[Sequence[Send]]]
    encode: Encode = to_json


KEPT = Arm("kept connections", partial(rest, count=8))
ARMS = (
    # With this header aiohttp and the server both close the connection after the answer.
    Arm("new connections", partial(rest, count=8, headers={"Connection": "close"})),
    KEPT,
    Arm("kept connections, json.dumps", partial(rest, count=8), dumped),
    Arm("kept, 32 connections", partial(rest, count=32)),
    Arm("pipelined", partial(bare, count=8, under_way=4)),
    Arm("bare, 32 connections", partial(bare, count=32, under_way=1)),
)


class Cost(NamedTuple):
    """What an arm needed in a round, or the medians of some rounds."""

    rate: float  # writes a second
    client_ms: float  # of CPU for each write, of this process
    api_server_ms: float
    p50_ms: float  # from the encoding of a body until the answer is read
    p99_ms: float
    opened: float  # connections


def patch(version: str, number: int) -> Json:
    """As the dispatcher's, another one for each number."""
    return {"metadata": {"resourceVersion": version}, "status": status_of(number)}


class Bench:
    """AppWrappers with the versions that they have."""

    def __init__(self, connection: Connection, api_server: int, versions: dict[str, str]) -> None:
        """``api_server`` is its pid."""
        self._connection = connection
        self._api_server = api_server
        self._versions = versions
        self._answers: dict[str, Response] = {}
        self._waits: list[float] = []

    async def measure(self, arm: Arm, number: int) -> Cost:
        """Write the status with this number to all of them."""
        left = iter([(name, patch(was, number)) for name, was in self._versions.items()])
        self._waits.clear()
        async with arm.opened(self._connection) as senders:
            before = await self._spent()
            async with asyncio.TaskGroup() as tasks:
                for send in senders:
                    tasks.create_task(self._write(send, arm.encode, left))
            after = await self._spent()
        for name, answer in self._answers.items():
            self._versions[name] = answer.json()["metadata"]["resourceVersion"]
        return self._cost([now - was for now, was in zip(after, before, strict=True)])

    async def _write(self, send: Send, encode: Encode, left: Iterator[tuple[str, Json]]) -> None:
        """Take from what is left until nothing is."""
        for name, body in left:
            began = time.perf_counter()
            answer = await send(f"{APPWRAPPERS}/{name}/status", encode(body))
            self._waits.append(time.perf_counter() - began)
            if answer.status != 200:
                raise RuntimeError(f"{name}: {answer.status} {answer.body!r}")
            self._answers[name] = answer

    async def _spent(self) -> tuple[float, float, float, int]:
        """Seconds: of the clock, of this process, of the API server; and TLS handshakes."""
        context = (await self._connection.credential()).ssl_context
        assert context is not None
        handshakes = context.session_stats()["connect_good"]
        return time.perf_counter(), time.process_time(), cpu_s(self._api_server), handshakes

    def _cost(self, spent: list[float]) -> Cost:
        wall_s, client_s, api_server_s, handshakes = spent
        waits, count = self._waits, len(self._waits)
        return Cost(
            rate=count / wall_s,
            client_ms=1000 * client_s / count,
            api_server_ms=1000 * api_server_s / count,
            p50_ms=1000 * median(waits),
            p99_ms=1000 * quantile(waits, 0.99),
            opened=handshakes,
        )


def line(name: str, cost: Cost) -> str:
    """A row of the table."""
    return (
        f"  {name:30}{cost.rate:6.0f}/s{cost.client_ms:9.2f}{cost.api_server_ms:9.2f}"
        f"{cost.p50_ms:9.1f}{cost.p99_ms:9.1f}{cost.opened:9.0f}"
    )


def print_encodings() -> None:
    """What a body costs before it is sent."""
    body = patch("123456", 1)
    for name, encode in (("msgspec", to_json), ("json.dumps", dumped)):
        spent = cpu_ms(lambda encode=encode: [encode(body) for _ in range(ENCODINGS)])
        us = 1000 * spent / ENCODINGS
        print(f"encoding by {name}: {us:.1f} us of CPU, {len(encode(body))} bytes")


async def compare(account: Path, api_server: int, versions: dict[str, str], rounds: int) -> None:
    """The arms by turns, then the medians."""
    bench = Bench(await load(RealClock(), str(account)), api_server, versions)
    await bench.measure(KEPT, 0)  # the first status of all, and the server is warm then
    costs: dict[str, list[Cost]] = {arm.name: [] for arm in ARMS}
    print(f"  {'':30}{'writes':>8}{'client':>9}{'server':>9}{'p50':>9}{'p99':>9}{'opened':>9}")
    for number in range(rounds):
        print(f"round {number} ({speed()})")
        begin = number % len(ARMS)
        for arm in (*ARMS[begin:], *ARMS[:begin]):
            made = sum(map(len, costs.values()))
            costs[arm.name].append(await bench.measure(arm, made + 1))
            print(line(arm.name, costs[arm.name][-1]), flush=True)
    print("medians")
    for name, found in costs.items():
        print(line(name, Cost(*map(median, zip(*found, strict=True)))))


def submit(plane: ControlPlane, count: int) -> dict[str, str]:
    """Create so many AppWrappers; their versions."""
    made = [create(plane, appwrapper(f"aw-{number}", pod("one"))) for number in range(count)]
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in made}


def main() -> None:
    """Times in milliseconds for each write; client and server are CPU time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1500, help="of AppWrappers")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print_encodings()
    with cluster(0) as (plane, account):
        versions = submit(plane, args.count)
        pid = plane.process("kube-apiserver").pid
        asyncio.run(compare(account, pid, versions, args.rounds))


if __name__ == "__main__":
    main()
