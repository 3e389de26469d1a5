"""What the CLI counts for itself never contradicts the dispatcher's own answer, in no state of
contested histories: it says the same, word for word, or leaves it open."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest

from mcad.api.config import Config
from mcad.api.published import ANNOTATION, publish
from mcad.api.wire import format_instant
from mcad.client.config import as_dispatched
from mcad.client.figures.computed import ComputedFigures
from mcad.client.figures.listed import compute_figures
from mcad.client.figures.presence import Presence
from mcad.controller.runtime import Controller
from mcad.controller.views import capacity_view, detail_view, rows_view
from mcad.core.state.waiting_reason import HOLDS, WaitingReason
from mcad.core.views.rows import FITS_AS_STORED, OPEN
from mcad.kube.client import Client
from mcad.kube.errors import ApiError
from mcad.kube.kinds import LEASES
from mcad.sim.serving.server import SimApi
from tests import budget
from tests.faults import world
from tests.faults.histories import contested
from tests.faults.injection import Wire
from tests.faults.scenarios import Scenario

BLOCK = 5
HISTORIES = 20
STATES = 700
OPEN_MAX = 0.02  # of all rows: an answer that leaves everything open contradicts none


@pytest.mark.parametrize("begin", budget.draw(range(0, HISTORIES, BLOCK), 1, "onlookers"))
def test_the_cli_says_what_the_port_says_or_leaves_it_open(begin: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(begin, begin + BLOCK):
        found += ask_both(contested(Random(seed))[1], seed)
    assert found["states"] >= STATES, found
    assert found["states with a reservation"], found
    assert found["rows with something left open"] <= OPEN_MAX * found["rows"], found


def ask_both(scenario: Scenario, seed: int) -> Counter[str]:
    """What was compared in one history."""
    findings = Findings()
    world.run(scenario, build=partial(World, findings))
    assert not findings.contradictions, f"seed {seed}: " + "\n".join(findings.contradictions[:3])
    return findings.told


# -- the comparison of both answers --------------------------------------------------------------


Json = dict[str, Any]

EVERY_S, STILL_S = 8.0, 0.4
DAY_S = 86_400
HELD_BACK = {"", *HOLDS, *(one for one in WaitingReason if one.lets_others_first)}
"""What the leader may say of one that fits by what is stored."""
LEFT_OPEN = ("position", "headOfLine", "demand", "inLine", "ahead")


@dataclass
class Findings:
    """What was compared, and where both said something else."""

    told: Counter[str] = field(default_factory=Counter)
    contradictions: list[str] = field(default_factory=list)


class World(world.World):
    """A run in which both are asked now and then."""

    def __init__(self, findings: Findings, *of_run: Any) -> None:
        super().__init__(*of_run)
        self.findings = findings

    async def _live(self, wire: Wire, number: int) -> None:
        controller, config = self._leader(wire, number), self._scenario.settings(number)
        asking = asyncio.ensure_future(self._ask_now_and_then(controller, config, number))
        try:
            await controller.run(asyncio.Event())
        finally:
            if asking.done() and not asking.cancelled() and (error := asking.exception()):
                self.findings.contradictions.append(repr(error))
            asking.cancel()

    async def _ask_now_and_then(self, controller: Controller, config: Config, number: int) -> None:
        onlooker = Client(SimApi(self._cluster.registry), self.clock, Random(3))
        await _write_lease(onlooker, f"life-{number}", config)
        while True:
            await self.clock.sleep(EVERY_S)
            if controller is self.leading() and controller.watches.is_synced:
                await self._ask(controller, onlooker)

    async def _ask(self, controller: Controller, onlooker: Client) -> None:
        core, clock = controller.dispatcher.cluster, self.clock
        before = rows_view(core, clock.now_us(), waiting_only=False)
        await clock.sleep(STILL_S)
        port = rows_view(core, clock.now_us(), waiting_only=False)
        seen = await compute_figures(onlooker, await as_dispatched(onlooker, Config()))
        if before != port or port != rows_view(core, clock.now_us(), waiting_only=False):
            return
        assert seen.heartbeat.presence is Presence.RUNNING
        self.findings.told["states"] += 1
        self.findings.told["states with a reservation"] += bool(core.reservations)
        rows = await seen.rows(waiting_only=False)
        self._compare_orders(port["items"], rows)
        theirs = {row["uid"]: row for row in port["items"]}
        for row in rows:
            self.findings.told["rows"] += 1
            self._compare(theirs[row["uid"]], row)
        await self._compare_details(controller, seen, rows)
        doubts = seen.cluster.doubts
        assert doubts is not None
        self.findings.told["states with doubts"] += doubts.room or doubts.shares
        if not doubts.room:
            self._equal("capacity", capacity_view(core), await seen.capacity())

    def _compare_orders(self, port: list[Json], rows: list[Json]) -> None:
        if not any(row["position"] is None for row in rows):
            self._equal("order", [row["uid"] for row in port], [row["uid"] for row in rows])
        else:
            self._equal("uids", {row["uid"] for row in port}, {row["uid"] for row in rows})

    def _compare(self, port: Json, row: Json) -> None:
        told, left_open = dict(row), [key for key in LEFT_OPEN if row.get(key, 0) is None]
        told |= {key: port[key] for key in left_open}
        fits = row["why"] == FITS_AS_STORED and port["waitsFor"] in HELD_BACK
        if row["waitsFor"] == OPEN or fits:
            left_open.append("why")
            told |= {key: port[key] for key in ("waitsFor", "why")}
        self.findings.told["rows with something left open"] += left_open not in ([], ["headOfLine"])
        self.findings.told["rows that fit as stored"] += row["why"] == FITS_AS_STORED
        self._equal(f"row of {row['name']}", port, told)

    async def _compare_details(
        self, controller: Controller, seen: ComputedFigures, rows: list[Json]
    ) -> None:
        core, now = controller.dispatcher.cluster, self.clock.now_us()
        for row in rows:
            port = detail_view(core, now, row["namespace"], row["name"])
            mine = await seen.detail(row["namespace"], row["name"])
            assert port is not None
            assert mine is not None
            self.findings.told["pages"] += 1
            for key in port.keys() - row.keys() - _open_on_its_page(mine):
                self._equal(f"{key} of {row['name']}", port[key], mine[key])

    def _equal(self, what: str, port: Any, own: Any) -> None:
        if port != own:
            self.findings.contradictions.append(
                f"at {self.clock.monotonic():.1f} {what}:\n  port {_news(port, own)}"
                f"\n  own  {_news(own, port)}"
            )


def _open_on_its_page(row: Json) -> set[str]:
    """What ``describe`` leaves open besides, where this row does."""
    found = set(LEFT_OPEN)
    if row["waitsFor"] == OPEN:
        found |= {"starts", "figures", "keptOffBy"}
    if row["starts"] is None:
        found |= {"starts"}
    if row["demand"] is None:
        found |= {"podSets", "items"}
    return found


async def _write_lease(client: Client, holder: str, config: Config) -> None:
    """As the holder writes it, for longer than the history lasts: here processes lead unasked."""
    lease = Config().leader_election
    with suppress(ApiError):
        await client.delete(LEASES, lease.namespace, lease.name)
    annotations = {ANNOTATION: publish(config, holder)}
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": DAY_S,
        "renewTime": format_instant(client.clock.now_us()),
    }
    body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "spec": spec}
    body["metadata"] = {"name": lease.name, "annotations": annotations}
    await client.create(LEASES, lease.namespace, body)


def _news(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: value for key, value in one.items() if other.get(key) != value}
    return one
