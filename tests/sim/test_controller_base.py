"""The queue that every simulated controller has."""

import asyncio
from random import Random

from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.controllers.base import Controller
from mcad.sim.failures import bad_request
from mcad.sim.registry import Registry


class _Noting(Controller):
    """Notes what it looks at and when; fails as told, by key."""

    def __init__(self, registry, faults):
        super().__init__(registry)
        self.faults = faults
        self.seen = []

    def start(self):
        pass

    def reconcile(self, key):
        self.seen.append((key[1], asyncio.get_running_loop().time()))
        if self.faults.get(key[1]):
            raise self.faults[key[1]].pop()


def _run(faults, *keys, seconds=1.0):
    wrong = []

    async def scenario():
        asyncio.get_running_loop().set_exception_handler(lambda _, what: wrong.append(what))
        controller = _Noting(Registry(VirtualClock(), Random(1)), faults)
        for key in keys:
            controller.enqueue(("", key))
        await asyncio.sleep(seconds)
        controller.stop()
        return controller.seen

    return run_virtually(scenario()), wrong


def test_a_key_that_waits_is_not_enqueued_twice():
    assert _run({}, "a", "b", "a")[0] == [("a", 0.0), ("b", 0.0)]


def test_a_refusal_is_tried_again_later_and_later():
    seen, wrong = _run({"a": [bad_request("no"), bad_request("no")]}, "a", "b")
    assert [(name, round(at, 3)) for name, at in seen] == [
        ("a", 0.0),
        ("b", 0.0),
        ("a", 0.2),
        ("a", 0.6),
    ]
    assert not wrong


def test_a_fault_of_ours_does_not_stop_the_others():
    seen, wrong = _run({"a": [KeyError("ours")]}, "a", "b", "c")
    assert [name for name, _ in seen] == ["a", "b", "c"]
    assert isinstance(wrong[0]["exception"], KeyError)


def test_a_controller_with_a_lag_looks_later_and_in_order():
    async def scenario():
        controller = _Noting(Registry(VirtualClock(), Random(1)), {})
        controller.lag_s = 2.0
        controller.enqueue(("", "a"))
        await asyncio.sleep(1)
        controller.enqueue(("", "b"))
        controller.enqueue(("", "a"))
        await asyncio.sleep(1.5)
        controller.stop()
        await asyncio.sleep(5)
        return controller.seen

    assert run_virtually(scenario()) == [("a", 2.0)]
