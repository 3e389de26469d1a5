"""Whether AppWrappers can be submitted and are dispatched, tried with the rights of the caller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from msgspec import Struct

from mcad.api.config import Config
from mcad.api.labels import GROUP
from mcad.api.pauses import read_pause
from mcad.client.errors import McadError, explain
from mcad.client.figures.pauses import read_pauses
from mcad.client.figures.presence import Presence, read_presence
from mcad.client.manifests.sending import send
from mcad.client.session import Session
from mcad.kube.client import Selection
from mcad.kube.errors import KubeError
from mcad.kube.kinds import APPWRAPPERS

Json = dict[str, Any]

TRIED = {
    ("", "pods"): ("v1", "Pod"),
    ("batch", "jobs"): ("batch/v1", "Job"),
    ("apps", "deployments"): ("apps/v1", "Deployment"),
}
"""Kinds for the AppWrapper of the dry run; the first one that may be wrapped is taken."""

NAME = "mcad-check"
_POD: Json = {
    "containers": [
        {
            "name": "check",
            "image": "check",
            "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
        }
    ]
}


class Finding(Struct, frozen=True):
    """The result of one check: ``fault`` is empty if it has passed."""

    title: str
    fault: str = ""
    note: str = ""


async def findings(session: Session, config: Config, namespace: str) -> AsyncIterator[Finding]:
    """Check one thing after the other."""
    yield await _listed(session, namespace)
    yield await _led(session, config)
    yield await _accepted(session, config, namespace)
    yield await _paused(session)


async def _listed(session: Session, namespace: str) -> Finding:
    title = f"AppWrappers of {namespace} can be listed"
    try:
        found, _ = await session.client.list_all(APPWRAPPERS, Selection(namespace=namespace))
    except KubeError as error:
        return Finding(title, explain(error).message)
    return Finding(title, note=f"{len(found)} found")


async def _led(session: Session, config: Config) -> Finding:
    title = "a dispatcher runs"
    heartbeat = await read_presence(session.client, config)
    if heartbeat.presence is Presence.RUNNING:
        return Finding(title, note=heartbeat.holder)
    lease = f"{config.leader_election.namespace}/{config.leader_election.name}"
    if heartbeat.presence is Presence.UNKNOWN:
        return Finding(title, f"the Lease {lease} cannot be read")
    return Finding(title, f"no process holds the Lease {lease}; look at the pods of mcad")


async def _accepted(session: Session, config: Config, namespace: str) -> Finding:
    """A dry run passes validation and admission, and stores nothing."""
    kind = next((TRIED[one] for one in TRIED if one in config.allowed), None)
    title = f"an AppWrapper can be created in {namespace}"
    if kind is None:
        return Finding(title, note="not tried: neither Pods, Jobs nor Deployments may be wrapped")
    try:
        await send(session.client, _appwrapper(namespace, *kind), dry_run=True)
    except McadError as error:
        return Finding(title, error.message)
    return Finding(title, note="dry run")


async def _paused(session: Session) -> Finding:
    try:
        pauses = [read_pause(one) for one in await read_pauses(session.client)]
    except KubeError as error:
        return Finding("dispatch is not paused", explain(error).message)
    everywhere = [one for one in pauses if one.is_everywhere]
    if everywhere:
        return Finding("pauses", note=everywhere[0].text)
    return Finding("dispatch is not paused", note=f"{len(pauses)} pauses of a part" * bool(pauses))


def _appwrapper(namespace: str, version: str, kind: str) -> Json:
    template: Json = {"apiVersion": version, "kind": kind, "metadata": {"name": NAME}}
    labels = {"app": NAME}
    inner = {"metadata": {"labels": labels}, "spec": _POD}
    match kind:
        case "Pod":
            template["spec"] = _POD
        case "Job":
            template["spec"] = {"template": {"spec": _POD | {"restartPolicy": "Never"}}}
        case _:
            template["spec"] = {"selector": {"matchLabels": labels}, "template": inner}
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {"components": [{"template": template}]},
    }
