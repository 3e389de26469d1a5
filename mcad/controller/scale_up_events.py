"""Reads, from Events, that an autoscaler adds no nodes for buffers and placeholder pods.

Their objects do not say so: a buffer that gets a part of its nodes, or none, is as ready as before
(ADR 68). cluster-autoscaler says it in Events of the object, again and again while it holds, and
Karpenter in Events of pods; those that a buffer stands for exist in Karpenter only.
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

_BY_AUTOSCALER = "reason=NotTriggerScaleUp"
_BY_KARPENTER = "reason=FailedScheduling,source=karpenter"
_TIMEOUT_S = 5.0


async def refusal(client: Client, namespace: str, uids: Collection[str]) -> str:
    """Why no nodes are added for one of these objects, in the autoscaler's words; "" if nothing is
    said, or Events cannot be read."""
    if words := await _said(client, namespace, _BY_AUTOSCALER, uids):
        return quoted(", ".join(dict.fromkeys(words.split(","))))  # a reason for each node group
    return quoted(await _said(client, namespace, _BY_KARPENTER, uids))


async def _said(client: Client, namespace: str, selector: str, uids: Collection[str]) -> str:
    """The message of a selected Event about one of these objects, "" without one. The pods of a
    buffer have its uid and a number."""
    params = {"fieldSelector": selector, "limit": "500"}
    try:
        answer = await client.read(Request("GET", EVENTS.path(namespace), params), _TIMEOUT_S)
    except KubeError:
        return ""
    for event in map(as_map, as_list(answer.get("items"))):
        uid = as_text(as_map(event.get("involvedObject")).get("uid"))
        if uid in uids or uid.rpartition("-")[0] in uids:
            return as_text(event.get("message"))
    return ""
