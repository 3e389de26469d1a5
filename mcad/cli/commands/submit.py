"""``mcad submit``: creates AppWrappers from files, parsed first as the dispatcher will parse them.

Nothing is sent if one of them is faulty: a set of manifests is created as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import asdict

from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config, catalog_of
from mcad.api.questions import Changes
from mcad.cli.arguments.duration import SecondsType
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import form_option, namespace_option
from mcad.cli.arguments.options import files_option, record, settings_options, target_options
from mcad.cli.commands.what_if import ask, show_answer
from mcad.cli.commands.wrap import wrapping_options
from mcad.cli.errors import FAILED, show
from mcad.cli.live.waiting import printed_wait
from mcad.cli.pages.tables import echo_structured
from mcad.client.appwrappers.goals import DISPATCH
from mcad.client.appwrappers.state import reference
from mcad.client.appwrappers.wait import wait_for
from mcad.client.config import load_config
from mcad.client.errors import McadError
from mcad.client.figures.progress import working
from mcad.client.manifests.check import prepare
from mcad.client.manifests.declared import check_kind
from mcad.client.manifests.documents import Document, read_documents
from mcad.client.manifests.sending import checked, refuse, send
from mcad.client.manifests.wrapping import Wrapping, wrapped
from mcad.client.scope import Settings, Source, Target
from mcad.client.session import Session

Json = dict[str, Any]


class SubmitOptions(Struct, frozen=True):
    """--dry-run, -o, --wait and --timeout."""

    dry_run: str | None
    form: str | None
    wait: bool = False
    timeout_s: float | None = None


submit_options = record(
    "options",
    SubmitOptions,
    click.option(
        "--dry-run",
        type=click.Choice(["client", "server", "queue"]),
        help="client: only read the files; server: the API server checks, but stores nothing; "
        "queue: show what the dispatcher would do, like `mcad what-if -f`.",
    ),
    form_option(click.Choice(["json", "yaml", "name"])),
    click.option(
        "--wait", is_flag=True, help="Wait until all are dispatched; print why they wait."
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=SecondsType(),
        help="With --wait: give up after this time (90s, 5m, 1h), with exit code 124.",
    ),
)


@click.command()
@files_option("A file of YAML or JSON")
@namespace_option
@submit_options
@click.option("--wrap", is_flag=True, help="Make an AppWrapper of the manifests first (--name).")
@wrapping_options(required=False)
@target_options
@settings_options
def submit(  # noqa: PLR0913 - one per group of options
    *,
    paths: tuple[str, ...],
    namespace: str | None,
    target: Target,
    settings: Settings,
    options: SubmitOptions,
    wrap: bool,
    wrapping: Wrapping,
) -> None:
    """Create AppWrappers from files, checked before they are sent.

    Each item is created as a dry run first: a field that the API server does not know is a fault.
    Faults are printed with the field and what to do. A kind that the cluster does not know, or that
    may not be wrapped, is only a warning: the dispatcher holds such an AppWrapper.

    With --wrap the files may have manifests of any kind; see `mcad wrap`, which prints the result.

    \b
      helm template my-release ./chart | mcad submit --wrap --name my-release -
    """
    if wrap and not wrapping.name:
        raise click.UsageError("--wrap needs --name: the name of the AppWrapper")
    if wrapping != Wrapping() and not wrap:
        raise click.UsageError("--name, --priority, --leaf and --dialect need --wrap")
    if options.wait and options.dry_run:
        raise click.UsageError("--wait and --dry-run exclude each other")
    if options.timeout_s is not None and not options.wait:
        raise click.UsageError("--timeout needs --wait")
    documents = [document for path in paths for document in read_documents(path)]
    if wrap:
        documents = [Document(", ".join(paths), wrapped(documents, namespace, wrapping))]
    for document in documents:
        check_kind(document)
    if options.dry_run == "queue":
        _show_queue(documents, namespace, target, options.form)
        return
    config = load_config(settings)
    asyncio.run(_submit(documents, namespace, target, config, options))


def _show_queue(
    documents: Sequence[Document],
    namespace: str | None,
    target: Target,
    form: str | None,
) -> None:
    """--dry-run=queue."""
    if form == "name":
        raise click.UsageError("--dry-run=queue has the forms json and yaml")
    source = Source(**asdict(target))
    show_answer(asyncio.run(ask(Changes(), documents, namespace, source)), form)


async def _submit(
    documents: Sequence[Document],
    namespace: str | None,
    target: Target,
    config: Config,
    options: SubmitOptions,
) -> None:
    if options.dry_run == "client":
        own = environment().namespace(target)
        catalog = catalog_of(config, WELL_KNOWN)
        prepared, faults = prepare(documents, namespace, own, catalog)
        _fail_for(faults)
        for one in prepared:
            _report(one.obj, options)
        return
    async with environment().connect(target, watches=options.wait) as session:
        with working("checking the manifests"):
            prepared = await checked(
                session.client, config, documents, namespace, session.namespace
            )
        sent = [await _create(session, one.obj, options) for one in prepared]
        made = [obj for obj in sent if obj is not None]
        well = len(made) == len(prepared)
        if options.wait:
            well &= await wait_for(
                session.client,
                config,
                made,
                printed_wait(
                    DISPATCH, lambda obj: _report(obj, options, "dispatched"), options.timeout_s
                ),
            )
    if not well:
        raise click.exceptions.Exit(FAILED)


def _fail_for(faults: Sequence[str]) -> None:
    if faults:
        raise refuse(faults)


async def _create(session: Session, obj: Json, options: SubmitOptions) -> Json | None:
    """Create one; a failure is printed, and None returned."""
    try:
        made = await send(session.client, obj, dry_run=options.dry_run == "server")
    except McadError as error:
        show(error)
        return None
    _report(made, options)
    return made


def _report(obj: Json, options: SubmitOptions, what: str = "created") -> None:
    """Print a line like kubectl, or once the object or name for scripts."""
    if options.form and what != "created":
        return
    title = reference(obj)
    if options.form in ("json", "yaml"):
        echo_structured(obj, options.form)
    elif options.form == "name":
        click.echo(title)
    else:
        dry = {"client": " (dry run)", "server": " (server dry run)"}.get(options.dry_run or "", "")
        click.echo(f"{title} {what}{dry}")
