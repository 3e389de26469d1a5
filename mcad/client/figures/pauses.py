"""Reads the DispatchPauses, for figures and for the notes above them."""

from __future__ import annotations

from typing import Any

from mcad.api.wire import as_list
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import DISPATCH_PAUSES
from mcad.kube.port import Request

Json = dict[str, Any]

PATIENCE_S = 2.5


async def read_pauses(client: Client) -> list[Json]:
    """All of them; none if they are not installed, or if the caller may not list them."""
    try:
        found, _ = await client.list_all(DISPATCH_PAUSES)
    except ApiError as error:
        if error.not_found or error.forbidden:
            return []
        raise
    return found


async def read_notes(client: Client) -> tuple[str, ...]:
    """A warning if dispatch is paused for the whole cluster; none if it cannot be read at once."""
    try:
        answer = await client.api.request(Request("GET", DISPATCH_PAUSES.path()), PATIENCE_S)
        found = as_list(answer.json().get("items")) if answer.status == 200 else []
    except KubeError:
        return ()
    if not found:
        return ()
    from mcad.api.pauses import read_pause  # noqa: PLC0415 - the models of the API take a while

    return tuple(one.text for one in map(read_pause, found) if one.is_everywhere)[:1]
