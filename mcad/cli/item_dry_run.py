"""What the API server says to the items of an AppWrapper, asked before anything is sent.

Each item is created as the dispatcher will create it, as a dry run with strict field validation and
with the rights of the caller. What says nothing about the manifest, such as a right that the caller
lacks, is a warning: the dispatcher has rights of its own.
"""

from __future__ import annotations

import json
from typing import Any

from mcad.api.appwrapper import Parsed
from mcad.api.manifest import render
from mcad.cli.errors import CliError, clause, warn
from mcad.controller.execute import resource_of
from mcad.kube.client import Client, CreateOptions
from mcad.kube.errors import ApiError

Json = dict[str, Any]

_DRY = CreateOptions(dry_run=True, field_validation="Strict", metadata_only=True)
_STRICT = "strict decoding error: "
_NO_RIGHT = " cannot create resource "
_NO_DRY_RUN = "does not support dry run"
_BAD_REQUEST = 400


async def check_items(client: Client, origin: str, parsed: Parsed) -> int:
    """Tells what is wrong with the items, and returns the number of faults."""
    faults = 0
    for number, item in enumerate(parsed.workload.items):
        body: Json = json.loads(render(parsed.manifests[number], parsed.workload, number, 1))
        del body["metadata"]["ownerReferences"]  # there is no owner yet
        try:
            await client.create(resource_of(item.ref), item.ref.namespace, body, _DRY)
        except ApiError as error:
            place = f"{origin}: {item.ref}"
            if _is_fault(error):
                CliError(f"{place}: {_words(error)}").show()
                faults += 1
            elif told := _doubt(error):
                warn(f"{place} {told}")
    return faults


def _is_fault(error: ApiError) -> bool:
    """Whether the manifest is at fault, and not the sender or the moment."""
    return error.invalid or (error.status == _BAD_REQUEST and _NO_DRY_RUN not in error.message)


def _words(error: ApiError) -> str:
    return error.message.rpartition(_STRICT)[2]


def _doubt(error: ApiError) -> str:
    """What to tell of an answer that does not speak of the manifest, "" if nothing."""
    words = clause(error.message or str(error))
    if error.forbidden and _NO_RIGHT in error.message:
        return f"is not checked: you have no right to create it yourself ({words})"
    if error.forbidden:
        return f"would be refused now: {words}"
    if error.already_exists:
        return "exists already; the AppWrapper waits until it is gone"
    if error.not_found:  # the namespace: told when the AppWrapper is created
        return ""
    return f"is not checked: {words}"
