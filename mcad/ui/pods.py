"""The pods of an AppWrapper, and the end of their logs; read when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from msgspec import Struct

from mcad.api.wire import as_int, as_list, as_map
from mcad.cli.pages.colours import printable
from mcad.client.appwrappers.latest_events import list_events
from mcad.client.appwrappers.owned_objects import owned_objects
from mcad.client.appwrappers.pod_logs import (
    NO_CONTENT,
    container_of,
    containers_of,
    log_request,
    read_log,
)
from mcad.client.appwrappers.pod_state import ENDED, has_started, node_of, phase_of, pod_state
from mcad.client.appwrappers.read import read_appwrapper
from mcad.client.errors import McadError, explain
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.ui.details import Told

Json = dict[str, Any]

PODS_SHOWN = 200
LINES = 200
FEW_LINES = 10  # of a log whose last lines are so long that LINES of them are not read
READ_MAX = 1024 * 1024  # bytes that the API server is asked for
SHOWN_MAX = 64 * 1024  # bytes
LOG_S = 15.0


class Pod(Struct, frozen=True):
    """A pod as a row has it."""

    name: str
    state: str
    ready: str
    restarts: int
    node: str

    @classmethod
    def of(cls, pod: Json) -> Self:
        """Of the live object."""
        statuses = as_list(as_map(pod.get("status")).get("containerStatuses"))
        found = [as_map(one) for one in statuses]
        whole = len(as_list(as_map(pod.get("spec")).get("containers")))
        return cls(
            name=pod["metadata"]["name"],
            state=pod_state(pod),
            ready=f"{sum(one.get('ready') is True for one in found)}/{whole}",
            restarts=sum(as_int(one.get("restartCount")) for one in found),
            node=node_of(pod),
        )


class Log(Struct, frozen=True):
    """The end of a log; ``problem`` is why there is none. ``is_cut``: earlier text is left out."""

    text: str = ""
    is_cut: bool = False
    problem: str = ""


class OnePod(Struct, frozen=True):
    """A pod with the log of one of its containers, and the latest Events about it (None if the
    caller may not list them)."""

    pod: Pod
    containers: Sequence[str]
    container: str
    log: Log
    events: Sequence[Told] | None


async def read_pods(client: Client, namespace: str, name: str) -> list[Json]:
    """The live pods of an AppWrapper, with the rights of the caller; raises ``McadError``."""
    obj = await read_appwrapper(client, namespace, name)
    if obj is None:
        raise McadError(f"There is no AppWrapper {namespace}/{name}.")
    try:
        return (await owned_objects(client, obj)).pods
    except ApiError as error:
        if error.forbidden:
            raise McadError(f"You may not list pods in namespace {namespace}.") from error
        raise


async def read_pod(client: Client, title: tuple[str, str], name: str, container: str) -> OnePod:
    """A pod of the AppWrapper ``title``; "" is its default container. Raises ``McadError``."""
    pods = await read_pods(client, *title)
    pod = next((one for one in pods if one["metadata"]["name"] == name), None)
    if pod is None:
        raise McadError(f"{'/'.join(title)} has no pod {name} any more.")
    containers = containers_of(pod)
    chosen = container_of(pod, container if container in containers else None)
    events = await _events(client, pod)
    return OnePod(Pod.of(pod), containers, chosen, await _log(client, pod, chosen), events)


async def _events(client: Client, pod: Json) -> list[Told] | None:
    metadata = pod["metadata"]
    try:
        found = await list_events(client, metadata["namespace"], metadata["uid"])
    except ApiError as error:
        if not error.forbidden:
            raise
        return None
    return [Told.of(event) for event in reversed(found)]


async def _log(client: Client, pod: Json, container: str) -> Log:
    if not has_started(pod, container) and phase_of(pod) not in ENDED:
        return Log(problem=f"It has not started ({pod_state(pod)}).")
    body = b""
    try:
        for lines in (LINES, FEW_LINES):
            body = await _end_of_log(client, pod, container, lines)
            if len(body) < READ_MAX:
                break
    except ApiError as error:
        if error.forbidden:
            where = pod["metadata"]["namespace"]
            return Log(problem=f"You may not read logs of pods in namespace {where}.")
        return Log(problem=explain(error).message)
    except KubeError as error:
        return Log(problem=explain(error).message)
    is_cut = lines < LINES or len(body) > SHOWN_MAX or body.count(b"\n") >= LINES
    text = body[-SHOWN_MAX:].decode(errors="replace").replace("\t", "    ")
    return Log("\n".join(map(printable, text.split("\n"))), is_cut)


async def _end_of_log(client: Client, pod: Json, container: str, lines: int) -> bytes:
    request = log_request(pod, container, lines, {"limitBytes": str(READ_MAX)})
    try:
        return await read_log(client, request, LOG_S)
    except ApiError as error:
        if error.status != NO_CONTENT:
            raise
        return b""
