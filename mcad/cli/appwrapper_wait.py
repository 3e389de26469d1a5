"""Waits until AppWrappers have reached a goal, by a watch, and prints why they wait."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
from msgspec import Struct

from mcad.api.config import Config
from mcad.cli.appwrapper_state import is_held, message, title
from mcad.cli.errors import TIMED_OUT, CliError, one_line, warn
from mcad.cli.presence import PRESENCE_POLL_S, read_presence
from mcad.core.state.reasons import ConditionType, some_of
from mcad.kube.client import Client, Selection
from mcad.kube.document import Document
from mcad.kube.errors import KubeError
from mcad.kube.kinds import APPWRAPPERS
from mcad.kube.reflector import Reflector

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


class Verdict(Struct, frozen=True):
    """Whether the goal is reached; if it never will be, ``why``: ``has failed``."""

    reached: bool
    why: str = ""


class Goal(Struct, frozen=True):
    """What is awaited; ``done`` is its word: ``dispatched``.

    ``judge`` returns None as long as neither is certain; ``gone`` is the verdict on an AppWrapper
    that does not exist any more. ``hint`` ends the message of a timeout. ``explains``: the reasons
    why an AppWrapper waits are printed meanwhile.
    """

    done: str
    judge: Callable[[Json], Verdict | None]
    gone: Verdict
    hint: str = "see `mcad describe`"
    explains: bool = True


class Wait(Struct, frozen=True):
    """What is awaited and for how long; ``report`` is called with each that has reached it."""

    goal: Goal
    report: Callable[[Json], None]
    timeout_s: float | None = None


async def wait_for(client: Client, config: Config, objs: Sequence[Json], wait: Wait) -> bool:
    """Wait for all of these; returns whether all have reached the goal.

    Reasons, failures and the absence of a dispatcher are printed on stderr. Raises
    ``TimedOutError`` after the time of the wait.
    """
    awaited = [Awaited(obj, wait) for obj in objs]
    tasks = [asyncio.ensure_future(one.run(client)) for one in _watches(awaited)]
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


class Awaited:
    """One AppWrapper; ``end`` is whether it has reached its goal."""

    def __init__(self, obj: Json, wait: Wait) -> None:
        self.obj = obj
        self.end: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._goal = wait.goal
        self._report = wait.report
        self._why = ""

    def seen(self, obj: Json) -> None:
        """It is like that now."""
        if self.end.done():
            return
        verdict = self._goal.judge(obj)
        if verdict is not None:
            self._decide(verdict)
        elif self._goal.explains:
            self.explain("it is on hold" if is_held(obj) else message(obj, ConditionType.BACKOFF))

    def gone(self) -> None:
        """It does not exist any more."""
        if not self.end.done():
            self._decide(self._goal.gone)

    def explain(self, why: str) -> None:
        """Print why it waits if the reason has changed."""
        if why and why != self._why and not self.end.done():
            click.echo(f"{title(self.obj)} waits: {one_line(why)}", err=True)
        self._why = why or self._why

    def _decide(self, verdict: Verdict) -> None:
        if verdict.reached:
            self._report(self.obj)
        else:
            CliError(f"{title(self.obj)} {verdict.why}; see `mcad describe`").show()
        self.end.set_result(verdict.reached)


def _watches(awaited: Sequence[Awaited]) -> Iterable[_Watch]:
    """One watch per namespace: of a single AppWrapper where only one is awaited."""
    by_namespace: dict[str, list[Awaited]] = {}
    for one in awaited:
        by_namespace.setdefault(one.obj["metadata"]["namespace"], []).append(one)
    for namespace, those in by_namespace.items():
        name = those[0].obj["metadata"]["name"]
        fields = f"metadata.name={name}" if len(those) == 1 else ""
        yield _Watch(Selection(namespace, field_selector=fields), those)


class _Watch:
    """The sink of the reflector of some AppWrappers of one namespace."""

    def __init__(self, selection: Selection, awaited: Sequence[Awaited]) -> None:
        self._selection = selection
        self._awaited = {str(one.obj["metadata"]["uid"]): one for one in awaited}
        self._unseen = set(self._awaited)

    async def run(self, client: Client) -> None:
        await Reflector(client, APPWRAPPERS, self, Document.json, self._selection).run()

    def listing(self) -> None:
        """Ignored."""

    def upserted(self, obj: Json) -> None:
        uid = obj["metadata"]["uid"]
        if uid in self._awaited:
            self._unseen.discard(uid)
            self._awaited[uid].seen(obj)

    def gone(self, uid: str, namespace: str, name: str, last: Json | None) -> None:  # noqa: ARG002
        if uid in self._awaited:
            self._awaited[uid].gone()

    def synced(self, *, relist: bool) -> None:  # noqa: ARG002
        for uid in self._unseen:
            self._awaited[uid].gone()

    def alive(self, at: float) -> None:
        """Ignored."""

    def failing(self, error: KubeError) -> None:
        for one in self._awaited.values():
            one.explain(f"no news from the API server: {error}")
