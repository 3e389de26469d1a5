"""``mcad lint``: checks manifests of AppWrappers as ``mcad submit`` does, and submits nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial

import click
from msgspec.structs import replace

from mcad.api.catalog import WELL_KNOWN, Catalog
from mcad.api.config import Config, catalog_of
from mcad.api.wire import plural
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import namespace_option
from mcad.cli.arguments.options import files_option, settings_options, target_options
from mcad.cli.errors import FAILED, show, show_error, warn
from mcad.client.appwrappers.state import reference
from mcad.client.config import load_config
from mcad.client.errors import McadError
from mcad.client.manifests.check import Prepared, prepare
from mcad.client.manifests.declared import check_kind
from mcad.client.manifests.documents import Document, read_documents
from mcad.client.manifests.item_dry_run import DRY, check_items, faults_of
from mcad.client.scope import Settings, Target
from mcad.client.session import Session
from mcad.controller.served_kinds import Kinds
from mcad.kube.discovery import Discovery
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import APPWRAPPERS

UNCHECKED = (
    "unknown fields of the items, unknown kinds, names that are taken and rights are not checked"
)


@click.command()
@files_option("A file of YAML or JSON")
@namespace_option
@click.option("--offline", is_flag=True, help="Ask no API server; say what is not checked.")
@target_options
@settings_options
def lint(
    *,
    paths: tuple[str, ...],
    namespace: str | None,
    offline: bool,
    target: Target,
    settings: Settings,
) -> None:
    """Check manifests of AppWrappers; nothing is submitted.

    The checks are those of `mcad submit`: the dispatcher's own, and those of the API server by dry
    runs with strict fields, of the AppWrapper and of each item. Without an API server the first
    kind of checks is done, and stderr says what was not checked. Exit code 1 if there is a fault.
    """
    documents = [document for path in paths for document in read_documents(path)]
    kept = [document for document in documents if _is_appwrapper(document)]
    faults, config = len(documents) - len(kept), load_config(settings)
    faults += asyncio.run(_lint(kept, namespace, target, config, offline=offline))
    if faults:
        click.echo(f"{plural(faults, 'fault')} to correct.", err=True)
        raise click.exceptions.Exit(FAILED)


def _is_appwrapper(document: Document) -> bool:
    """Whether it is one; if not, an error says what to do."""
    try:
        check_kind(document)
    except McadError as error:
        show(error)
        return False
    return True


async def _lint(
    documents: Sequence[Document],
    namespace: str | None,
    target: Target,
    config: Config,
    *,
    offline: bool,
) -> int:
    """Print the faults, and a line for each AppWrapper without; returns their number."""
    async with AsyncExitStack() as stack:
        if offline:
            warn(f"{UNCHECKED} (--offline)")
        else:
            try:
                session = await stack.enter_async_context(
                    environment().connect(target, watches=False)
                )
            except (McadError, KubeError) as error:
                warn(f"{UNCHECKED}: {error}")
            else:
                kinds = Kinds(Discovery(session.client), config)
                await kinds.refresh()
                own, check = session.namespace, partial(_check_there, session)
                return await _lint_all(documents, namespace, own, kinds.catalog, check)
    own, catalog = environment().namespace(target), catalog_of(config, WELL_KNOWN)
    return await _lint_all(documents, namespace, own, catalog, _check_nothing)


async def _lint_all(
    documents: Sequence[Document],
    namespace: str | None,
    own: str,
    catalog: Catalog,
    check: Callable[[Prepared], Awaitable[list[str]]],
) -> int:
    faults = 0
    for document in documents:
        prepared, found = prepare([document], namespace, own, catalog)
        if not found:
            found = await check(prepared[0])
        for fault in found:
            show_error(fault)
        faults += len(found)
        if not found:
            _report(prepared[0])
    return faults


async def _check_nothing(_: Prepared) -> list[str]:
    """Without an API server there is nothing more to check."""
    return []


async def _check_there(session: Session, one: Prepared) -> list[str]:
    """The faults that the API server finds."""
    faults = await check_items(session.client, one.origin, one.parsed)
    resource = replace(APPWRAPPERS, version=one.obj["apiVersion"].rpartition("/")[2])
    namespace = one.obj["metadata"]["namespace"]
    try:
        await session.client.create(resource, namespace, one.obj, DRY)
    except ApiError as error:
        if error.already_exists:
            warn(f"{one.origin}: an AppWrapper of this name exists in namespace {namespace}")
        elif error.not_found:
            warn(f"{one.origin}: cannot be created in namespace {namespace} ({error.message})")
        else:
            faults += faults_of(f"{one.origin}: the AppWrapper", error)
    return faults


def _report(one: Prepared) -> None:
    click.echo(f"{one.origin}: {reference(one.obj)} has no faults")
