"""The shapes of Kueue's performance harness, and one generator of load for all arms.

Kueue v0.19.2 describes them in ``test/performance/scheduler``. In every queue each class is created
on its own: wait, create, and again. What was admitted is finished so long after it was *seen* to be
admitted; what is evicted runs anew.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

from benchmarks.dispatch_rate import is_alive
from benchmarks.measuring import quantile
from mcad.kube.client import Client
from mcad.kube.clock import RealClock
from mcad.kube.connection import load
from mcad.kube.decode import decode, take_line
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.resource import Resource
from mcad.kube.rest import RestApi
from tests.controlplane.controlplane import ControlPlane

Json = dict[str, Any]
T = TypeVar("T")

CONNECTIONS = 64
ANSWER_S = 900.0  # a burst of 50,000 creates keeps an API server busy for long
PATIENCE_S, LOOK_S = 5400.0, 1.0
NOMINAL, COHORT = 20, 120
"""CPUs of a queue, and of a cohort of six: Kueue's borrowingLimit of 100 is all the rest of it."""


class Class(NamedTuple):
    """Workloads of one queue that differ in their number only; ``cpu`` is of all of their pods."""

    name: str
    count: int
    every_s: float
    cpu: int
    runs_s: float
    priority: int
    pods: int = 1

    @property
    def requests(self) -> Json:
        """Of one pod."""
        return {"requests": {"cpu": str(self.cpu // self.pods)}}


class Shape(NamedTuple):
    """So many cohorts of so many queues with the same classes each. One node is large enough."""

    name: str
    cohorts: int
    queues: int
    classes: tuple[Class, ...]

    @property
    def nominal(self) -> int:
        """CPUs of all queues."""
        return self.cohorts * self.queues * NOMINAL

    @property
    def count(self) -> int:
        """Workloads of all queues."""
        return self.cohorts * self.queues * sum(one.count for one in self.classes)

    def scaled(self, scale: float) -> Shape:
        """With fewer workloads, at the same intervals."""
        classes = (one._replace(count=max(1, round(one.count * scale))) for one in self.classes)
        return self._replace(classes=tuple(classes))

    def leaves(self) -> Iterator[tuple[str, str]]:
        """The cohort and the name of each queue."""
        for cohort in range(self.cohorts):
            for queue in range(self.queues):
                yield f"cohort-{cohort}", f"cq-0-{queue}-cohort-{cohort}"


BASELINE = Shape(
    "baseline",
    5,
    6,
    (
        Class("small", 350, 0.1, 1, 0.2, 50),
        Class("medium", 100, 0.5, 5, 0.5, 100),
        Class("large", 50, 1.2, 20, 1.0, 200),
    ),
)
LARGE_SCALE = Shape(
    "large-scale",
    10,
    100,
    (
        Class("small", 35, 0.06, 1, 0.15, 50),
        Class("medium", 11, 0.3, 5, 0.35, 100),
        Class("large", 4, 0.7, 20, 0.7, 200),
    ),
)
SHAPES = {one.name: one for one in (BASELINE, LARGE_SCALE)}


class Workload(NamedTuple):
    """One workload, as every arm writes it down in its own way."""

    of: Class
    queue: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        """Its namespace, which has the name of the queue, and its name."""
        return self.queue, self.name


class Sight(NamedTuple):
    """What a watch says of a workload."""

    key: tuple[str, str]
    admitted: bool
    obj: Json


class Arm(Protocol):
    """One of those that are compared."""

    watched: Resource
    """The kind that shows what is admitted."""

    def written(self, work: Workload) -> tuple[Resource, Json]:
        """The object that is created for a workload, and its kind."""

    def seen(self, kind: str, obj: Json) -> Sight:
        """What an event of the watch means."""

    async def finish(self, client: Client, sight: Sight) -> None:
        """Write that the workload is done."""

    async def give_way(self, client: Client, sight: Sight) -> None:
        """Do what a job has to do when it is evicted, if anything."""


class Course:
    """What became of a workload, by the clock of this process."""

    __slots__ = ("admitted", "cpu_s", "created", "evictions", "finished", "first", "timer", "work")

    def __init__(self, work: Workload, created: float) -> None:
        self.work = work
        self.created = created
        self.first = self.admitted = self.finished = 0.0
        self.cpu_s = 0.0
        self.evictions = 0
        self.timer: asyncio.TimerHandle | None = None

    def ends(self, now: float) -> None:
        """It holds its CPUs no longer."""
        self.cpu_s += self.work.of.cpu * (now - self.admitted)
        self.admitted = 0.0


class Load:
    """Creates the workloads of a shape, finishes them, and takes down when what was seen."""

    def __init__(
        self, shape: Shape, arm: Arm, client: Client, creator: Client | None = None
    ) -> None:
        """A ``creator`` creates the workloads, with connections of its own: the end of one must not
        wait for thousands that are still to be created."""
        self._shape = shape
        self._arm = arm
        self._client = client
        self._creator = creator or client
        self._tasks: set[asyncio.Task[None]] = set()
        self._left = shape.count
        self._done = asyncio.Event()
        self._failure: BaseException | None = None
        self.courses: dict[tuple[str, str], Course] = {}

    async def run(self, alive: Callable[[], bool] = lambda: True) -> None:
        """Return when all are finished; give up when the arm's process is not ``alive``. Raises
        what a request raised."""
        _, version = await self._client.list_all(self._arm.watched)
        self._spawn(self._watch(version))
        waiting = [asyncio.ensure_future(self._done.wait())]
        for _, queue in self._shape.leaves():
            for of in self._shape.classes:
                self._spawn(self._generate(of, queue))
        async with asyncio.timeout(PATIENCE_S):
            while not self._done.is_set():
                if not alive():
                    raise SystemExit(f"the arm's process ended with {self._left} workloads left")
                await asyncio.wait(waiting, timeout=LOOK_S)
        for task in self._tasks:
            task.cancel()
        if self._failure is not None:
            raise self._failure

    def expect(self, work: Workload) -> Course:
        """It is created now."""
        course = self.courses[work.key] = Course(work, time.monotonic())
        return course

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
            self._done.set()

    async def _generate(self, of: Class, queue: str) -> None:
        for number in range(of.count):
            await asyncio.sleep(of.every_s)
            work = Workload(of, queue, f"{of.name}-{number}")
            resource, body = self._arm.written(work)
            self.expect(work)
            try:
                await persistently(partial(self._creator.create, resource, queue, body))
            except ApiError as error:  # a create that was given up may have been carried out
                if error.reason != "AlreadyExists":
                    raise

    async def _watch(self, version: str) -> None:
        while True:
            with suppress(KubeError):
                async for line in self._client.watch(self._arm.watched, version):
                    event = take_line(line)
                    obj = decode(event.object)
                    version = obj["metadata"]["resourceVersion"]
                    if event.type != "BOOKMARK":
                        self._take(self._arm.seen(event.type, obj))

    def _take(self, sight: Sight) -> None:
        course, now = self.courses[sight.key], time.monotonic()
        if course.finished:
            return
        if sight.admitted and not course.admitted:
            course.admitted = now
            course.first = course.first or now
            runs_s = course.work.of.runs_s
            course.timer = asyncio.get_running_loop().call_later(
                runs_s, lambda: self._spawn(self._finish(course, sight))
            )
        elif not sight.admitted and course.admitted:
            course.ends(now)
            course.evictions += 1
            if course.timer is not None:
                course.timer.cancel()
        if not sight.admitted:
            self._spawn(self._give_way(sight))

    async def _finish(self, course: Course, sight: Sight) -> None:
        try:
            await persistently(partial(self._arm.finish, self._client, sight))
        except ApiError as error:
            if error.not_found or error.conflict:
                return  # it was evicted meanwhile, which the watch is about to show
            raise
        now = time.monotonic()
        if course.admitted:
            course.ends(now)
        course.finished = now
        self._left -= 1
        if not self._left:
            self._done.set()

    async def _give_way(self, sight: Sight) -> None:
        with suppress(ApiError):  # a newer version comes through the watch
            await self._arm.give_way(self._client, sight)


async def persistently(request: Callable[[], Awaitable[T]]) -> T:
    """Repeat the request until the server has an answer to it: busy as it is, it gives up on some.
    Raises what it refuses."""
    while True:
        try:
            return await request()
        except KubeError as error:
            if isinstance(error, ApiError) and not error.transient:
                raise
        await asyncio.sleep(LOOK_S)


class Times(NamedTuple):
    """Of one class: seconds from creation to the first admission."""

    p50: float
    p99: float
    mean: float
    evictions: int


class Record(NamedTuple):
    """What a run has shown."""

    wall_s: float
    use: float  # of the nominal CPUs, from the first creation to the last end
    times: dict[str, Times]


def record(shape: Shape, courses: dict[tuple[str, str], Course]) -> Record:
    """Sum up a run."""
    found = list(courses.values())
    wall_s = max(one.finished for one in found) - min(one.created for one in found)
    waits: defaultdict[str, list[float]] = defaultdict(list)
    evictions: defaultdict[str, int] = defaultdict(int)
    for one in found:
        waits[one.work.of.name].append(one.first - one.created)
        evictions[one.work.of.name] += one.evictions
    times = {
        name: Times(quantile(w, 0.5), quantile(w, 0.99), statistics.fmean(w), evictions[name])
        for name, w in waits.items()
    }
    return Record(wall_s, sum(one.cpu_s for one in found) / (shape.nominal * wall_s), times)


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client."""
    clock = RealClock()
    connection = await load(clock, str(kubeconfig))
    async with RestApi(connection, clock, connections=CONNECTIONS) as api:
        yield Client(api, clock, Random(1), timeout_s=ANSWER_S)


async def play(plane: ControlPlane, shape: Shape, arm: Arm, pid: int) -> Record:
    """One run as the admin, of an arm that has this process."""
    kubeconfig = plane.admin_kubeconfig
    async with connected(kubeconfig) as client, connected(kubeconfig) as creator:
        running = Load(shape, arm, client, creator)
        await running.run(lambda: is_alive(pid))
    return record(shape, running.courses)
