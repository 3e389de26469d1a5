"""The garbage collector while the first lists are read.

What they bring stays. The collector would go over all of it again whenever it has grown by a
quarter: 260 ms at a time with 10,000 AppWrappers, and nothing else runs meanwhile.
"""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcad.controller.replica import Replica

FREEZE_S = 0.2

CALM = 20_000
"""New objects between two looks at them, instead of 700: garbage in a cycle is rare in a list."""

AFTERWARDS = 50
"""So often more once everything is listed: the first verdicts come in these seconds and stay, too.
With 10,000 shapes they are worth 40 ms."""


async def freeze_while_listing(replica: Replica) -> None:
    """Keep what is there from the collector until all is listed and judged once, and not longer.

    What comes later may end as garbage in a cycle, which only the collector would find. What is
    frozen is still freed when its last reference goes.
    """
    left = AFTERWARDS
    usual = gc.get_threshold()
    gc.set_threshold(CALM, *usual[1:])
    try:
        while left:
            await asyncio.sleep(FREEZE_S)
            if replica.controller is not None:
                gc.freeze()
                left -= replica.controller.watches.is_synced
    finally:
        gc.set_threshold(*usual)
