"""Reads the DispatchPauses, for figures and for the notes above them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcad.api.pauses import read_pause
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
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


def notes_of(pauses: Iterable[DispatchPause]) -> tuple[str, ...]:
    """A warning if dispatch is paused for the whole cluster."""
    everywhere = [one.text for one in pauses if one.is_everywhere]
    return tuple(everywhere[:1])


async def read_notes(client: Client) -> tuple[str, ...]:
    """``notes_of`` the cluster; none if they cannot be read."""
    try:
        return notes_of(map(read_pause, await read_pauses(client)))
    except KubeError:
        return ()
