"""``mcad what-if``: what the dispatcher would do if something were different."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click
from msgspec import Struct

from mcad.cli.arguments.options import Settings as Given
from mcad.cli.arguments.options import filename_option, namespace_option, record, target_options
from mcad.cli.pages.tables import echo, echo_structured
from mcad.cli.pages.what_if import page
from mcad.client.config import as_dispatched, load_config
from mcad.client.errors import warn
from mcad.client.manifests.documents import Document, read_documents
from mcad.client.session import Target, environment

Json = dict[str, Any]


_RUNNING = Given()
"""The configuration of the running dispatcher."""


class Changes(Struct, frozen=True):
    """What would be different: the options of the command."""

    named: tuple[str, ...] = ()
    nodes: int | None = None
    like: str | None = None
    left_out: tuple[str, ...] = ()
    quota: tuple[tuple[str, str], ...] = ()
    assignments: tuple[str, ...] = ()


change_options = record(
    "changes",
    Changes,
    filename_option("named", "AppWrappers that are created"),
    click.option("--nodes", metavar="+N", type=click.IntRange(1, 1000), help="Nodes are added."),
    click.option("--like", metavar="NODE", help="The node that the added ones are like."),
    click.option(
        "--without",
        "left_out",
        metavar="NAME",
        multiple=True,
        help="An AppWrapper is gone: NAME or NAMESPACE/NAME; may be repeated.",
    ),
    click.option(
        "--quota",
        nargs=2,
        metavar="TREE/NODE RESOURCE=AMOUNT[,...]",
        multiple=True,
        help="A node of a quota tree has other shares; may be repeated.",
    ),
    click.option(
        "--set",
        "assignments",
        metavar="KEY=VALUE",
        multiple=True,
        help="The dispatcher has another setting; may be repeated.",
    ),
)


@click.command("what-if")
@change_options
@namespace_option
@target_options
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="Another form.")
def what_if(changes: Changes, namespace: str | None, target: Target, form: str | None) -> None:
    """Show what the dispatcher would do if something differed.

    Two copies of the dispatcher get the objects of this moment, one of them with the changes, and
    run their next cycles. What differs is shown: which AppWrappers start or are evicted, and the
    positions and start time estimates of those that wait. Nothing is changed in the cluster.

    The caller must be allowed to list nodes and pods in the whole cluster.
    """
    if changes == Changes():
        raise click.UsageError("say what is different: -f, --nodes, --without, --quota or --set")
    if (changes.nodes is None) != (changes.like is None):
        raise click.UsageError("--nodes and --like go together: --nodes +2 --like NODE")
    documents = [one for path in changes.named for one in read_documents(path)]
    show(asyncio.run(ask(changes, documents, namespace, target)), form)


def show(told: Json, form: str | None) -> None:
    """Print what differs."""
    if form:
        echo_structured(told, form)
    else:
        echo(page(told, environment().clock.now_us()))


async def ask(
    changes: Changes,
    documents: Sequence[Document],
    namespace: str | None,
    target: Target,
    given: Given = _RUNNING,
) -> Json:
    """What differs with these changes, among them AppWrappers that are created. ``given``: the
    configuration of the dispatcher, if it is not that of the running one."""
    from mcad.client.answers.what_if_facts import compare, with_uids  # noqa: PLC0415 - the core takes a while

    async with environment().connect(target) as session:
        own = namespace or session.namespace
        config = await as_dispatched(session.client, load_config(given))
        then = Given(given.config, (*given.assignments, *changes.assignments))
        other = await as_dispatched(session.client, load_config(then))
        created = await with_uids(session, documents, own, other)
        told, notes = await compare(session.client, (config, other), changes, created, own)
        for note in notes:
            warn(note)
        return told
