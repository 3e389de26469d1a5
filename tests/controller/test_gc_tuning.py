"""What the first lists bring is kept from the garbage collector; what comes later is not."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mcad.controller import gc_tuning
from mcad.controller.gc_tuning import freeze_while_listing


@pytest.fixture(autouse=True)
def frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How often the heap was frozen; it really is not, for the sake of other tests."""
    times: list[int] = []
    monkeypatch.setattr(gc_tuning, "FREEZE_S", 0.0)
    monkeypatch.setattr(gc, "freeze", lambda: times.append(1))
    return times


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_from_the_lead_to_the_first_verdicts_on_all_that_is_listed(frozen: list[int]) -> None:
    replica: Any = SimpleNamespace(controller=None, standby=None)
    usual = gc.get_threshold()
    work = asyncio.ensure_future(freeze_while_listing(replica))
    await turns(10)
    assert frozen == []

    replica.controller = SimpleNamespace(watches=SimpleNamespace(is_synced=False))
    await turns(10)
    assert len(frozen) > 1
    assert gc.get_threshold() == (gc_tuning.CALM, *usual[1:])
    assert not work.done()

    replica.controller.watches.is_synced = True
    await turns(3)
    assert not work.done()
    before = len(frozen)
    await turns(gc_tuning.AFTERWARDS)
    assert work.done()
    assert gc.get_threshold() == usual
    assert before < len(frozen) <= before + gc_tuning.AFTERWARDS


async def test_the_copy_of_a_standby_is_hidden_while_it_is_made(frozen: list[int]) -> None:
    watches = SimpleNamespace(is_copied=False)
    replica: Any = SimpleNamespace(controller=None, standby=SimpleNamespace(watches=watches))
    work = asyncio.ensure_future(freeze_while_listing(replica))
    await turns(10)
    before = len(frozen)
    assert before > 1
    watches.is_copied = True
    await turns(10)
    assert len(frozen) == before + 1
    assert not work.done()
    work.cancel()


async def test_a_copy_that_is_not_complete_for_long_is_hidden_when_it_is(frozen: list[int]) -> None:
    """What becomes garbage until then is the collector's."""
    watches = SimpleNamespace(is_copied=False)
    replica: Any = SimpleNamespace(controller=None, standby=SimpleNamespace(watches=watches))
    work = asyncio.ensure_future(freeze_while_listing(replica))
    await turns(4 * gc_tuning.COPYING)
    assert len(frozen) == gc_tuning.COPYING
    watches.is_copied = True
    await turns(10)
    assert len(frozen) == gc_tuning.COPYING + 1
    work.cancel()
