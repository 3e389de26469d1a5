"""Reads the DispatchPauses, for figures and for the notes above them."""

from __future__ import annotations

from typing import Any

from mcad.kube.client import Client
from mcad.kube.errors import ApiError
from mcad.kube.kinds import DISPATCH_PAUSES

Json = dict[str, Any]


async def read_pauses(client: Client) -> list[Json]:
    """All of them; none if they are not installed, or if the caller may not list them."""
    try:
        found, _ = await client.list_all(DISPATCH_PAUSES)
    except ApiError as error:
        if error.not_found or error.forbidden:
            return []
        raise
    return found
