"""Sets ``spec.suspend`` of an AppWrapper, and other fields of its spec."""

from __future__ import annotations

from typing import Any

from mcad.client.appwrappers.state import is_held, why_over
from mcad.kube.client import Client
from mcad.kube.kinds import APPWRAPPERS

Json = dict[str, Any]


def why_not_held(obj: Json) -> str:
    """Why a hold would change nothing, "" if it would."""
    return why_over(obj) or "it is on hold already" * is_held(obj)


def why_not_released(obj: Json) -> str:
    """Why a release would change nothing, "" if it would."""
    return why_over(obj) or "it is not on hold" * (not is_held(obj))


async def suspend(client: Client, obj: Json, *, suspended: bool, dry_run: bool = False) -> None:
    """Hold or release exactly this object."""
    await patch_spec(client, obj, {"suspend": suspended}, dry_run=dry_run)


async def patch_spec(client: Client, obj: Json, spec: Json, *, dry_run: bool) -> None:
    """Change fields of the spec of exactly this object; ``ApiError`` if another has its name."""
    metadata = obj["metadata"]
    body: Json = {"metadata": {"uid": metadata["uid"]}, "spec": spec}
    patch = client.dry_patch if dry_run else client.patch
    await patch(APPWRAPPERS, metadata["namespace"], metadata["name"], body)
