"""What the first lists bring is kept from the garbage collector; what comes later is not."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from asyncio import sslproto
from collections.abc import Iterator
from ctypes import CDLL
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


async def test_the_copy_of_a_standby_is_hidden_once(frozen: list[int]) -> None:
    watches = SimpleNamespace(is_copied=False)
    replica: Any = SimpleNamespace(controller=None, standby=SimpleNamespace(watches=watches))
    work = asyncio.ensure_future(freeze_while_listing(replica))
    await turns(10)
    assert frozen == []
    watches.is_copied = True
    await turns(10)
    assert len(frozen) == 1
    assert not work.done()
    work.cancel()


_SHOWS = """
import ctypes
from mcad.controller.gc_tuning import return_large_blocks
names = ("arena", "ordblks", "smblks", "hblks", "hblkhd")

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (*names, "a", "b", "c", "d", "e")]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
if {asked}:
    assert return_large_blocks()
block = bytearray(8_000_000)
del block
before = libc.mallinfo2().hblkhd
block = bytearray(8_000_000)
print(libc.mallinfo2().hblkhd - before >= len(block))
"""


@pytest.mark.skipif(not hasattr(CDLL(None), "mallinfo2"), reason="glibc alone has it")
@pytest.mark.parametrize("asked", [True, False])
def test_a_large_block_is_the_systems_again_after_the_first_one_too(asked: bool) -> None:
    """By itself the C library keeps the second one."""
    done = subprocess.run(
        [sys.executable, "-c", _SHOWS.format(asked=asked)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(asked)


def test_the_buffer_of_a_tls_record_is_no_large_block() -> None:
    """asyncio takes one of its size for each record of an answer, and shrinks it to what came."""
    assert sslproto.SSLProtocol.max_size < gc_tuning.LARGE_BYTES // 2


def test_a_c_library_without_that_option_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_tuning.ctypes, "CDLL", lambda _: SimpleNamespace())
    assert not gc_tuning.return_large_blocks()
