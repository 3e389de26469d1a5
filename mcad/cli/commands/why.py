"""``mcad why``: what keeps an AppWrapper, which others hold what it needs, and what would start it
now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import click

from mcad.cli.arguments.completion_candidates import complete_appwrappers
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import form_option, namespace_option
from mcad.cli.arguments.names import ObjectName, in_full, qualified_names
from mcad.cli.arguments.options import color_option, source_options
from mcad.cli.errors import fail_for_missing, warn
from mcad.cli.pages.colours import palette
from mcad.cli.pages.output_forms import FormType, echo_form
from mcad.cli.pages.tables import echo
from mcad.cli.pages.why import page
from mcad.client.figures.figures import Figures
from mcad.client.figures.progress import working
from mcad.client.figures.row import in_namespace
from mcad.client.figures.source import open_figures
from mcad.client.scope import Scope, Source

Json = dict[str, Any]

BETWEEN = ("", "")  # two blank lines between pages, like kubectl


@click.command()
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_appwrappers
)
@namespace_option
@source_options
@form_option(FormType("json", "yaml"))
@click.option("--proof", is_flag=True, help="Show the figures of the nodes, to check by hand.")
@color_option
def why(
    names: tuple[str, ...], namespace: str | None, source: Source, form: str | None, **shown: Any
) -> None:
    """Show why an AppWrapper waits, and what would start it now.

    Every answer was tried on a copy of the dispatcher with what it knows at this moment: with that
    change the AppWrapper is dispatched in the next cycle. No smaller change of that kind suffices.
    Nothing is changed in the cluster. Names may be NS/NAME, as `mcad queue -A -o name` prints them.

    If the dispatcher cannot be asked the reason of the status is shown; without one the exit code
    is 3. AppWrappers of other namespaces are named if you may list the appwrapperreports of all.
    """
    chosen = qualified_names(names)
    if not chosen:
        raise click.UsageError("name an AppWrapper: `mcad queue` lists those that wait")
    found = asyncio.run(_find(chosen, Scope(namespace), source))
    told = [one for one in found.values() if one is not None]
    if form:
        if told:
            echo_form(told[0] if len(chosen) == 1 else {"items": told}, form, told)
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
    spaces: dict[str | None, tuple[Figures, str | None]] = {}
    async with AsyncExitStack() as stack:
        for one in names:
            if one.namespace not in spaces:
                scope = Scope(one.namespace or scope.namespace)
                found = open_figures(environment(), source, scope)
                spaces[one.namespace] = await stack.enter_async_context(found)
        told: dict[ObjectName, Json | None] = {}
        with working("trying what would start it"):
            for one in names:
                figures, own = spaces[one.namespace]
                (title,) = in_full([one], own or "")
                told[title] = await figures.why(title.namespace or "", title.name)
    notes = (note for figures, _ in spaces.values() for note in figures.notes)
    for note in dict.fromkeys(notes):
        warn(note)
    return told
