"""The base of simulated controllers."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from mcad.sim.clock import VirtualClock
from mcad.sim.controllers.base import Controller
from mcad.sim.registry import Registry
from mcad.sim.store import Key
from tests.sim.nodeside import virtually


class _Faulty(Controller):
    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self.seen: list[str] = []

    def reconcile(self, key: Key) -> None:
        self.seen.append(key[1])
        if key[1] == "bad":
            raise ZeroDivisionError


@virtually
async def test_a_fault_is_reported_and_does_not_stop_the_others() -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: reported.append(context["exception"])
    )
    controller = _Faulty(Registry(VirtualClock(), Random(0)))
    for name in ("bad", "good"):
        controller.enqueue(("", name))
    await asyncio.sleep(1)

    assert controller.seen == ["bad", "good"]
    assert [type(one) for one in reported] == [ZeroDivisionError]
