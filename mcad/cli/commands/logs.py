"""``mcad logs``: the logs of the pods of an AppWrapper, one after the other or as they come."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import namespace_option
from mcad.cli.arguments.one_appwrapper import one_option, read_one
from mcad.cli.arguments.options import record, target_options
from mcad.cli.errors import FAILED, INTERRUPTED
from mcad.cli.live.log_reader import LogOptions, LogReader
from mcad.cli.live.pod_follower import follow
from mcad.cli.live.watch_printer import until_reader_leaves
from mcad.client.appwrappers.owned_objects import item_of, owned_objects
from mcad.client.errors import McadError
from mcad.client.scope import Target

Json = dict[str, Any]

log_options = record(
    "options",
    LogOptions,
    click.option("-f", "--follow", is_flag=True, help="Print lines as they come."),
    click.option("--item", type=click.IntRange(0), metavar="N", help="Only pods of this item."),
    click.option("--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines each."),
    click.option(
        "-c", "--container", metavar="NAME", help="The container; default: the first one."
    ),
)


@click.command()
@one_option
@log_options
@namespace_option
@target_options
def logs(name: str, options: LogOptions, namespace: str | None, target: Target) -> None:
    """Print the logs of the pods of an AppWrapper.

    If there is more than one pod, each line begins with its pod and container. Pods that have not
    started are named on stderr. `mcad describe` shows the numbers of items. With -f, pods that
    start later are followed as well, until all of them have ended.
    """
    try:
        well = asyncio.run(until_reader_leaves(_logs(name, namespace, target, options)))
    except KeyboardInterrupt:
        if not options.follow:
            raise
        raise click.exceptions.Exit(INTERRUPTED) from None
    if not well:
        raise click.exceptions.Exit(FAILED)


async def _logs(name: str, namespace: str | None, target: Target, options: LogOptions) -> bool:
    async with environment().connect(target, watches=options.follow) as session:
        client, obj = session.client, await read_one(session, name, namespace)
        pods = (await owned_objects(client, obj)).pods
        pods = [pod for pod in pods if options.item in (None, item_of(pod))]
        if not pods:
            item = "" if options.item is None else f"item {options.item} of "
            what = f"{item}{obj['metadata']['namespace']}/{obj['metadata']['name']}"
            raise McadError(f"{what} has no pods; see `mcad describe`")
        reader = LogReader(client, options, prefixed=len(pods) > 1)
        if options.follow:
            return await follow(client, obj, reader, pods, options.item)
        for pod in pods:
            await reader.read(pod)
        return reader.well
