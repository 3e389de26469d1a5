"""``mcad cancel``: deletes AppWrappers with everything that was created for them."""

from __future__ import annotations

from typing import Any

import click

from mcad.cli.arguments.choice import Choice, choice_options
from mcad.cli.arguments.options import target_options
from mcad.cli.arguments.verbs import Result, Verb, VerbOptions, apply, same, verb_options
from mcad.client.appwrappers.state import is_deleting
from mcad.client.scope import Target
from mcad.kube.client import Client, DeleteOptions, Propagation
from mcad.kube.kinds import APPWRAPPERS

Json = dict[str, Any]

_CASCADES: dict[str, Propagation] = {"background": "Background", "foreground": "Foreground"}


@click.command()
@choice_options
@click.option(
    "--cascade",
    type=click.Choice(list(_CASCADES)),
    default="background",
    show_default=True,
    help="foreground: the AppWrapper stays, Terminating, until its objects are gone.",
)
@verb_options
@target_options
def cancel(choice: Choice, cascade: str, options: VerbOptions, target: Target) -> None:
    """Delete AppWrappers with all of their objects.

    Like `kubectl delete`. Their room is free when their pods have ended. `mcad wait NAME
    --for=deleted` waits until the AppWrapper is gone; with --cascade=foreground that is when all of
    its objects are gone.
    """

    async def delete(client: Client, obj: Json, *, dry_run: bool) -> Result:
        if is_deleting(obj):
            return same("it is being deleted already")
        metadata = obj["metadata"]
        how = DeleteOptions(metadata["uid"], propagation=_CASCADES[cascade], dry_run=dry_run)
        await client.delete(APPWRAPPERS, metadata["namespace"], metadata["name"], how)
        return Result("deleted")

    apply(Verb("deleted", delete), choice, target, options)
