"""Streams of gangs that a kube-scheduler may strand: what the model and the real one are given.

- equal: 1 to 4 pods of 1, 2, 4 or 8 GPUs
- burst: the same, ten at a time
- mixed: in 3 of 10 gangs one pod of 1 GPU, created first, and 1 to 4 pods of 8
- ray: in 3 of 10 gangs a head of 12 CPUs without a GPU, created first, and 1 to 4 pods of 8 GPUs
"""

from __future__ import annotations

from math import sqrt
from random import Random
from typing import NamedTuple

CPUS, GPUS = 32, 8
"""What a node has."""
GPU = "nvidia.com/gpu"


class Mix(NamedTuple):
    """What comes: the first part (pods, CPUs, GPUs) of 3 of 10 gangs, if any, and how many gangs
    come at a time."""

    small: tuple[int, int, int] | None = None
    burst: int = 1


MIXES = {
    "equal": Mix(),
    "burst": Mix(burst=10),
    "mixed": Mix(small=(1, 1, 1)),
    "ray": Mix(small=(1, 12, 0)),
}


class Part(NamedTuple):
    """Equal pods of a gang, with what each asks for."""

    pods: int
    cpus: int
    gpus: int


class Gang(NamedTuple):
    """Its parts in the order of creation."""

    parts: tuple[Part, ...]

    @property
    def gpus(self) -> int:
        """In all."""
        return sum(part.pods * part.gpus for part in self.parts)


def drawn(mix: str, rng: Random) -> Gang:
    """One gang of a mix."""
    small = MIXES[mix].small
    if small is not None and rng.random() < 0.3:
        return Gang((Part(*small), Part(rng.randint(1, 4), 4, GPUS)))
    gpus = rng.choice((1, 2, 4, 8))
    return Gang((Part(rng.randint(1, 4), gpus, gpus),))


class Interval(NamedTuple):
    """A share with its 95 % confidence interval (Wilson 1927)."""

    count: int
    share: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        return format(f"{self.count} ({self.share:.2%}, {self.low:.2%}-{self.high:.2%})", spec)


def interval(count: int, of: int) -> Interval:
    """How often something happens, seen ``count`` times."""
    z, n = 1.96, max(1, of)
    share = count / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Interval(count, share, max(0.0, middle - half), min(1.0, middle + half))
