"""``mcad drain NODE... --plan``: which pods of AppWrappers a drain moves, and where they fit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from mcad.api.wire import plural
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.names import node_names
from mcad.cli.arguments.options import Output, output_options, settings_options, target_options
from mcad.cli.errors import warn
from mcad.cli.pages.tables import NONE, echo, echo_structured, table
from mcad.client.config import as_dispatched, load_config
from mcad.client.errors import McadError
from mcad.client.figures.progress import working
from mcad.client.scope import Settings, Target
from mcad.core.state.spelling import did_you_mean

if TYPE_CHECKING:
    from mcad.core.answers.node_drain import Drain, Move

Json = dict[str, Any]

TITLES = ("APPWRAPPER", "PODS", "FIT ON", "NO PLACE")


@click.command()
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@click.option("--plan", "is_plan", is_flag=True, help="Show what would move; nothing is changed.")
@output_options("json", "yaml")
@target_options
@settings_options
def drain(
    nodes: tuple[str, ...], *, is_plan: bool, output: Output, target: Target, settings: Settings
) -> None:
    """Show what a drain of nodes would move, and where that fits.

    The AppWrappers go on: their controllers create the pods anew, on other nodes. Pods without a
    place wait for room, and after placementTimeout their AppWrapper is requeued. `kubectl drain`
    does it. The caller must be allowed to list nodes and pods in the whole cluster.
    """
    if not is_plan:
        raise click.UsageError("--plan shows what would move; `kubectl drain` drains")
    found = asyncio.run(_plan(frozenset(node_names(nodes)), target, settings))
    if output.form:
        echo_structured({"moves": [one._asdict() for one in found.moves]}, output.form)
        return
    echo(_page(found, output))


async def _plan(names: frozenset[str], target: Target, settings: Settings) -> Drain:
    from mcad.client.figures.listed import list_facts  # noqa: PLC0415 - the core takes a while
    from mcad.core.answers.node_drain import drain as planned  # noqa: PLC0415
    from mcad.core.events import NodeSeen  # noqa: PLC0415

    async with environment().connect(target, watches=False) as session:
        config = await as_dispatched(session.client, load_config(settings))
        figures, facts = await list_facts(session.client, config)
        for note in figures.notes:
            warn(note)
    known = [one.node.name for one in facts.events if isinstance(one, NodeSeen)]
    for name in sorted(names - set(known)):
        hint = did_you_mean(name, known) or "`mcad capacity` lists the nodes."
        raise McadError(f'there is no node "{name}". {hint}')
    with working("trying where the pods fit"):
        return planned(facts, names)


def _page(found: Drain, output: Output) -> list[str]:
    rows = [(one.appwrapper, str(one.pods), _places(one), _missing(one)) for one in found.moves]
    lines = ["No pods of AppWrappers are there."]
    if rows:
        headers = not output.no_headers
        lines = table(TITLES, rows, headers=headers, palette=output.palette)
    if found.others:
        have = "has" if found.others == 1 else "have"
        lines.append(f"{plural(found.others, 'pod')} there {have} no AppWrapper: not planned.")
    return lines


def _places(move: Move) -> str:
    told = [f"{name} ({count})" for name, count in sorted(move.places.items())]
    if move.bare:
        told.append(f"{plural(move.bare, 'bare pod')}: not created anew")
    return ", ".join(told) or NONE


def _missing(move: Move) -> str:
    return str(move.unplaced) if move.unplaced else NONE
