"""Checks the items of an AppWrapper by dry runs, before anything is sent.

Each item is created as the dispatcher will create it, with strict field validation and with the
rights of the caller. A failure that is not caused by the manifest, such as a missing right of the
caller, is a warning: the dispatcher has its own rights.
"""

from __future__ import annotations

import json
from typing import Any

from mcad.api.appwrapper import Parsed
from mcad.api.manifest import render
from mcad.client.errors import clause, warn
from mcad.controller.execute import resource_of
from mcad.kube.client import Client, CreateOptions
from mcad.kube.errors import ApiError

Json = dict[str, Any]

DRY = CreateOptions(dry_run=True, field_validation="Strict", metadata_only=True)
_STRICT = "strict decoding error: "
_NO_RIGHT = " cannot create resource "
_NO_DRY_RUN = "does not support dry run"
_BAD_REQUEST = 400


async def check_items(client: Client, origin: str, parsed: Parsed) -> list[str]:
    """What is wrong with the items."""
    faults: list[str] = []
    for number, item in enumerate(parsed.workload.items):
        body: Json = json.loads(render(parsed.manifests[number], parsed.workload, number, 1))
        del body["metadata"]["ownerReferences"]  # there is no owner yet
        try:
            await client.create(resource_of(item.ref), item.ref.namespace, body, DRY)
        except ApiError as error:
            faults += faults_of(f"{origin}: {item.ref}", error)
    return faults


def faults_of(place: str, error: ApiError) -> list[str]:
    """What is wrong with the manifest, if that is why its dry run was refused."""
    if _is_fault(error):
        return [f"{place}: {_words(error)}"]
    if doubt := _doubt(error):
        warn(f"{place} {doubt}")
    return []


def _is_fault(error: ApiError) -> bool:
    """Whether the manifest is wrong, not the rights of the caller or the state of the cluster."""
    return error.invalid or (error.status == _BAD_REQUEST and _NO_DRY_RUN not in error.message)


def _words(error: ApiError) -> str:
    return error.message.rpartition(_STRICT)[2]


def _doubt(error: ApiError) -> str:
    """The warning for an answer that is not about the manifest, "" for none."""
    words = clause(error.message or str(error))
    if error.forbidden and _NO_RIGHT in error.message:
        return f"is not checked: you may not create it yourself ({words})"
    if error.forbidden:
        return f"would be rejected now: {words}"
    if error.already_exists:
        return "exists already; the AppWrapper waits until it is gone"
    if error.not_found:  # the namespace; creating the AppWrapper fails, too
        return ""
    return f"is not checked: {words}"
