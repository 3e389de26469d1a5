"""``mcad submit --wait``: waits until AppWrappers are dispatched, and prints why they wait."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from mcad.api.config import Config
from mcad.api.wire import as_list, as_map, as_text
from mcad.cli.errors import TIMED_OUT, CliError, one_line, warn
from mcad.cli.presence import PRESENCE_POLL_S, read_presence
from mcad.core.state.reasons import ConditionType, State
from mcad.kube.client import Client, Selection
from mcad.kube.document import Document
from mcad.kube.errors import KubeError
from mcad.kube.kinds import APPWRAPPERS
from mcad.kube.reflector import Reflector

Json = dict[str, Any]

DISPATCHED = (State.RUNNING, State.RUNNING_HOLD_COMPLETION, State.COMPLETED)

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


async def wait_until_dispatched(
    client: Client,
    config: Config,
    made: Sequence[Json],
    timeout_s: float | None,
    report: Callable[[Json], None],
) -> bool:
    """Wait for all of these; returns whether all were dispatched.

    ``report`` is called with each dispatched one. Reasons, failures and the absence of a dispatcher
    are printed on stderr. Raises ``TimedOutError`` after ``timeout_s``.
    """
    watches = [_Watch(obj, report) for obj in made]
    tasks = [asyncio.ensure_future(one.run(client)) for one in watches]
    tasks.append(asyncio.ensure_future(_warn_of_absence(client, config)))
    ends = asyncio.gather(*(one.end for one in watches))
    try:
        async with asyncio.timeout(timeout_s):
            return all(await _first_failure(ends, tasks))
    except TimeoutError:
        late = [one.title for one in watches if not one.end.done()]
        names = ", ".join(late[:3]) + (f" and {len(late) - 3} more" if len(late) > 3 else "")
        raise TimedOutError(
            f"not dispatched within {timeout_s:g} s: {names}; still queued, see `mcad queue`"
        ) from None
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


class _Watch:
    """The sink of the reflector of one AppWrapper; ``end`` is whether it was dispatched."""

    def __init__(self, obj: Json, report: Callable[[Json], None]) -> None:
        metadata = obj["metadata"]
        self.title = f"{metadata['namespace']}/{metadata['name']}"
        self.end: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._obj = obj
        self._uid = metadata["uid"]
        self._report = report
        self._why = ""
        self._seen = False

    async def run(self, client: Client) -> None:
        metadata = self._obj["metadata"]
        chosen = f"metadata.name={metadata['name']}"
        selection = Selection(metadata["namespace"], field_selector=chosen)
        await Reflector(client, APPWRAPPERS, self, Document.json, selection).run()

    def listing(self) -> None:
        """Ignored."""

    def upserted(self, obj: Json) -> None:
        if self.end.done() or obj["metadata"]["uid"] != self._uid:
            return
        self._seen = True
        status = as_map(obj.get("status"))
        state = as_text(status.get("state"))
        if state in DISPATCHED:
            self._report(self._obj)
            self.end.set_result(True)
        elif state == State.FAILED:
            self._fail(f"has failed{_message(status, ConditionType.FAILED, ': ')}")
        else:
            self._explain(_message(status, ConditionType.BACKOFF))

    def gone(self, uid: str, namespace: str, name: str, last: Json | None) -> None:  # noqa: ARG002
        if uid == self._uid and not self.end.done():
            self._fail("was deleted before it was dispatched")

    def synced(self, *, relist: bool) -> None:  # noqa: ARG002
        if not self._seen and not self.end.done():
            self._fail("was deleted before it was dispatched")

    def alive(self, at: float) -> None:
        """Ignored."""

    def failing(self, error: KubeError) -> None:
        self._explain(f"no news from the API server: {error}")

    def _explain(self, why: str) -> None:
        """Print why it waits if the reason has changed."""
        if why and why != self._why:
            click.echo(f"{self.title} waits: {one_line(why)}", err=True)
        self._why = why or self._why

    def _fail(self, how: str) -> None:
        CliError(f"{self.title} {how}; see `mcad describe`").show()
        self.end.set_result(False)


def _message(status: Json, kind: ConditionType, before: str = "") -> str:
    for condition in map(as_map, as_list(status.get("conditions"))):
        if condition.get("type") == kind and condition.get("status") == "True":
            message = as_text(condition.get("message")) or as_text(condition.get("reason"))
            return before + message if message else ""
    return ""
