"""``mcad priority``: sets ``spec.priority``, which both dialects have."""

from __future__ import annotations

from typing import Any

import click

from mcad.api.wire import as_map
from mcad.cli.arguments.choice import Choice, choice_options
from mcad.cli.arguments.options import target_options
from mcad.cli.arguments.verbs import (
    Result,
    Verb,
    VerbOptions,
    apply,
    same,
    verb_options,
)
from mcad.client.appwrappers.state import why_over
from mcad.client.appwrappers.suspension import patch_spec
from mcad.client.scope import Target
from mcad.core.state.model import MAX_PRIORITY
from mcad.kube.client import Client

Json = dict[str, Any]


# A negative number looks like an option; an unknown option is then refused below.
@click.command(context_settings={"ignore_unknown_options": True})
@choice_options
@click.argument("priority", metavar="N", type=click.IntRange(-MAX_PRIORITY, MAX_PRIORITY))
@verb_options
@target_options
def priority(choice: Choice, priority: int, options: VerbOptions, target: Target) -> None:
    """Set the priority of AppWrappers; higher goes first.

    N orders the queue, and decides which AppWrapper may evict which. The pods keep their own
    priority.
    """
    for name in choice.names:
        if name.startswith("-"):
            raise click.NoSuchOption(name)

    async def change(client: Client, obj: Json, *, dry_run: bool) -> Result:
        if why := why_over(obj):
            return same(why)
        if as_map(obj.get("spec")).get("priority") == priority:
            return same(f"its priority is {priority} already")
        await patch_spec(client, obj, {"priority": priority}, dry_run=dry_run)
        return Result(f"set to priority {priority}")

    apply(Verb(f"set to priority {priority}", change), choice, target, options)
