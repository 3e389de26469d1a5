"""``mcad requeue``: ends the attempt of AppWrappers, which queue again at their original position.

It is a hold and a release. In between, the dispatcher has to record that the attempt ends: without
that it might see only the release, and do nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click

from mcad.api.config import Config
from mcad.cli.arguments.choice import Choice, choice_options
from mcad.cli.arguments.duration import SecondsType
from mcad.cli.arguments.options import settings_options, target_options
from mcad.cli.arguments.verbs import (
    Result,
    Verb,
    VerbOptions,
    apply,
    same,
    verb_options,
)
from mcad.cli.errors import warn
from mcad.cli.live.waiting import printed_wait
from mcad.client.appwrappers.state import has_attempt, is_held, title, why_over
from mcad.client.appwrappers.suspension import patch_spec
from mcad.client.appwrappers.wait import wait_for
from mcad.client.appwrappers.watch import Goal, Verdict
from mcad.client.config import load_config
from mcad.client.errors import McadError, TimedOutError
from mcad.client.figures.presence import read_presence
from mcad.client.scope import Settings, Target
from mcad.kube.client import Client
from mcad.kube.errors import KubeError

Json = dict[str, Any]

TIMEOUT_S = 60.0


@click.command()
@choice_options
@click.option(
    "--timeout",
    "timeout_s",
    type=SecondsType(),
    default=TIMEOUT_S,
    help="How long the dispatcher may take to end the attempt; default: 60s.",
)
@verb_options
@target_options
@settings_options
def requeue(
    choice: Choice, timeout_s: float, options: VerbOptions, target: Target, settings: Settings
) -> None:
    """End AppWrappers that are dispatched; they queue again.

    They have their original position; their objects are deleted. It is a hold and a release, as
    soon as the dispatcher has recorded the end: if all pods are gone even sooner, the room may go
    to an AppWrapper behind. If this is interrupted, they are on hold, and `mcad release` lets them
    queue.
    """
    config, named = load_config(settings), bool(choice.names or choice.paths)

    async def act(client: Client, obj: Json, *, dry_run: bool) -> Result:
        if (why := why_over(obj)) and named:
            raise McadError(f"{title(obj)} cannot be requeued: {why}; create another one")
        if why := why or _in_vain(obj):
            return same(why)
        await _check_dispatcher(client, config)
        if dry_run:
            await patch_spec(client, obj, {"suspend": True}, dry_run=True)
        else:
            await _hold(client, obj)
            async with _held(obj):
                await _until_ended(client, config, obj, timeout_s)
                await patch_spec(client, obj, {"suspend": False}, dry_run=False)
        return Result("requeued")

    apply(Verb("requeued", act, watches=not options.dry_run), choice, target, options)


def _in_vain(obj: Json) -> str:
    """Why there is nothing to end, "" if there is."""
    if is_held(obj):
        return "it is on hold; `mcad release` lets it queue"
    return "" if has_attempt(obj) else "it is not dispatched"


async def _check_dispatcher(client: Client, config: Config) -> None:
    """Raise ``McadError`` if no dispatcher runs: nothing is changed then."""
    for note in (await read_presence(client, config)).notes:
        raise McadError(f"{note}; nothing was changed")


async def _until_ended(client: Client, config: Config, obj: Json, timeout_s: float) -> None:
    """Wait until the record says that the attempt ends and is followed by no other."""

    def judge(seen: Json, _: int) -> Verdict | None:
        return None if has_attempt(seen) else Verdict(reached=True)

    goal = Goal("ended", judge, Verdict(reached=True), explains=False)
    await wait_for(client, config, [obj], printed_wait(goal, lambda _: None, timeout_s))


async def _hold(client: Client, obj: Json) -> None:
    """Put it on hold. An interruption waits for the answer, because the request may be carried out
    all the same."""
    request = asyncio.ensure_future(patch_spec(client, obj, {"suspend": True}, dry_run=False))
    try:
        await asyncio.shield(request)
    except asyncio.CancelledError:
        await request
        warn(_advice(obj))
        raise


@asynccontextmanager
async def _held(obj: Json) -> AsyncIterator[None]:
    """Whatever ends the block early says how the AppWrapper is let go again."""
    try:
        yield
    except (asyncio.CancelledError, KubeError):
        warn(_advice(obj))
        raise
    except TimedOutError as error:
        raise TimedOutError(f"{error.message.partition(';')[0]}; {_advice(obj)}") from None


def _advice(obj: Json) -> str:
    return f"{title(obj)} is on hold: `mcad release {title(obj)}` lets it queue"
