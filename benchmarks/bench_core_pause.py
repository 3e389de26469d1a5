"""CPU time of a cycle after a DispatchPause has come or gone.

    python -m benchmarks.bench_core_pause [--nodes 1000] [--queued 100000] [--shapes 1000]

The core alone: a full cluster and a long line. A DispatchPause of the whole cluster puts all of the
line on hold and lets it queue again, 1,000 AppWrappers in a cycle; nothing is dispatched meanwhile.

On two busy cores, CPU milliseconds of a cycle, least / middle / most:

    nodes   queued   shapes
     1000   100000     1000    pause     0 /  13 /  56, 109 cycles
                               resume    0 /  16 /  91
"""

from __future__ import annotations

import argparse
import gc

from benchmarks.bench_why import facts
from benchmarks.measuring import cpu_ms, spread
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide, Event, PauseGone, PauseSeen
from mcad.core.state.dispatch_pause import DispatchPause


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--shapes", type=int, default=1000)
    given = parser.parse_args()
    known = facts(given.nodes, given.queued, given.shapes, quota=False, preemption=False)
    dispatcher = Dispatcher(known.settings)
    for event in known.events:
        dispatcher.step(event, known.now)
    for _ in range(50):
        dispatcher.step(Decide(), known.now)
    gc.collect()
    gc.freeze()
    changes: dict[str, Event] = {
        "pause": PauseSeen(DispatchPause("uid-all", "all")),
        "resume": PauseGone("uid-all"),
    }
    pauses = dispatcher.cluster.waiting.dispatch_pauses
    for word, change in changes.items():
        dispatcher.step(change, known.now)
        times = []
        while pauses.pending:
            times.append(cpu_ms(lambda: dispatcher.step(Decide(), known.now)))
        least, middle, most = spread(times)
        print(f"{word}: {len(times)} cycles of {least:.0f} / {middle:.0f} / {most:.0f} ms")


if __name__ == "__main__":
    main()
