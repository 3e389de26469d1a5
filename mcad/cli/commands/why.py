"""``mcad why``: what keeps an AppWrapper, which others hold what it needs, and what would start it
now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from mcad.cli.arguments.completion_candidates import complete_appwrappers
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.names import ObjectName, in_full, qualified_names
from mcad.cli.arguments.options import color_option, computed_source_options, namespace_option
from mcad.cli.errors import fail_for_missing, warn
from mcad.cli.pages.colours import palette
from mcad.cli.pages.tables import echo, echo_structured
from mcad.cli.pages.why import page
from mcad.client.figures.progress import working
from mcad.client.figures.row import in_namespace
from mcad.client.scope import Scope, Source

Json = dict[str, Any]

BETWEEN = ("", "")  # two blank lines between pages, like kubectl


@click.command()
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_appwrappers
)
@namespace_option
@computed_source_options
@click.option(
    "-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="The form of the output."
)
@click.option("--proof", is_flag=True, help="Show the figures of the nodes, to check by hand.")
@color_option
def why(
    names: tuple[str, ...], namespace: str | None, source: Source, form: str | None, **shown: Any
) -> None:
    """Show why an AppWrapper waits, and what would start it now.

    Every answer was tried on a copy of the dispatcher with the objects of this moment: with that
    change the AppWrapper is dispatched in the next cycle. No smaller change of that kind suffices.
    Nothing is changed in the cluster. Names may be NS/NAME, as `mcad queue -A -o name` prints them.

    To find what would start it you need the right to list nodes and pods in the whole cluster;
    without it only the reason is shown.
    """
    chosen = qualified_names(names)
    if not chosen:
        raise click.UsageError("name an AppWrapper: `mcad queue` lists those that wait")
    found = asyncio.run(_find(chosen, Scope(namespace), source))
    told = [one for one in found.values() if one is not None]
    if form:
        if told:
            echo_structured(told[0] if len(chosen) == 1 else {"items": told}, form)
    else:
        for number, one in enumerate(told):
            lines = page(one, palette(shown["color"]), with_proof=shown["proof"])
            echo([*BETWEEN * (number > 0), *lines])
    missing = [f'"{one.name}"{in_namespace(one.namespace)}' for one in found if found[one] is None]
    fail_for_missing(missing, "no AppWrapper {}; see `mcad get -A`")


async def _find(
    names: Sequence[ObjectName], scope: Scope, source: Source
) -> dict[ObjectName, Json | None]:
    """The answers, None for an AppWrapper that does not exist."""
    from mcad.client.answers.why import Answers  # noqa: PLC0415 - the core takes a while to import

    async with environment().connect(source.target, watches=False) as session:
        own = scope.choose(session.namespace) or ""
        chosen = in_full(names, own)
        spaces = {one.namespace for one in chosen}
        answers = await Answers.read(session, source, spaces.pop() if len(spaces) == 1 else None)
        for note in answers.notes:
            warn(note)
        with working("trying what would start it"):
            return {one: await answers.why(one.namespace or "", one.name) for one in chosen}
