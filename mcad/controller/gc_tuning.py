"""Tunes the garbage collector while the first lists are read.

Objects of the first lists stay. The collector would scan all of them again whenever their number
has grown by a quarter: 260 ms at a time with 10,000 AppWrappers, and nothing else runs meanwhile.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
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

COPYING = 300
"""Freezes while a standby makes its copy: a minute. It may never be complete, and what becomes
cyclic garbage meanwhile would stay."""


async def freeze_while_listing(replica: Replica) -> None:
    """Hide existing objects from the collector until everything is listed and judged once, not
    longer.

    Later objects may become cyclic garbage, which only the collector finds. A frozen object is
    still freed when its last reference goes. The copy of a standby is hidden while it is made, and
    once it is complete.
    """
    left, copying = AFTERWARDS, COPYING
    is_copied = False
    usual = gc.get_threshold()
    gc.set_threshold(CALM, *usual[1:])
    try:
        while left:
            await asyncio.sleep(FREEZE_S)
            if replica.controller is not None:
                gc.freeze()
                left -= replica.controller.watches.is_synced
            elif replica.standby is not None and not is_copied:
                is_copied = replica.standby.watches.is_copied
                if is_copied or copying:
                    gc.freeze()
                    copying -= 1
    finally:
        gc.set_threshold(*usual)


@contextmanager
def not_collected() -> Iterator[None]:
    """No collection while a copy of the dispatcher is made: each would scan all of it, with 10,000
    AppWrappers for half a second in which nothing else runs."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
