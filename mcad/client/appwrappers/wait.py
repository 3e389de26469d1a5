"""Waits until AppWrappers have reached a goal, for some time, and prints why they wait."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import click

from mcad.api.config import Config
from mcad.client.appwrappers.state import title
from mcad.client.appwrappers.watch import Awaited, Wait, watches
from mcad.client.errors import TIMED_OUT, CliError, warn
from mcad.client.figures.presence import PRESENCE_POLL_S, read_presence
from mcad.core.state.reasons import some_of
from mcad.kube.client import Client

Json = dict[str, Any]

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class TimedOutError(CliError):
    """--timeout has passed."""

    exit_code = TIMED_OUT


class SecondsType(click.ParamType[float]):
    """``90``, ``90s``, ``5m`` or ``1h`` in seconds."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the duration."""
        if isinstance(value, int | float):
            return float(value)
        match = re.fullmatch(r"([0-9]{1,9})([smh]?)", str(value), re.ASCII)
        if match is None or not int(match[1]):
            self.fail(f"{value!r} is not a duration such as 90s, 5m or 1h", param, ctx)
        return float(int(match[1]) * _UNITS[match[2]])


async def wait_for(client: Client, config: Config, objs: Sequence[Json], wait: Wait) -> bool:
    """Wait for all of these; returns whether all have reached the goal.

    Reasons, failures and the absence of a dispatcher are printed on stderr. Raises
    ``TimedOutError`` after the time of the wait.
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
