"""Reads the logs of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcad.api.wire import as_list, as_map, as_text
from mcad.client.errors import McadError
from mcad.kube.client import Client
from mcad.kube.errors import api_error
from mcad.kube.kinds import PODS
from mcad.kube.port import Request

Json = dict[str, Any]

LOG_S = 60.0  # for a whole log
OK, NO_CONTENT = 200, 204
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


def container_of(pod: Json, chosen: str | None) -> str:
    """The container to read; raises ``McadError`` if the pod has none of this name."""
    names, notes = containers_of(pod), as_map(pod["metadata"].get("annotations"))
    found = chosen or as_text(notes.get(DEFAULT_CONTAINER)) or names[0]
    if found not in names:
        name = pod["metadata"]["name"]
        raise McadError(f"pod {name} has no container {found}; choose {' or '.join(names)}")
    return found


def log_request(pod: Json, container: str, tail: int | None, more: Mapping[str, str]) -> Request:
    """GET of the log of a container, or of its last lines."""
    params = {"container": container, **more}
    if tail is not None:
        params["tailLines"] = str(tail)
    metadata = pod["metadata"]
    return Request("GET", PODS.path(metadata["namespace"], metadata["name"], "log"), params)


async def read_log(client: Client, request: Request, timeout_s: float = LOG_S) -> bytes:
    """A log as it is now; raises ``ApiError``, with ``NO_CONTENT`` for a pod that never had a node.

    A stream would leave out a last line without an end of line.
    """
    answer = await client.api.request(request, timeout_s)
    if answer.status != OK or not isinstance(answer.body, bytes):
        raise api_error(answer.status, answer.body)
    return answer.body


def containers_of(pod: Json) -> Sequence[str]:
    """The names of its containers, those before the start last."""
    spec = as_map(pod.get("spec"))
    every = [*as_list(spec.get("containers")), *as_list(spec.get("initContainers"))]
    return [as_text(as_map(one).get("name")) for one in every]
