"""``mcad migrate``: from MCAD, from AppWrapper with Kueue, or from an older version."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import click

from mcad.api import crd
from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config, catalog_of
from mcad.api.wire import Map, as_list, as_map, as_text, dig
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.options import files_option, target_options
from mcad.cli.errors import FAILED, show_error
from mcad.cli.pages.tables import echo
from mcad.client.appwrappers.state import reference
from mcad.client.errors import McadError
from mcad.client.manifests.check import prepare
from mcad.client.manifests.declared import check_kind
from mcad.client.manifests.differences import differences
from mcad.client.manifests.documents import Document, read_documents
from mcad.client.scope import Target
from mcad.client.session import Session
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError
from mcad.kube.kinds import APPWRAPPERS, CRDS

STORED = APPWRAPPERS.version
"""The version that AppWrappers are stored in."""


@click.group()
def migrate() -> None:
    """Migrate from MCAD, Kueue or an older version."""


@migrate.command()
@files_option("A file of YAML or JSON")
def check(paths: tuple[str, ...]) -> None:
    """Show what manifests of MCAD, or of AppWrapper with Kueue, do differently here.

    Nothing is asked of a cluster. Manifests run unmodified; a line names each field that does not
    do exactly what it did. Exit code 1 if one cannot run here.
    """
    documents = [document for path in paths for document in read_documents(path)]
    faults: list[str] = []
    for document in documents:
        faults += _show_differences(document)
    for fault in faults:
        show_error(fault)
    if faults:
        raise click.exceptions.Exit(FAILED)


def _show_differences(document: Document) -> list[str]:
    """Print them; returns what is wrong with the manifest."""
    check_kind(document)
    (one,), faults = prepare([document], None, "default", catalog_of(Config(), WELL_KNOWN))
    found = differences(one.obj, one.parsed)
    title = f"{document.origin}: {reference(one.obj)}"
    if not found and not faults:
        echo([f"{title} does what it did"])
    elif found:
        echo([title])
    for difference in found:
        echo(
            [
                f"  {difference.path}",
                f"    before: {difference.before}",
                f"    here:   {difference.here}",
            ]
        )
    return faults


@migrate.command()
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@target_options
def storage(dry_run: bool, target: Target) -> None:  # noqa: FBT001 - click passes it by name
    """Store every AppWrapper in the newest version.

    The API server keeps an object in the version in which it was last written, and the CRD lists
    every version that may still be in etcd (status.storedVersions). This writes each AppWrapper
    once, without a change, and then removes the old versions from that list. It may be repeated.
    It needs the rights to list and patch AppWrappers, and to patch the status of their CRD.
    """
    asyncio.run(_storage(target, dry_run=dry_run))


async def _storage(target: Target, *, dry_run: bool) -> None:
    async with environment().connect(target) as session:
        live = await _installed(session)
        stored = sorted(map(as_text, as_list(dig(live, "status", "storedVersions"))))
        if stored == [STORED]:
            echo([f"all AppWrappers are stored as {STORED}: nothing to do"])
            return
        count = await _rewrite(session.client, dry_run=dry_run)
        if not dry_run:
            # Fenced: what is stored must not have changed since the list was read.
            fence = {"resourceVersion": live["metadata"]["resourceVersion"]}
            patch: Map = {"metadata": fence, "status": {"storedVersions": [STORED]}}
            await session.client.patch_status(CRDS, None, crd.NAME, patch)
        verb = "would be rewritten" if dry_run else "rewritten"
        many = f"{count} AppWrapper{'' if count == 1 else 's'}"
        echo([f"{many} {verb}; storedVersions {', '.join(stored)} -> {STORED}"])


async def _installed(session: Session) -> Map:
    """The CRD as it is installed; ``McadError`` if that does not store the newest version."""
    try:
        live = await session.client.get(CRDS, None, crd.NAME)
    except ApiError as error:
        if error.not_found:
            raise McadError(f"the CRD {crd.NAME} is not installed; see `mcad crd`") from error
        raise
    versions = map(as_map, as_list(dig(live, "spec", "versions")))
    storing = next((as_text(one.get("name")) for one in versions if one.get("storage")), "")
    if storing != STORED:
        raise McadError(
            f"the installed CRD stores {storing or 'no version'}: install the one of this version"
            " first (`mcad crd | kubectl apply --server-side -f -`)"
        )
    return live


async def _rewrite(client: Client, *, dry_run: bool) -> int:
    """Write every AppWrapper as it is; returns how many there are."""
    count = 0
    pages = client.list_pages(APPWRAPPERS, Selection(metadata_only=True))
    async with aclosing(pages) as found:
        async for page in found:
            for one in page.items:
                meta = one["metadata"]
                count += dry_run or await _write_again(client, meta["namespace"], meta["name"])
    return count


async def _write_again(client: Client, namespace: str, name: str) -> bool:
    """Send an empty patch: the API server then stores the object in the newest version.

    False if the AppWrapper is gone.
    """
    try:
        await client.patch(APPWRAPPERS, namespace, name, {})
    except ApiError as error:
        if error.not_found:
            return False
        raise
    return True
