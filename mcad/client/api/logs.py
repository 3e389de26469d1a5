"""The logs of the pods of an AppWrapper, for ``logs()`` of the Python client."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct

from mcad.client.appwrappers.owned_objects import item_of, owned_objects
from mcad.client.appwrappers.pod_logs import NO_CONTENT, container_of, log_request, read_log
from mcad.client.appwrappers.pod_state import ENDED, has_started, phase_of, pod_state
from mcad.client.session import AT_ONCE
from mcad.kube.client import Client
from mcad.kube.errors import ApiError

Json = dict[str, Any]


class Log(Struct, frozen=True):
    """The log of a container of a pod; ``str`` of it is the text.

    ``item`` is the number of the item of the AppWrapper. ``state`` is that of the pod, such as
    Running, Succeeded or ContainerCreating; before the container has started ``text`` is empty.
    """

    pod: str
    container: str
    item: int
    state: str
    text: str

    def __repr__(self) -> str:
        return f"<Log of {self.pod}/{self.container}: {len(self.text.splitlines())} lines>"

    def __str__(self) -> str:
        """The text."""
        return self.text


async def read_logs(
    client: Client, obj: Json, item: int | None, container: str | None, tail: int | None
) -> tuple[Log, ...]:
    """Read the logs of all pods of an AppWrapper, or of those of an item."""
    pods = (await owned_objects(client, obj)).pods
    gate = asyncio.Semaphore(AT_ONCE)

    async def read(pod: Json) -> Log:
        async with gate:
            name, chosen = pod["metadata"]["name"], container_of(pod, container)
            text = await _text(client, pod, chosen, tail)
            return Log(name, chosen, item_of(pod), pod_state(pod), text)

    chosen = (pod for pod in pods if item in (None, item_of(pod)))
    return tuple(await asyncio.gather(*map(read, chosen)))


async def _text(client: Client, pod: Json, container: str, tail: int | None) -> str:
    if not has_started(pod, container) and phase_of(pod) not in ENDED:
        return ""
    try:
        log = await read_log(client, log_request(pod, container, tail, {}))
    except ApiError as error:
        if error.status == NO_CONTENT:  # it never had a node
            return ""
        raise
    return log.decode(errors="replace")
