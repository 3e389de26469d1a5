"""Node groups, and what becomes of the nodes that are ordered from a cloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

Json = dict[str, Any]
GROUP = "example.com/node-group"
"""The label of a node with the name of its group."""


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of one size, from none to ``largest``; a node takes ``comes_s`` to come."""

    name: str
    cpu: str
    largest: int
    comes_s: float = 20.0
    memory: str = "32Gi"
    extended: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()

    def node(self, name: str) -> Json:
        """A node of this group, as its kubelet registers it."""
        capacity = {"cpu": self.cpu, "memory": self.memory, "pods": "110", **self.extended}
        labels = {GROUP: self.name, "kubernetes.io/hostname": name, **self.labels}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": [dict(one) for one in self.taints]},
            "status": {"capacity": capacity, "allocatable": capacity},
        }


@dataclass(frozen=True, slots=True)
class StockOut:
    """In this span of time no machine of the group is to be had: orders stay without an answer."""

    group: str
    from_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class Moods:
    """What a cloud does until ``until_s``. Shares are of the nodes that are ordered."""

    stock_outs: Sequence[StockOut] = ()
    late: float = 0.0  # come three times as late
    never: float = 0.0  # do not come
    lost: float = 0.0  # go again within a minute of their coming
    startup_s: float = 0.0  # for so long a new node has a taint of start-up
    booking_s: float = 600.0  # for which nodes are kept for a request
    given_up_s: float = 60.0  # after which an order without an answer is counted no more
    until_s: float = float("inf")
    seed: int = 0

    def comes_s(self, group: Group, now_s: float, rng: Random) -> float | None:
        """After how many seconds a node that is ordered now is there; None for never."""
        if any(
            one.group == group.name and one.from_s <= now_s < one.until_s for one in self.stock_outs
        ):
            return None
        if now_s >= self.until_s:
            return group.comes_s
        if rng.random() < self.never:
            return None
        return group.comes_s * (3.0 if rng.random() < self.late else 1.0)

    def goes_s(self, now_s: float, rng: Random) -> float | None:
        """After how many seconds a node that comes now goes; None for never."""
        is_lost = now_s < self.until_s and rng.random() < self.lost
        return rng.uniform(1.0, 60.0) if is_lost else None


KIND = Moods()
