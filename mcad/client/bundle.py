"""What a bug report needs, collected from a dispatcher and its cluster, as files of texts.

Names of AppWrappers are in it; Secrets, manifests and tokens are not.
"""

from __future__ import annotations

import json
import platform
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from mcad.api.config import Config
from mcad.api.crd import crds
from mcad.client.errors import McadError, explain
from mcad.client.figures.pauses import read_pauses
from mcad.client.session import Session
from mcad.kube import plain
from mcad.kube.errors import KubeError
from mcad.kube.kinds import CRDS, LEASES
from mcad.kube.port import Request
from mcad.version import __version__

Json = dict[str, Any]

ANSWER_S = 30.0
OF_THE_DISPATCHER = {
    "metrics.txt": "/metrics",
    "readyz.txt": "/readyz",
    "stacks.txt": "/debug/stacks",
    "config.json": "/debug/config",
    "appwrappers.json": "/api/v1/appwrappers",
    "capacity.json": "/api/v1/capacity",
    "quota.json": "/api/v1/quota",
}
"""By file: the path at the HTTP port of the dispatcher."""

Read = Callable[[], Awaitable[str]]


async def of_dispatcher(url: str) -> AsyncIterator[tuple[str, str]]:
    """(file, text) of what the HTTP port of a dispatcher says."""
    for name, path in OF_THE_DISPATCHER.items():
        yield name, await _get(url, path)


async def _get(url: str, path: str) -> str:
    """The answer; if there is none, why."""
    try:
        answer = await plain.send(url, Request("GET", path), ANSWER_S)
    except KubeError as error:
        return f"not read: {error}\n"
    body = answer.body if isinstance(answer.body, bytes) else b""
    text = body.decode(errors="replace")
    return text if answer.status in (200, 503) else f"not read: {answer.status}: {text}\n"


async def of_cluster(session: Session, config: Config) -> AsyncIterator[tuple[str, str]]:
    """(file, text) of what the API server says, with the rights of the caller."""
    lease = config.leader_election

    async def version() -> Json:
        return await session.client.read(Request("GET", "/version"))

    async def leader() -> Json:
        return await session.client.get(LEASES, lease.namespace, lease.name)

    async def pauses() -> Json:
        return {"items": await read_pauses(session.client)}

    reads: dict[str, Callable[[], Awaitable[Json]]] = {
        "server-version.json": version,
        "lease.json": leader,
        "dispatchpauses.json": pauses,
    }
    for crd in crds():
        name = crd["metadata"]["name"]

        async def installed(name: str = name) -> Json:
            return await session.client.get(CRDS, None, name)

        reads[f"crd-{name}.json"] = installed
    for name, read in reads.items():
        yield name, await _text(read)


async def _text(read: Callable[[], Awaitable[Json]]) -> str:
    try:
        found = await read()
    except KubeError as error:
        return f"not read: {explain(error).message}\n"
    except McadError as error:
        return f"not read: {error.message}\n"
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def of_program() -> str:
    """The versions of this program."""
    return f"mcad {__version__}\npython {platform.python_version()}\n{platform.platform()}\n"
