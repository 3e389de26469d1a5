"""Same events in, same commands out, byte for byte, under any hash seed."""

import os
import random
import subprocess
import sys
from pathlib import Path

from tests.core.bench import Bench, node, random_life

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
    for _ in random_life(bench, rng, 40):
        pass
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
