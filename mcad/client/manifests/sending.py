"""Checks and creates AppWrappers, and says in words why one could not be created."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from mcad.api.config import Config
from mcad.api.wire import plural
from mcad.client.errors import InvalidError, McadError, clause, explain, warn
from mcad.client.manifests.check import Prepared, prepare
from mcad.client.manifests.documents import Document
from mcad.client.manifests.item_dry_run import check_items
from mcad.controller.served_kinds import Kinds
from mcad.kube.client import Client, CreateOptions
from mcad.kube.discovery import Discovery
from mcad.kube.errors import ApiError, KubeError, OutcomeUnknown
from mcad.kube.kinds import APPWRAPPERS

Json = dict[str, Any]

_POLICY = re.compile(r"^Validation failed for ValidatingAdmissionPolicy '\S+' with binding '\S+': ")
"""What the API server says before the words of a policy."""


async def checked(
    client: Client, config: Config, documents: Sequence[Document], namespace: str | None, own: str
) -> list[Prepared]:
    """The AppWrappers as they can be sent; raises ``InvalidError`` with all faults.

    ``namespace`` is that of all of them, if given; ``own`` that of those that name none.
    """
    kinds = Kinds(Discovery(client), config)
    await kinds.refresh()
    prepared, faults = prepare(documents, namespace, own, kinds.catalog)
    if faults:
        raise refuse(faults)
    for one in prepared:
        faults += await check_items(client, one.origin, one.parsed)
    if faults:
        raise refuse(faults)
    return prepared


async def send(client: Client, obj: Json, *, dry_run: bool = False) -> Json:
    """Create an AppWrapper, in the version in which it is written; raises ``McadError``. What the
    API server warns of is a warning."""
    resource = replace(APPWRAPPERS, version=obj["apiVersion"].rpartition("/")[2])
    metadata = obj["metadata"]
    title = f"{metadata['namespace']}/{metadata.get('name') or metadata.get('generateName')}"
    options = CreateOptions(dry_run=dry_run, field_validation="Strict")
    try:
        created = await client.create_warned(resource, metadata["namespace"], obj, options)
    except KubeError as error:
        raise _refused(title, error) from error
    for text in created.warnings:
        warn(f"{title}: {_POLICY.sub('', text)}")
    return created.obj


def _refused(title: str, error: KubeError) -> McadError:
    if isinstance(error, OutcomeUnknown):
        return McadError(f"{title} may or may not be created ({error}); look with `mcad get`")
    if isinstance(error, ApiError):
        if error.already_exists:
            return McadError(f"{title} exists already; delete it first, or give it another name")
        if error.not_found:
            return McadError(
                f"{title} cannot be created ({clause(error.message)}); check that the namespace "
                "exists, and that AppWrappers are installed "
                "(`mcad crd | kubectl apply --server-side -f -`)"
            )
    return McadError(f"{title} cannot be created: {explain(error).message}")


def refuse(faults: Sequence[str]) -> InvalidError:
    """The error for manifests with these faults."""
    count = plural(len(faults), "fault")
    return InvalidError(f"nothing was sent: {count} to correct first", tuple(faults))
