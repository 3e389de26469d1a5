"""Waits until AppWrappers have reached a goal, for some time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from mcad.api.config import Config
from mcad.client.appwrappers.state import title
from mcad.client.appwrappers.watch import Awaited, Wait, watches
from mcad.client.errors import TimedOutError, warn
from mcad.client.figures.presence import PRESENCE_POLL_S, read_presence
from mcad.core.state.reasons import some_of
from mcad.kube.client import Client

Json = dict[str, Any]


async def wait_for(client: Client, config: Config, objs: Sequence[Json], wait: Wait) -> bool:
    """Wait for all of these; returns whether all have reached the goal.

    Warns when no dispatcher is running. Raises ``TimedOutError`` after the time of the wait.
    """
    awaited = [Awaited(obj, wait) for obj in objs]
    tasks = [asyncio.ensure_future(one.run(client)) for one in watches(awaited, wait.goal)]
    tasks.append(asyncio.ensure_future(_warn_of_absence(client, config)))
    ends = asyncio.gather(*(one.end for one in awaited))
    try:
        async with asyncio.timeout(wait.timeout_s):
            return all(await _first_failure(ends, tasks))
    except TimeoutError:
        late = some_of([title(one.obj) for one in awaited if not one.end.done()])
        goal, seconds = wait.goal, f"{wait.timeout_s:g} s"
        raise TimedOutError(f"not {goal.done} within {seconds}: {late}; {goal.hint}") from None
    finally:
        ends.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(ends, *tasks, return_exceptions=True)


async def _warn_of_absence(client: Client, config: Config) -> None:
    """Warn each time the dispatcher begins to be absent."""
    printed: tuple[str, ...] = ()
    while True:
        notes = (await read_presence(client, config)).notes
        for note in notes:
            if note not in printed:
                warn(note)
        printed = notes
        await client.clock.sleep(PRESENCE_POLL_S)


async def _first_failure(
    ends: asyncio.Future[list[bool]], tasks: Sequence[asyncio.Task[Any]]
) -> list[bool]:
    """Await the ends; raises the exception of a failed task, so that a bug is no endless wait."""
    await asyncio.wait([ends, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if task.done():
            task.result()
    return await ends
