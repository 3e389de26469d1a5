"""``mcad debug``: whether it works, and what a bug report needs."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import click
from msgspec import Struct

from mcad.api.config import Config
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import namespace_option
from mcad.cli.arguments.options import record, settings_options, target_options
from mcad.cli.errors import FAILED, show_error
from mcad.client.config import load_config
from mcad.client.errors import McadError
from mcad.client.scope import Settings, Target

FILE = "mcad-debug.tar.gz"


class BundleOptions(Struct, frozen=True):
    """-o, --server and --journal."""

    path: Path
    server: str | None = None
    journal: Path | None = None


bundle_options = record(
    "options",
    BundleOptions,
    click.option(
        "-o",
        "--output",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        default=FILE,
        show_default=True,
        help="The archive to write; it must not exist.",
    ),
    click.option(
        "--server",
        metavar="URL",
        help="The HTTP port of the dispatcher, behind `kubectl port-forward`: its metrics, figures,"
        " stacks and settings.",
    ),
    click.option(
        "--journal",
        type=click.Path(file_okay=False, exists=True, path_type=Path),
        metavar="DIR",
        help="A journal to add; `mcad replay DIR --anonymous` makes one without names.",
    ),
)


@click.group()
def debug() -> None:
    """Check that it works, and collect what a bug report needs."""


@debug.command()
@bundle_options
@target_options
@settings_options
def bundle(options: BundleOptions, target: Target, settings: Settings) -> None:
    """Write an archive for a bug report.

    It has the versions, the Lease, the CRDs and DispatchPauses of the cluster; with --server the
    metrics, figures, stacks and settings of the dispatcher; with --journal its decisions. Names of
    AppWrappers and nodes are in it: look at it before you send it. Secrets and manifests are not.
    What cannot be read is named in the archive.
    """
    if options.path.exists():
        raise McadError(f"{options.path} exists; remove it, or choose another file with -o")
    files = asyncio.run(_collect(options, target, settings))
    try:
        _write(options, files)
    except OSError as error:
        raise McadError(f"{options.path} cannot be written: {error.strerror}") from error
    click.echo(f"{options.path} has {len(files)} files:")
    for name, text in files.items():
        click.echo(f"  {name}{'  (not read)' if text.startswith('not read: ') else ''}")
    if options.journal is not None:
        click.echo("  journal/")


async def _collect(options: BundleOptions, target: Target, settings: Settings) -> dict[str, str]:
    from mcad.client.bundle import of_program  # noqa: PLC0415 - takes a while to import

    answers = {name: text async for name, text in _answers(options, target, settings)}
    return {"versions.txt": of_program(), **answers}


async def _answers(
    options: BundleOptions, target: Target, settings: Settings
) -> AsyncIterator[tuple[str, str]]:
    from mcad.client.bundle import of_cluster, of_dispatcher  # noqa: PLC0415 - see above
    from mcad.client.figures.of_server import server_at  # noqa: PLC0415

    if options.server is not None:
        async for found in of_dispatcher(server_at(options.server).url):
            yield found
    try:
        async with environment().connect(target, watches=False) as session:
            async for found in of_cluster(session, load_config(settings)):
                yield found
    except McadError as error:
        yield "cluster.txt", f"not read: {error.message}\n"


@debug.command()
@namespace_option
@target_options
@settings_options
def check(namespace: str | None, target: Target, settings: Settings) -> None:
    """Check that AppWrappers can be submitted and are dispatched.

    Uses your rights in one namespace: AppWrappers are listed, and one with a Pod is created as a
    dry run. Nothing is stored. Exit code 1 if a check fails; `helm test` runs the same.
    """
    config = load_config(settings)
    faults = asyncio.run(_check(namespace, target, config))
    if faults:
        raise click.exceptions.Exit(FAILED)


async def _check(namespace: str | None, target: Target, config: Config) -> int:
    """Print each finding; returns the number of faults."""
    from mcad.client.installation import findings  # noqa: PLC0415 - see above

    faults = 0
    async with environment().connect(target, watches=False) as session:
        async for one in findings(session, config, namespace or session.namespace):
            faults += bool(one.fault)
            note = f" ({one.note})" * bool(one.note)
            click.echo(f"{'failed' if one.fault else 'ok':8}{one.title}{note}")
            if one.fault:
                show_error(one.fault)
    return faults


def _write(options: BundleOptions, files: dict[str, str]) -> None:
    with tarfile.open(options.path, "x:gz") as archive:
        for name, text in files.items():
            data = text.encode()
            member = tarfile.TarInfo(f"mcad-debug/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        if options.journal is not None:
            archive.add(options.journal, "mcad-debug/journal")
