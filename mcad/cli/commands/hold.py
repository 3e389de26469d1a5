"""``mcad hold`` and ``mcad release``: set ``spec.suspend`` and take it back."""

from __future__ import annotations

from typing import Any

import click

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
from mcad.client.appwrappers.state import has_attempt
from mcad.client.appwrappers.suspension import suspend, why_not_held, why_not_released
from mcad.client.scope import Target
from mcad.kube.client import Client

Json = dict[str, Any]


@click.command()
@choice_options
@verb_options
@target_options
def hold(choice: Choice, options: VerbOptions, target: Target) -> None:
    """Keep AppWrappers from starting until they are released.

    One that is dispatched is ended first: its objects are deleted. It keeps its place: when it is
    released, it queues at its original position.
    """
    apply(Verb("held", _hold), choice, target, options)


@click.command()
@choice_options
@verb_options
@target_options
def release(choice: Choice, options: VerbOptions, target: Target) -> None:
    """Let AppWrappers on hold queue again."""
    apply(Verb("released", _release), choice, target, options)


async def _hold(client: Client, obj: Json, *, dry_run: bool) -> Result:
    if why := why_not_held(obj):
        return same(why)
    await suspend(client, obj, suspended=True, dry_run=dry_run)
    return Result("held; its attempt ends" if has_attempt(obj) else "held")


async def _release(client: Client, obj: Json, *, dry_run: bool) -> Result:
    if why := why_not_released(obj):
        return same(why)
    await suspend(client, obj, suspended=False, dry_run=dry_run)
    return Result("released")
