"""Reads one AppWrapper of the cluster."""

from __future__ import annotations

from typing import Any

from mcad.client.errors import McadError, not_installed
from mcad.kube.client import Client
from mcad.kube.errors import ApiError
from mcad.kube.kinds import APPWRAPPERS

Json = dict[str, Any]


async def read_appwrapper(client: Client, namespace: str, name: str) -> Json | None:
    """The live object, None if there is none of this name."""
    try:
        return await client.get(APPWRAPPERS, namespace, name)
    except ApiError as error:
        if not error.not_found:
            raise
        if not error.details.get("name"):
            raise McadError(not_installed(APPWRAPPERS)) from error
        return None
