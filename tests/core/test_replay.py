"""Same events in, same commands out, byte for byte, under any hash seed."""

import os
import random
import subprocess
import sys
from pathlib import Path

from mcad.core.events import NodeSeen
from tests.core.bench import Bench, node, workload

ROOT = Path(__file__).parents[2]


def stream(seed: int) -> str:
    """The commands of a random but seeded run, crashes included."""
    rng = random.Random(seed)
    bench = Bench(nodes=[node(f"n{i}", rng.randint(200, 900)) for i in range(4)])
    lines: list[str] = []
    inner = bench.feed

    def feed(event: object) -> tuple:
        commands = inner(event)  # type: ignore[arg-type]
        lines.extend(map(repr, commands))
        return commands

    bench.feed = feed  # type: ignore[method-assign, assignment]
    for number in range(40):
        sizes = [rng.randint(10, 400) for _ in range(rng.randint(1, 3))]
        bench.submit(workload(f"w{number}", *sizes, priority=rng.randint(0, 2)))
        if rng.random() < 0.3:
            bench.settle()
        if rng.random() < 0.1:
            bench.crash()
        if rng.random() < 0.2:
            bench.feed(NodeSeen(node(f"n{rng.randint(0, 5)}", rng.randint(200, 900))))
        if rng.random() < 0.2 and bench.works:
            bench.delete(rng.choice(sorted(bench.works)))
    bench.settle()
    bench.advance(60)
    return "\n".join(lines)


def test_two_hash_seeds_give_the_same_bytes() -> None:
    code = "from tests.core.test_replay import stream; print(stream(7))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }

    assert len(outputs) == 1
    assert len(next(iter(outputs)).splitlines()) > 100
