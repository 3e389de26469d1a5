"""Many objects in the etcd of a control plane, within a minute.

They are those of ``fakecluster.py``, as JSON, which the API server reads as well as its own form.
To create 65,000 of them through it would take ten minutes of two cores. It serves them from its
cache of watches, as all others, and knows no difference.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import NamedTuple

import aiohttp

from benchmarks.fakecluster import PODS_PER_NODE, FakeCluster, Template

CONNECTIONS = 16
NAMESPACES = 100


class Kind(NamedTuple):
    """How objects of a kind are stored: the folder, what says their kind, and their names."""

    folder: str
    head: bytes
    key: Callable[[int], str]


KINDS = {
    "nodes": Kind(
        "minions", b'{"apiVersion":"v1","kind":"Node",', lambda number: f"node-{number:05}"
    ),
    "pods": Kind(
        "pods",
        b'{"apiVersion":"v1","kind":"Pod",',
        lambda number: f"{namespace(number)}/foreign-{number:06}-x7k2p",
    ),
    "appwrappers": Kind(
        "workload.codeflare.dev/appwrappers",
        b'{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper",',
        lambda number: f"{namespace(number)}/aw-{number:06}",
    ),
}


def namespace(number: int) -> str:
    """Of an object with this number."""
    return f"team-{number % NAMESPACES:03}"


async def store(etcd_port: int, appwrappers: int, nodes: int, settings: int) -> None:
    """Store so many AppWrappers that wait, with so many environment variables, and nodes with ten
    pods each, which fill them."""
    made = FakeCluster(appwrappers=appwrappers, nodes=nodes, settings=settings)
    counts = {"nodes": nodes, "pods": nodes * PODS_PER_NODE, "appwrappers": appwrappers}
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    base = f"http://127.0.0.1:{etcd_port}"
    async with aiohttp.ClientSession(base, connector=connector) as session:
        for plural, count in counts.items():
            began = time.monotonic()
            left = texts(plural, made.templates[plural], count)
            await asyncio.gather(*(_put_all(session, left) for _ in range(CONNECTIONS)))
            print(f"stored {count} {plural} in {time.monotonic() - began:.0f} s", flush=True)


def texts(plural: str, template: Template, count: int) -> Iterator[tuple[str, bytes]]:
    """The key and the JSON of so many objects."""
    kind = KINDS[plural]
    for number in range(count):
        text = template.fill(number, number).replace(b'"resourceVersion":"%d",' % number, b"")
        yield f"/registry/{kind.folder}/{kind.key(number)}", kind.head + text[1:]


async def _put_all(session: aiohttp.ClientSession, left: Iterator[tuple[str, bytes]]) -> None:
    """Take from what is left until nothing is."""
    for key, text in left:
        body = {"key": b64encode(key.encode()).decode(), "value": b64encode(text).decode()}
        async with session.post("/v3/kv/put", json=body) as answer:
            answer.raise_for_status()
            await answer.read()
