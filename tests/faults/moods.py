"""Pods that start late: a part of a random history that is drawn by itself.

Each set of equal pods has a mood of its own, by the seed of the part. None lasts for ever, so that
a run comes to rest; what never starts is for tests/histories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from mcad.sim.cluster import Cluster
from mcad.sim.controllers.kubelet import Kubelet
from mcad.sim.controllers.pods import annotations_of, controller_of

Json = dict[str, Any]
MOODY = 0.3  # that many of all histories
PREFIX = "sim.mcad.dev/"
MOODS = (
    {},
    {},
    {f"{PREFIX}start-delay": "25s"},
    {f"{PREFIX}ready-after": "20s"},
    {f"{PREFIX}pull-fails-for": "20s"},
    {f"{PREFIX}config-fails-for": "15s"},
    {f"{PREFIX}mount-fails-for": "15s"},
)


@dataclass(frozen=True, slots=True)
class Moody:
    """Pods of this cluster start as the seed says, unless they say themselves."""

    seed: int

    def begin(self, cluster: Cluster) -> None:
        """Let the kubelet draw."""
        kubelet = cluster.controllers["Kubelet"]
        assert isinstance(kubelet, Kubelet)
        kubelet.notes = self._notes

    def _notes(self, pod: Json) -> Mapping[str, str]:
        own, owner = annotations_of(pod), controller_of(pod)
        name = owner["name"] if owner and owner["kind"] != "AppWrapper" else pod["metadata"]["name"]
        return {**Random(f"{self.seed} {name}").choice(MOODS), **own}


def moods(rng: Random) -> Iterator[Moody]:
    """Now and then pods start late."""
    if rng.random() < MOODY:
        yield Moody(rng.randrange(1000))
