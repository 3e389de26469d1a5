"""The same history gives the same answers, byte for byte, under any hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

from mcad.core.capacity import Capacity
from mcad.core.state.model import Pod, PodPhase, PodSet
from mcad.core.state.settings import Fit, Settings
from tests.core.builders import (
    GPU,
    expire,
    node,
    on,
    pods,
    report_of,
    taint,
    tolerates,
    waiting,
    wants,
)

ROOT = Path(__file__).parents[3]
STEPS = 400


def history(seed: int, fit: Fit) -> list[str]:
    """What a random history answers, line by line."""
    rnd, capacity = Random(seed), Capacity(Settings(fit=fit))
    told: list[str] = []
    for step in range(STEPS):
        _one_step(rnd, capacity, step)
        capacity.place_unplaced()
        sets = _gang(rnd)
        shape = waiting(capacity, *sets)
        uid = f"w{step}"
        woken = len(capacity.take_requeued())
        told.append(f"{capacity.refusal(shape)} {woken} {capacity.demand(shape)}")
        told.append(f"{capacity.would_fit_emptied(shape)}")
        if rnd.random() < 0.5:
            told.append(f"{capacity.assume(uid, 1, shape, sets)} {capacity.outstanding(uid)}")
        elif rnd.random() < 0.2:
            capacity.adopt(uid, 1, shape, sets)
        told.append(f"{report_of(capacity)}")
    capacity.check()
    return told


def _one_step(rnd: Random, capacity: Capacity, step: int) -> None:
    name = f"n{rnd.randrange(12)}"
    match rnd.choice(["node", "gone", "pod", "pod", "pod", "end", "release", "want", "expire"]):
        case "node":
            labels = {"zone": rnd.choice("ab"), "kind": rnd.choice("xyz")}
            taints = [taint("team")] if rnd.random() < 0.2 else []
            size = str(rnd.randrange(2, 16))
            capacity.node_seen(node(name, size, gpu=rnd.randrange(3), labels=labels, taints=taints))
        case "gone":
            capacity.node_gone(name)
        case "pod":
            owner = f"w{rnd.randrange(step + 1)}"
            request = wants(str(rnd.randrange(3)), gpu=rnd.randrange(2))
            pod = Pod(f"p{step}", "", "", name, PodPhase.RUNNING, request, False, owner, 0, 0, 1)
            capacity.pod_seen(pod)
        case "end":
            capacity.pod_gone(f"p{rnd.randrange(step + 1)}")
        case "release":
            capacity.release(f"w{rnd.randrange(step + 1)}")
        case "want":
            capacity.want(f"w{rnd.randrange(step + 1)}", 0, 0, rnd.randrange(3))
        case _:
            expire(capacity, f"w{rnd.randrange(step + 1)}")


def _gang(rnd: Random) -> tuple[PodSet, ...]:
    places = (on(), on(zone="a"), on(kind="x"), on(tolerating=[tolerates("team")]))
    return tuple(
        pods(rnd.randrange(1, 5), str(rnd.randrange(5)), gpu=rnd.randrange(2), item=item,
             where=rnd.choice(places), cap=rnd.choice((0, 0, 1)),
             unmodelled=tuple(rnd.sample(["spread", "volumes", GPU], 2)))
        for item in range(rnd.randrange(1, 4))
    )  # fmt: skip


def test_answers_do_not_depend_on_the_hash_seed() -> None:
    outputs = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.core.fit.test_capacity_determinism"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        outputs.append(done.stdout)

    assert outputs[0] == outputs[1]
    kinds = ["INSUFFICIENT", "FRAGMENTED", "NO_NODE", "TOO_LARGE", "None"]
    assert [kind for kind in kinds if kind.encode() not in outputs[0]] == []


if __name__ == "__main__":
    for rule in Fit:
        sys.stdout.write("\n".join(history(7, rule)))
