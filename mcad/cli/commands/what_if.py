"""``mcad what-if``: what the dispatcher would do if something were different."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcad.api.questions import Changes, Question
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import form_option, namespace_option
from mcad.cli.arguments.instant import until_option
from mcad.cli.arguments.names import node_names
from mcad.cli.arguments.options import filename_option, record, source_options
from mcad.cli.errors import FAILED, show_error
from mcad.cli.pages.drain import page as drain_page
from mcad.cli.pages.output_forms import FormType, echo_form
from mcad.cli.pages.tables import echo
from mcad.cli.pages.what_if import page
from mcad.client.answers.what_if import what_if as asked
from mcad.client.figures.progress import working
from mcad.client.figures.source import open_questions
from mcad.client.manifests.documents import Document, read_documents
from mcad.client.scope import Source
from mcad.core.state.units import Instant

if TYPE_CHECKING:
    from mcad.client.answers.at_journal import AtEnd

Json = dict[str, Any]

change_options = record(
    "changes",
    Changes,
    click.option("--nodes", metavar="+N", type=click.IntRange(1, 1000), help="Add nodes."),
    click.option("--like", metavar="NODE", help="The node that the added ones equal."),
    click.option(
        "--without",
        "left_out",
        metavar="NAME",
        multiple=True,
        help="Leave out an AppWrapper: NAME or NAMESPACE/NAME; may be repeated.",
    ),
    click.option(
        "--quota",
        nargs=2,
        metavar="TREE/NODE RESOURCE=AMOUNT[,...]",
        multiple=True,
        help="Change the shares of a node of a quota tree; may be repeated.",
    ),
    click.option(
        "--set",
        "assignments",
        metavar="KEY=VALUE",
        multiple=True,
        help="Change a setting of the dispatcher; may be repeated.",
    ),
)


@click.command("what-if")
@filename_option("named", "Add the AppWrappers of this file")
@change_options
@click.option(
    "--drain",
    "drained",
    metavar="NODE",
    multiple=True,
    help="Show which pods a drain of the node moves, and where they fit; may be repeated.",
)
@namespace_option
@source_options
@click.option(
    "--journal",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Use the state at the end of a journal; no cluster is needed.",
)
@until_option
@form_option(FormType("json", "yaml"))
def what_if(  # noqa: PLR0913 - one per group of options
    *,
    named: tuple[str, ...],
    changes: Changes,
    drained: tuple[str, ...],
    namespace: str | None,
    source: Source,
    journal: Path | None,
    until: Instant | None,
    form: str | None,
) -> None:
    """Show what the dispatcher would do if something differed.

    Two copies of the dispatcher get what it knows at this moment, one of them with the changes, and
    run their next cycles. What differs is shown: which AppWrappers start or are evicted, and the
    positions and start time estimates of those that wait. Nothing is changed in the cluster.

    --drain shows what a drain of nodes moves: the AppWrappers go on, and their controllers create
    the pods anew, on other nodes. Pods without a place wait for room.

    AppWrappers of files are tried where you may create them, and then those of your namespace are
    shown; for other changes you must be allowed to list the appwrapperreports of all namespaces.
    If the dispatcher cannot be asked the exit code is 3. With --journal the copies get what was
    there at the end of a journal of `mcad run --journal DIR`, or at --until, and its settings.
    """
    if drained:
        if changes != Changes() or named or journal or until is not None:
            raise click.UsageError("--drain is asked alone: omit the other changes and --journal")
        _show_drain(asyncio.run(_drain(node_names(drained), source)), form)
        return
    if changes == Changes() and not named:
        told = "-f, --nodes, --without, --quota, --set or --drain"
        raise click.UsageError(f"say what is different: {told}")
    if (changes.nodes is None) != (changes.like is None):
        raise click.UsageError("--nodes and --like go together: --nodes +2 --like NODE")
    if journal is not None:
        if source != Source():
            told = "--kubeconfig, --context and --server"
            raise click.UsageError(f"--journal asks no cluster: omit {told}")
    elif until is not None:
        raise click.UsageError("--until is an instant of a journal: add --journal DIR")
    documents = [one for path in named for one in read_documents(path)]
    if journal is not None:
        _ask_journal(_read_end(journal, until), changes, documents, namespace, form)
        return
    show_answer(asyncio.run(ask(changes, documents, namespace, source)), form)


async def _drain(names: tuple[str, ...], source: Source) -> Json:
    async with open_questions(environment(), source, None) as (figures, own):
        with working("trying where the pods fit"):
            return await figures.what_if(Question(drain=names), own)


def _show_drain(found: Json, form: str | None) -> None:
    if form:
        echo_form({"moves": found["moves"]}, form, found["moves"])
    else:
        echo(drain_page(found))


def _read_end(folder: Path, until: Instant | None) -> AtEnd:
    """The state at the end of a journal, or at an instant."""
    from mcad.client.answers.at_journal import read_end  # noqa: PLC0415 - the core takes a while

    return read_end(folder, until)


def _ask_journal(
    end: AtEnd,
    changes: Changes,
    documents: Sequence[Document],
    namespace: str | None,
    form: str | None,
) -> None:
    from mcad.client.answers.at_journal import what_if_then  # noqa: PLC0415 - as above

    told = what_if_then(end, changes, namespace, documents)
    if form:
        echo_form(told, form)
    else:
        echo(page(told, end.facts.now))
    for line in end.wrong:
        show_error(line)
    if end.wrong:
        raise click.exceptions.Exit(FAILED)


def show_answer(told: Json, form: str | None) -> None:
    """Print what differs."""
    if form:
        echo_form(told, form)
    else:
        echo(page(told, environment().clock.now_us()))


async def ask(
    changes: Changes, documents: Sequence[Document], namespace: str | None, source: Source
) -> Json:
    """What differs with these changes."""
    async with open_questions(environment(), source, namespace) as (figures, own):
        return await asked(figures, changes, documents, namespace, own)
