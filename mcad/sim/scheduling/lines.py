"""The pods that wait for a node, in their order.

Equal pods wait in one line: what is found out about its first holds for all of them.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from mcad.sim.scheduling.fleet import PodInfo
from mcad.sim.scheduling.shapes import Shape


@dataclass(eq=False, slots=True)
class Line:
    """Equal pods that wait, in the order of their arrival."""

    shape: Shape
    pods: dict[str, PodInfo] = field(default_factory=dict)
    untold: deque[PodInfo] = field(default_factory=deque)
    message: str | None = None  # why the first does not fit; None if that is not known any more
    queued: int | None = None  # the place of the pod under which it is in the queue

    def next(self) -> PodInfo | None:
        """The next pod: one to try, or one that gets a verdict that is known."""
        if self.message is None:
            return next(iter(self.pods.values()), None)
        while self.untold:
            pod = self.untold[0]
            if pod.uid in self.pods and pod.told is None:
                return pod
            self.untold.popleft()
        return None


class Lines:
    """All lines; the highest priority first, then the first arrival."""

    def __init__(self) -> None:
        self.pods: dict[str, PodInfo] = {}  # by uid
        self._lines: dict[Shape, Line] = {}
        self._heap: list[tuple[int, int, int, Line]] = []
        self._pushes = 0

    @property
    def is_due(self) -> bool:
        """Whether a pod may be due."""
        return bool(self._heap)

    def add(self, pod: PodInfo) -> None:
        line = self._lines.get(pod.shape)
        if line is None:
            line = self._lines[pod.shape] = Line(pod.shape)
        line.pods[pod.uid] = pod
        line.untold.append(pod)
        self.pods[pod.uid] = pod
        self.push(line)

    def remove(self, uid: str) -> PodInfo | None:
        """A pod waits no longer; None if it did not."""
        pod = self.pods.pop(uid, None)
        if pod is None:
            return None
        line = self._lines[pod.shape]
        del line.pods[uid]
        if not line.pods:
            del self._lines[pod.shape]
        return pod

    def push(self, line: Line) -> None:
        """Queue a line under its next pod, if it has one and does not stand there already."""
        head = line.next()
        if head is not None and head.order != line.queued:
            line.queued = head.order
            self._pushes += 1  # so that lines are never compared
            heapq.heappush(self._heap, (-line.shape.priority, head.order, self._pushes, line))

    def pop(self) -> tuple[Line, PodInfo] | None:
        """The next pod to look at, and its line, to be pushed again afterwards."""
        while self._heap:
            _, order, _, line = heapq.heappop(self._heap)
            if line.queued != order:
                continue  # it stands elsewhere by now
            line.queued = None
            pod = line.next()
            if pod is not None and pod.order == order:
                return line, pod
            self.push(line)
        return None

    def wake(self, may_be_lucky: Callable[[Shape], bool]) -> None:
        """Requeue the lines that may fit now."""
        for line in self._lines.values():
            if line.message is not None and may_be_lucky(line.shape):
                line.message = None
                self.push(line)
