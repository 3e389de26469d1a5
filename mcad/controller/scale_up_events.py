"""Reads, from Events, that an autoscaler adds no nodes for buffers and placeholder pods.

Their objects do not say so: a buffer that gets a part of its nodes, or none, is as ready as before
(ADR 68). cluster-autoscaler says it in Events of the object, again and again while it holds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from mcad.api.wire import as_list, as_map, as_text
from mcad.core.state.quotation import quoted
from mcad.kube.errors import KubeError
from mcad.kube.kinds import EVENTS
from mcad.kube.port import Request

if TYPE_CHECKING:
    from mcad.kube.client import Client

REFUSED = "NotTriggerScaleUp"
_PARAMS = {"fieldSelector": f"reason={REFUSED}", "limit": "500"}
_TIMEOUT_S = 5.0


async def refusal(client: Client, namespace: str, uids: Collection[str]) -> str:
    """Why no nodes are added for one of these objects, in the autoscaler's words; "" if nothing is
    said, or Events cannot be read."""
    try:
        answer = await client.read(Request("GET", EVENTS.path(namespace), _PARAMS), _TIMEOUT_S)
    except KubeError:
        return ""
    for event in map(as_map, as_list(answer.get("items"))):
        if as_map(event.get("involvedObject")).get("uid") in uids:
            reasons = dict.fromkeys(as_text(event.get("message")).split(","))
            return quoted(", ".join(reasons))
    return ""
