"""A cluster that grows and shrinks at random, with an oracle that counts room in the plainest way.

All pods of a gang are equal, so how many of them have a place is a sum over the nodes. The
autoscaler here adds nodes for a request after a while, or only some of them, or says that it
failed, or does nothing; nodes also come and go by themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

from msgspec.structs import replace

from mcad.core.cluster import Cluster
from mcad.core.commands import Command, RequestScaleUp
from mcad.core.events import PodGone, PodSeen
from mcad.core.state.answer import Answer
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Pod, PodPhase, Taint
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.scale_up import ScaleUpState
from mcad.core.state.settings import Policy
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, cpu, node, workload

SIZE = 1000  # of every node that the autoscaler adds
_STARTS = frozenset({Phase.INTENDING})


class Growing:
    """One random history; ``cases`` counts what happened in it."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.cases: Counter[str] = Counter()
        self.is_exact = rng.random() < 0.5  # no backfill, whose room counts as if it were free
        settings = replace(
            PATIENT,
            scale_up=True,
            scale_up_concurrent=rng.choice((1, 2, 5)),
            scale_up_timeout=rng.choice((60, 300)) * SECOND,
            preemption=rng.random() < 0.3,
            min_run_time=10 * SECOND,
            policy=rng.choice((Policy.BEST_EFFORT_FIFO, Policy.BACKFILL)),
        )
        self.bench = Bench(settings, [node("first", SIZE)])
        self.bench.heard = self._heard
        self.bench.names_requests = rng.random() < 0.5
        self._known: dict[str, int] = {}  # uid -> the attempt that was checked
        self._made = 0

    # -- the oracle --------------------------------------------------------------------------

    def _heard(self, commands: tuple[Command, ...]) -> None:
        cluster = self.bench.dispatcher.cluster
        for command in commands:
            if isinstance(command, RequestScaleUp):
                self._check_asked(cluster, command)
        for uid, entry in cluster.entries.items():
            if entry.phase in _STARTS and self._known.get(uid) != entry.attempt:
                self._known[uid] = entry.attempt
                self._check_start(cluster, entry)

    def _check_asked(self, cluster: Cluster, command: RequestScaleUp) -> None:
        entry = cluster.entries[command.uid]
        self.cases["asked"] += 1
        assert entry.reserved.reason is ReservationReason.SCALING_UP
        assert command.attempt == entry.attempt + 1
        assert len(command.pods) == len(entry.workload.sets)
        request = cluster.scale_ups.get(command.uid, command.attempt)
        assert request is not None
        if request.tries.failures or request.tries.denials:
            return  # made some time ago
        lacking = sum(count for _, _, count in request.lacking)
        assert 0 < lacking == cluster.capacity.gangs.unplaced(command.uid)
        # Nodes are set aside for pods of dispatched gangs that have lost their places (C6).
        gangs = cluster.capacity.gangs
        is_set_aside = any(gangs.unplaced(u) for u in gangs.uids() if not gangs.is_reserved(u))
        if self.is_exact and not is_set_aside:
            size = dict(entry.workload.sets[0].request)["cpu"]
            places = sum(
                max(0, room) // size
                for name, room in self._rooms(cluster)
                if self._holder(cluster, name) in ("", entry.uid)
            )
            assert lacking == len(entry.workload.sets) - min(places, len(entry.workload.sets))
            self.cases["asked for some"] += lacking < len(entry.workload.sets)

    def _check_start(self, cluster: Cluster, entry: Entry) -> None:
        gangs = cluster.capacity.gangs
        assert not gangs.unplaced(entry.uid), "a gang starts without places for all pods"
        assert sum(map(sum, gangs.places_of(entry.uid).values())) == len(entry.workload.sets)
        rooms = dict(self._rooms(cluster))
        for name in gangs.nodes_of(entry.uid):
            assert rooms.get(name, -1) >= 0, f"{name} is overcommitted or takes no pods"
        self.cases["starts"] += 1

    def _rooms(self, cluster: Cluster) -> Iterator[tuple[str, int]]:
        """What is free on each node that takes pods, reservations aside."""
        gangs = cluster.capacity.gangs
        taken: Counter[str] = Counter()
        for pod in cluster.capacity.pods.all():
            if pod.phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
                taken[pod.node] += dict(pod.request)["cpu"]
        for uid in gangs.uids():
            if not gangs.is_reserved(uid):
                request = dict(cluster.entries[uid].workload.sets[0].request)["cpu"]
                for name, places in gangs.places_of(uid).items():
                    taken[name] += request * sum(places)
        for one in self.bench.nodes:
            if one.ready and not one.taints:
                yield one.name, dict(one.allocatable)["cpu"] - taken[one.name]

    def _holder(self, cluster: Cluster, name: str) -> str:
        found = (u for u, one in cluster.reservations.items() if name in one.reserved.nodes)
        return next(found, "")

    # -- the history -------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        """Play; at the end all AppWrappers are deleted, and no request is left."""
        actions = (
            *(self.submit, self.submit, self.grow, self.grow, self.grow, self.bind, self.end),
            *(self.come, self.go, self.taint, self.foreign, self.edit, self.delete, self.lead),
            self.refuse,
        )
        for _ in range(steps):
            self.rng.choice(actions)()
            self.bench.advance(self.rng.choice((1, 1, 2, 5, 20)))
            self._check_requests()
        if self.rng.random() < 0.5:
            self.serve_all()
        for uid in list(self.bench.works):
            self.bench.delete(uid)
        self.bench.advance(5)
        assert not self.bench.scale_ups, "a request is left at the end"

    def serve_all(self) -> None:
        """The autoscaler gives all that is asked for: every gang that fits its nodes starts."""
        for one in [one for one in self.bench.nodes if one.taints]:
            self.bench.add_node(replace(one, taints=()))
        self.bench.refusals.clear()
        for _ in range(90):
            self.bind()
            if not (waiting := self._servable()):
                self.cases["all served"] += 1
                return
            requests = self.bench.dispatcher.cluster.scale_ups
            for key, seen in list(self.bench.scale_ups.items()):
                made = requests.get(*key)
                large = self._is_large(key[0])
                if made is not None and seen.state is not ScaleUpState.PROVISIONED and not large:
                    self._add(sum(count for _, _, count in made.lacking) or 4)
                    self.bench.autoscale(key[0].removeprefix("uid-"), ScaleUpState.PROVISIONED)
            if any(not thing.node for thing in self.bench.things.values()):
                self._add(1)  # for pods that have lost their places
            self.bench.advance(60)
        raise AssertionError(f"not served: {[one.title for one in waiting]}")

    def _servable(self) -> list[Entry]:
        entries = self.bench.dispatcher.cluster.entries.values()
        return [
            one
            for one in entries
            if one.phase is Phase.WAITING
            and not one.workload.suspended
            and not self._is_large(one.uid)
        ]

    def _is_large(self, uid: str) -> bool:
        work = self.bench.works.get(uid)
        return work is not None and dict(work.sets[0].request)["cpu"] > SIZE

    def _check_requests(self) -> None:
        cluster = self.bench.dispatcher.cluster
        for uid, attempt in self.bench.scale_ups:
            entry = cluster.entries.get(uid)
            assert entry is not None
            waits = entry.reservation is not None and attempt == entry.attempt + 1
            binds = self.bench.names_requests and attempt == entry.attempt
            assert waits or binds, f"nothing waits for the request of {entry.title}"

    def submit(self) -> None:
        """A user submits a gang."""
        rng, self._made = self.rng, self._made + 1
        pods = [rng.choice((300, 500, 1000, 1500))] * rng.randint(1, 4)
        limit = 0 if self.is_exact else rng.choice((0, 20, 100)) * SECOND
        work = workload(f"w{self._made}", *pods, priority=rng.choice((0, 0, 1)), run_limit=limit)
        self.bench.submit(work)

    def grow(self) -> None:
        """The autoscaler does something about one request."""
        if not self.bench.scale_ups:
            return
        uid, attempt = self.rng.choice(list(self.bench.scale_ups))
        made = self.bench.dispatcher.cluster.scale_ups.get(uid, attempt)
        count = len(made.lacking) if made is not None and made.lacking else 1
        state = self.rng.choice((*ScaleUpState, ScaleUpState.PROVISIONED))
        if state is ScaleUpState.PROVISIONED and not self._is_large(uid):
            self._add(self.rng.choice((count, count, max(1, count - 1))))
        self.bench.autoscale(uid.removeprefix("uid-"), state, "words")
        self.cases[state] += 1

    def _add(self, count: int) -> None:
        for _ in range(count):
            self._made += 1
            self.bench.add_node(node(f"new-{self._made}", SIZE))

    def come(self) -> None:
        """A node joins by itself."""
        self._add(1)

    def go(self) -> None:
        """A node goes."""
        if len(self.bench.nodes) > 1:
            self.bench.remove_node(self.rng.choice(self.bench.nodes).name)

    def taint(self) -> None:
        """An autoscaler is about to remove a node, or calls that off."""
        if self.bench.nodes:
            one = self.rng.choice(self.bench.nodes)
            mark = Taint("DeletionCandidateOfClusterAutoscaler", "", "PreferNoSchedule")
            self.bench.add_node(replace(one, taints=() if one.taints else (mark,)))

    def foreign(self) -> None:
        """A pod of no AppWrapper comes, wherever it is."""
        if not self.bench.nodes:
            return
        self._made += 1
        uid, on = f"p{self._made}", self.rng.choice(self.bench.nodes).name
        pod = Pod(uid, "x", uid, on, PodPhase.RUNNING, cpu(200, 1))
        self.bench.feed(PodSeen(pod))
        if self.rng.random() < 0.5:
            self.bench.advance(3)
            self.bench.feed(PodGone(uid))

    def bind(self) -> None:
        """kube-scheduler binds what it can, off the nodes that the pods should avoid."""
        for ref, thing in list(self.bench.things.items()):
            if not thing.node:
                uid, wanted = thing.child.workload, dict(thing.request)["cpu"]
                rooms = dict(self._bound_rooms())
                avoided = {*self.bench.avoided.get(uid, ()), *self.bench.excluded.get(uid, ())}
                fits = sorted((n in avoided, n) for n, room in rooms.items() if room >= wanted)
                if fits:
                    self.bench.bind(ref.name, fits[0][1])

    def _bound_rooms(self) -> Iterator[tuple[str, int]]:
        taken: Counter[str] = Counter()
        for pod in self.bench.dispatcher.cluster.capacity.pods.all():
            if pod.phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
                taken[pod.node] += dict(pod.request)["cpu"]
        for one in self.bench.nodes:
            if one.ready and not one.taints:
                yield one.name, dict(one.allocatable)["cpu"] - taken[one.name]

    def end(self) -> None:
        """A pod succeeds."""
        running = [ref for ref, one in self.bench.things.items() if one.phase is PodPhase.RUNNING]
        if running:
            self.bench.change(self.rng.choice(running).name, phase=PodPhase.SUCCEEDED)

    def edit(self) -> None:
        """A user suspends an AppWrapper, or releases it."""
        if self.bench.works:
            uid = self.rng.choice(list(self.bench.works))
            self.bench.edit(uid, suspended=not self.bench.works[uid].suspended)

    def delete(self) -> None:
        """A user deletes an AppWrapper."""
        if self.bench.works:
            self.bench.delete(self.rng.choice(list(self.bench.works)))

    def lead(self) -> None:
        """Another dispatcher leads."""
        self.cases["leaders"] += 1
        self.bench.restart()

    def refuse(self) -> None:
        """The API server refuses the next request."""
        answer = self.rng.choice(((503, "ServiceUnavailable"), (403, "Forbidden")))
        self.bench.refuse("RequestScaleUp", Answer(*answer, "no"))
