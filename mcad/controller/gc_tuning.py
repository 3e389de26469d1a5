"""Tunes the garbage collector while the first lists are read, and what becomes of freed memory.

Objects of the first lists stay. The collector would scan all of them again whenever their number
has grown by a quarter: 260 ms at a time with 10,000 AppWrappers, and nothing else runs meanwhile.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcad.controller.replica import Replica

FREEZE_S = 0.2

CALM = 20_000
"""New objects between two collections, instead of 700: cyclic garbage is rare while lists are
read."""

AFTERWARDS = 50
"""Further freezes after everything is listed: the first verdicts are made in these seconds and
stay, too. With 10,000 shapes this saves 40 ms."""

M_MMAP_THRESHOLD = -3  # of glibc's malloc.h
LARGE_BYTES = 1024 * 1024
"""Well above the buffers of 256 KiB that asyncio takes for each TLS record of 16 KiB: the system
would be asked for each of them, 20,000 times in a start."""


def return_large_blocks() -> bool:
    """Have large blocks returned to the system when they are freed; whether the C library can.

    Pages of lists have megabytes. glibc does so only up to the size of the largest block that was
    freed before, which made 35 MB of a start at 50,000 pods.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BYTES))
    except (AttributeError, OSError):
        return False


async def freeze_while_listing(replica: Replica) -> None:
    """Hide existing objects from the collector until everything is listed and judged once, not
    longer.

    Later objects may become cyclic garbage, which only the collector finds. A frozen object is
    still freed when its last reference goes. The copy of a standby is hidden once it is complete.
    """
    left, is_copied = AFTERWARDS, False
    usual = gc.get_threshold()
    gc.set_threshold(CALM, *usual[1:])
    try:
        while left:
            await asyncio.sleep(FREEZE_S)
            if replica.controller is not None:
                gc.freeze()
                left -= replica.controller.watches.is_synced
            elif replica.standby is not None and replica.standby.watches.is_copied > is_copied:
                is_copied = True
                gc.freeze()
    finally:
        gc.set_threshold(*usual)
