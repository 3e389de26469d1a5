"""``mcad demo``: the tutorial in steps. Each step announces a result, acts, and checks the result.

``DemoSteps`` is shared with the tour about quota.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from msgspec import Struct

from mcad.cli.arguments.options import Output
from mcad.cli.commands.capacity import TITLES as CAPACITY_TITLES
from mcad.cli.commands.capacity import rows_of
from mcad.cli.demo_cluster.tutorial_objects import FIRST, NAMESPACE, SECOND, appwrapper
from mcad.cli.pages import rows as columns
from mcad.cli.pages.colours import BOLD, Palette
from mcad.cli.pages.tables import table
from mcad.cli.pages.why import page
from mcad.controller.leader_figures import LeaderFigures
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError
from mcad.kube.kinds import APPWRAPPERS, DEPLOYMENTS, OLD_APPWRAPPERS, PODS
from mcad.kube.resource import Resource

Json = dict[str, Any]

EXPECT_S = 15.0  # until an announced result is there
LOOK_S = 0.05  # between two checks


class DemoFailedError(Exception):
    """An announced result did not come."""


class DemoOutput(Struct, frozen=True):
    """How the tour is printed. ``pause_s`` is the time to read a step, 0 for no pause."""

    say: Callable[[str], None]
    palette: Palette
    pause_s: float


class DemoSteps:
    """What every tour needs: announce a result and wait for it."""

    def __init__(self, client: Client, figures: LeaderFigures, output: DemoOutput) -> None:
        self._client = client
        self._figures = figures
        self._output = output

    # -- promises ------------------------------------------------------------------------------

    async def _expect(self, what: str, holds: Callable[[], Awaitable[bool]]) -> None:
        clock = self._client.clock
        until = clock.monotonic() + EXPECT_S
        while not await holds():
            if clock.monotonic() >= until:
                raise DemoFailedError(f"{what}: not after {EXPECT_S:.0f} s")
            await clock.sleep(LOOK_S)

    async def _status(self, name: str) -> Json:
        live = await self._client.get(APPWRAPPERS, NAMESPACE, name)
        status: Json = live.get("status") or {}
        return status

    async def _appwrappers(self) -> Iterable[str]:
        output = Output()
        now_us = self._client.clock.now_us()
        lines = [
            columns.cells(row, output, now_us, namespaces=False)
            for row in await self._figures.rows(_as_it_is, waiting_only=False, with_starts=False)
        ]
        titles = columns.titles(output, namespaces=False)
        return ["$ mcad get", *table(titles, lines, palette=self._output.palette)]

    # -- output --------------------------------------------------------------------------------

    def _step(self, title: str, *explanation: str) -> None:
        self._output.say(self._output.palette.paint(title, BOLD))
        for line in explanation:
            self._output.say(f"     {line}")
        self._output.say("")

    def _lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._output.say(f"    {line}")
        self._output.say("")

    async def _pause(self) -> None:
        if self._output.pause_s:
            await self._client.clock.sleep(self._output.pause_s)


def _as_it_is(row: Json) -> Json:
    return row


class TutorialDemo(DemoSteps):
    """The tutorial in five steps."""

    async def run(self) -> None:
        """Run all steps in order; raises ``DemoFailedError``."""
        await self._show_cluster()
        await self._first_runs()
        await self._second_waits()
        await self._why()
        await self._second_follows()

    # -- steps ---------------------------------------------------------------------------------

    async def _show_cluster(self) -> None:
        self._step(
            "1/5  A cluster, in this process: an API server, a scheduler, controllers, a node",
            "The node has 2 CPUs. Other pods use 1750m of them, so 250m are free.",
        )
        self._lines(await self._capacity())
        await self._pause()

    async def _first_runs(self) -> None:
        self._step(
            f"2/5  Submit {FIRST}",
            "An AppWrapper around a Deployment of 2 pods with 100m each. It fits: the dispatcher",
            "creates the Deployment at once, and the cluster runs its pods.",
        )
        await self._submit(FIRST, "100m")
        await self._expect("two pods of the first AppWrapper run", self._is_running(FIRST))
        self._lines(await self._appwrappers())
        self._lines(await self._pods())
        await self._pause()

    async def _second_waits(self) -> None:
        self._step(
            f"3/5  Submit {SECOND}",
            "2 pods with 75m each: 150m, and 50m are left. Half of it would fit. The dispatcher",
            "creates all of it or nothing, so now it creates nothing: no Deployment, no pod.",
        )
        await self._submit(SECOND, "75m")
        await self._expect("the second AppWrapper waits", self._is_refused)
        await self._check_nothing_of_second()
        self._lines(await self._appwrappers())
        await self._pause()

    async def _why(self) -> None:
        self._step(
            "4/5  Why does it wait?",
            "The last condition in `kubectl describe appwrapper` explains it, with figures:",
        )
        status = await self._status(SECOND)
        for condition in status["conditions"]:
            reason = condition.get("reason", "")
            self._output.say(f"    {condition['type']:<11} {condition['status']:<5} {reason}")
            if condition.get("message"):
                self._output.say(f"    {'':<17} {condition['message']}")
        self._output.say("")
        self._output.say("     And what would start it now? Each answer was tried on a copy:")
        self._output.say("")
        self._lines(await self._would_start())
        await self._pause()

    async def _second_follows(self) -> None:
        self._step(
            f"5/5  Delete {FIRST}",
            "Its Deployment and pods are deleted with it. The waiting AppWrapper starts at once.",
        )
        await self._client.delete(APPWRAPPERS, NAMESPACE, FIRST)
        await self._expect("two pods of the second AppWrapper run", self._is_running(SECOND))
        await self._expect("nothing of the first is left", self._is_gone(FIRST))
        self._lines(await self._appwrappers())
        self._lines(await self._pods())

    # -- promises ---------------------------------------------------------------------------

    def _is_running(self, name: str) -> Callable[[], Awaitable[bool]]:
        async def holds() -> bool:
            phases = [pod["status"].get("phase") for pod in await self._pods_of(name)]
            status = await self._status(name)
            return phases == ["Running"] * 2 and status.get("state") == "Running"

        return holds

    async def _is_refused(self) -> bool:
        conditions = (await self._status(SECOND)).get("conditions") or []
        return [one["type"] for one in conditions if one["status"] == "True"] == [
            "Init",
            "Queueing",
            "HeadOfLine",
            "Backoff",
        ]

    def _is_gone(self, name: str) -> Callable[[], Awaitable[bool]]:
        async def holds() -> bool:
            return not await self._exists(DEPLOYMENTS, name) and not await self._pods_of(name)

        return holds

    async def _check_nothing_of_second(self) -> None:
        if not await self._is_gone(SECOND)():
            raise DemoFailedError("a part of the second AppWrapper was created")

    async def _submit(self, name: str, cpu: str) -> None:
        await self._client.create(OLD_APPWRAPPERS, NAMESPACE, appwrapper(name, cpu))

    # -- looks ------------------------------------------------------------------------------

    async def _exists(self, resource: Resource, name: str) -> bool:
        try:
            await self._client.get(resource, NAMESPACE, name)
        except ApiError as error:
            if error.not_found:
                return False
            raise
        return True

    async def _pods_of(self, name: str) -> list[Json]:
        selection = Selection(namespace=NAMESPACE, label_selector=f"app={name}")
        return (await self._client.list_all(PODS, selection))[0]

    async def _capacity(self) -> Iterable[str]:
        view = json.loads(await self._figures.capacity())
        lines = rows_of("<total>", view["total"])
        printed = table(CAPACITY_TITLES, lines, palette=self._output.palette)
        return ["$ mcad capacity --total", *printed]

    async def _would_start(self) -> Iterable[str]:
        told = await self._figures.why(NAMESPACE, SECOND)
        if not told or not told["wouldStart"]:
            raise DemoFailedError("nothing was found that would start the second AppWrapper")
        return [f"$ mcad why {SECOND}", *page(told, self._output.palette)]

    async def _pods(self) -> Iterable[str]:
        pods, _ = await self._client.list_all(PODS, Selection(namespace=NAMESPACE))
        lines = [(pod["metadata"]["name"], pod["status"].get("phase", "")) for pod in pods]
        printed = table(("NAME", "STATUS"), lines, palette=self._output.palette)
        return ["$ kubectl get pods", *printed]
