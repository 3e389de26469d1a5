"""``mcad wait``: waits until AppWrappers are dispatched, running, completed, failed or deleted."""

from __future__ import annotations

import asyncio

import click
from msgspec import Struct

from mcad.api.labels import PREFIX
from mcad.cli.arguments.choice import Choice, choice_options, choose, read_names
from mcad.cli.arguments.duration import SecondsType
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.names import ObjectName
from mcad.cli.arguments.one_appwrapper import absent
from mcad.cli.arguments.options import record, settings_options, target_options
from mcad.cli.errors import FAILED, NOT_FOUND, show
from mcad.cli.live.waiting import printed_wait
from mcad.client.appwrappers.goals import GOALS
from mcad.client.appwrappers.state import reference
from mcad.client.appwrappers.wait import wait_for
from mcad.client.config import load_config
from mcad.client.errors import NotFoundError
from mcad.client.figures.row import in_namespace
from mcad.client.scope import Settings, Target


class WaitOptions(Struct, frozen=True):
    """--for and --timeout."""

    goal: str
    timeout_s: float | None = None


wait_options = record(
    "options",
    WaitOptions,
    click.option(
        "--for", "goal", type=click.Choice(list(GOALS)), required=True, help="What to wait for."
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=SecondsType(),
        help="Give up after this time (90s, 5m, 1h), with exit code 124; default: never.",
    ),
)


@click.command()
@choice_options
@wait_options
@target_options
@settings_options
def wait(choice: Choice, options: WaitOptions, target: Target, settings: Settings) -> None:
    """Wait until AppWrappers are dispatched, running or at their end.

    Running: all of their pods run or have succeeded. Exit code 0 if all have come so far, 1 if one
    never will: it has failed while completed was awaited, say. Why they wait is printed on stderr.
    """
    asyncio.run(_wait(choice, read_names(choice), options, target, settings))


async def _wait(
    choice: Choice,
    names: tuple[ObjectName, ...],
    options: WaitOptions,
    target: Target,
    settings: Settings,
) -> None:
    config, goal = load_config(settings), options.goal
    async with environment().connect(target) as session:
        chosen = await choose(session, choice, names)
        if not chosen.objs and not chosen.missing and goal != "deleted":
            where = None if choice.all_namespaces else choice.namespace or session.namespace
            raise NotFoundError(f"no AppWrappers found{in_namespace(where)}; see `mcad get -A`")
        if chosen.missing and goal != "deleted":
            for one in chosen.missing:
                show(absent(one))
            raise click.exceptions.Exit(NOT_FOUND)
        for one in chosen.missing:
            click.echo(f"{PREFIX}{one.name} {goal}")
        wait = printed_wait(
            GOALS[goal], lambda obj: click.echo(f"{reference(obj)} {goal}"), options.timeout_s
        )
        well = await wait_for(session.client, config, chosen.objs, wait)
    if not well:
        raise click.exceptions.Exit(FAILED)
