"""The queue is as deep as it says from the first moment on, and stays so."""

from __future__ import annotations

from random import Random

from benchmarks.builders import machines
from benchmarks.deep_queue import SETTINGS, Measured, jobs
from benchmarks.gangs import CPUS, GPU, GPUS, drawn
from benchmarks.replay import Replay

NODES, DEPTH = 10, 8


def test_the_cluster_is_full_and_as_many_wait_as_were_asked_for() -> None:
    rng = Random(2)
    planned = jobs([drawn("ray", rng) for _ in range(60)], NODES * GPUS, DEPTH, rng)
    measured = Measured(SETTINGS)
    replay = Replay(planned, machines(NODES, CPUS, **{GPU: GPUS}), brain=measured).run(0)
    waiting = len(measured.dispatcher.cluster.waiting.queue)
    assert DEPTH <= waiting <= DEPTH + 6  # what is left of the GPUs is too little for some
    assert measured.spent_s > 0
    measured.begin()
    replay.run(planned[-1].at)
    replay.check()
    assert min(measured.depths) > 0
    assert sum(life.dispatches for life in replay.lives.values()) > DEPTH
