"""A cluster, a dispatcher that can be killed, users, and a watcher that misses nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from mcad.api import labels
from mcad.cli.demo_cluster.cluster import embedded_cluster
from mcad.controller.runtime import Controller
from mcad.core.state.bounds import TOMBSTONE_GRACE
from mcad.core.state.lifecycle import Phase
from mcad.core.state.units import SECOND
from mcad.core.state.violations import InvariantViolated
from mcad.kube.client import Client
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from mcad.sim.serving.server import SimApi
from mcad.sim.store import Change
from tests import budget
from tests.faults import automata
from tests.faults.automata import Recorder
from tests.faults.edits import STORAGE, WRAPPED, Editor
from tests.faults.eviction_checks import BEHIND_S, EvictionChecks
from tests.faults.forging import is_forged
from tests.faults.injection import Moment, Plan, Wire
from tests.faults.interference import Interference
from tests.faults.quota_checks import QuotaChecks
from tests.faults.reservation_checks import ReservationChecks
from tests.faults.rest import WATCHED, unrest
from tests.faults.scenarios import NAMESPACE, Scenario, pods_to_come
from tests.faults.stale_server import StaleServer
from tests.faults.upheavals import GUESTS, Upheavals

Json = dict[str, Any]

RESTART_S = 1.0  # from a kill to the next life
MORE_WRITES = 8  # that a fault may cost: a teardown, or every status said once more
REPEATS = 6  # of one write by its back-off, while lists and watches of its kind are refused
REST_S = 300.0 if budget.SOAK else 120.0  # in which nothing may be written any more


@dataclass(slots=True)
class Outcome:
    """How a run ended, in terms that do not depend on what went wrong in it."""

    states: dict[str, str]  # by name of AppWrapper, "" where there is none
    objects: list[str]  # kind/name of everything that was wrapped and is there
    made: int  # objects, in the attempts that they belong to
    writes: int  # of the dispatcher, in all of its lives
    lives: int
    evictions: int
    cases: Counter[str]  # of reservations and evictions
    events: int  # that its watches told it
    requests: list[str]  # method and path of its writes
    moments: list[Moment]  # these writes


class World:
    """One run of a scenario; ``leading`` is the leader of now."""

    leading: Callable[[], Controller | None]

    def __init__(self, cluster: Cluster, scenario: Scenario, plan: Plan) -> None:
        self._cluster = cluster
        self.clock = cluster.registry.clock
        self._scenario = scenario
        self._plan = plan
        self._wires: list[Wire] = []
        self._lives: list[asyncio.Task[None]] = []
        self._user = Client(SimApi(cluster.registry), cluster.registry.clock, Random(7))
        self.creations: Counter[tuple[str, str, str]] = Counter()
        self.troubles: list[str] = []
        self.done = 0  # of the acts
        self.begun_s = 0.0  # when the story began, by the clock
        plan.weather.begin(cluster)
        self._upheavals = Upheavals(cluster.registry, plan.weather.occurred)
        self.stored = Recorder(cluster.registry)
        interference = Interference(cluster.registry, plan.weather)
        self._reservations = reservations = ReservationChecks(cluster.registry, interference)
        self._quota = QuotaChecks(
            cluster.registry, reservations, scenario.config.quota_grace_period
        )
        lives = [scenario.settings(life) for life in (1, 2)]
        self._evictions = EvictionChecks(cluster.registry, reservations, interference, lives)
        for storage in WRAPPED:
            cluster.registry.store.listen(storage, self._seen)
        cluster.registry.store.listen(STORAGE, self._said)

    # -- the dispatcher ------------------------------------------------------------------------

    def begin(self) -> None:
        """Start all processes that there are."""
        self.begin_life()

    def begin_life(self) -> None:
        """Start a process that knows nothing."""
        life: asyncio.Task[None]

        def killed() -> None:
            life.cancel()
            asyncio.get_running_loop().call_later(RESTART_S, self.begin_life)

        registry = self._cluster.registry
        api = StaleServer(SimApi(registry), self._plan.weather, after_failover=bool(self._wires))
        editor, sending = Editor(registry, self._upheavals), self._check_books
        wire = Wire(api, self._plan, killed=killed, sending=sending, editor=editor)
        self._wires.append(wire)
        life = asyncio.ensure_future(self._live(wire, len(self._wires)))
        self._lives.append(life)

    async def _live(self, wire: Wire, number: int) -> None:
        """One life: a dispatcher that leads from the beginning."""
        await self._leader(wire, number).run(asyncio.Event())

    def _leader(self, wire: Wire, number: int) -> Controller:
        """A dispatcher, which leads now."""
        client = self._client(wire, number)
        controller = Controller(client, self._scenario.settings(number), identity=f"life-{number}")
        self.leading = lambda: controller
        return controller

    def _client(self, wire: Wire, number: int) -> Client:
        return Client(wire, self.clock, Random(number))

    def _check_books(self) -> None:
        """Room on nodes and in shares is held by the same ones, and no node is in two reservations,
        at every write and every crash."""
        leader = self.leading()
        if leader is None:
            return
        core = leader.dispatcher.cluster
        try:
            core.admission.check()
        except InvariantViolated as wrong:
            self.troubles.append(str(wrong))
        nodes = Counter(
            name for uid in core.reservations for name in core.capacity.gangs.nodes_of(uid)
        )
        if twice := [name for name, reservations in nodes.items() if reservations > 1]:
            self.troubles.append(f"in two reservations: {twice}")

    # -- the run -------------------------------------------------------------------------------

    async def live_through(self) -> Outcome:
        """The scenario, then time to settle, then a time in which nothing may happen."""
        clock = self._cluster.registry.clock
        self.begun_s = await self._furnish()
        self.begin()
        for at_s, act in self._scenario.acts[self.done :]:
            await clock.sleep(max(self.begun_s + at_s - clock.monotonic(), 0.0))
            await act(self._user)
            self.done += 1
        await clock.sleep(self._scenario.settles_s)
        if self._is_one_buried():
            await clock.sleep(TOMBSTONE_GRACE / SECOND)
        before = self._written()
        await clock.sleep(REST_S)
        if self._written() != before:
            late = [write for wire in self._wires for write in wire.writes][before:]
            self.troubles.append(f"still writing at rest: {[(r.method, r.path) for r in late]}")
        overdrawn = () if self._plan.weather.was_stale else self._quota.overdrawn
        self.troubles += [*self._unrest(), *overdrawn]
        self.troubles += self._unlike_the_protocol()
        self.troubles += [
            *self._evictions.faults,
            *self._evictions.in_vain(),
            *self._reservations.broken,
        ]
        for life in self._lives:
            if life.done() and not life.cancelled():
                life.result()
            life.cancel()
        await asyncio.gather(*self._lives, return_exceptions=True)
        return self._outcome()

    async def _furnish(self) -> float:
        """What is there before the first process starts; the result is when the story begins."""
        for number, cpus in enumerate(self._scenario.cpus):
            self._cluster.add_node(f"node-{number}", cpu=str(cpus))
        await self.clock.sleep(1.0)
        return self.clock.monotonic()

    def _unlike_the_protocol(self) -> list[str]:
        """What of all that was stored, or sent, the protocol does not allow."""
        sent = [request for wire in self._wires for request in wire.writes]
        stored = self.stored
        broken = [*automata.unfenced(sent), *self._miscounted()]
        was_stale = self._plan.weather.was_stale
        behind = int(BEHIND_S * SECOND)
        broken += automata.judge(stored.history, behind=behind, is_timed=not was_stale)
        broken += automata.untrue(stored.events, stored.history, was_stale=was_stale)
        return broken

    def _miscounted(self) -> list[str]:
        """Where one process has led all the time, its metrics tell of all attempts."""
        leader = self.leading()
        if len(self._wires) > 1 or leader is None:
            return []
        told = {"dispatched": 0, "ended": 0}
        for metric in leader.metrics.registry.collect():
            for sample in metric.samples:
                if sample.name == "mcad_dispatch_duration_seconds_count":
                    told["dispatched"] += int(sample.value)
                if sample.name == "mcad_attempts_ended_total":
                    told["ended"] += int(sample.value)
        return list(automata.miscounted(told, self.stored.history))

    def _written(self) -> int:
        return sum(len(wire.writes) for wire in self._wires)

    def _outcome(self) -> Outcome:
        store = self._cluster.registry.store
        found = {key[1]: obj for key, obj in store.items(STORAGE)}
        states = {
            name: (found[name].get("status") or {}).get("state", "?") if name in found else ""
            for name in self._scenario.ends
        }
        objects = [
            f"{storage[1]}/{'*' if _is_generated(obj) else key[1]}"
            for storage in WRAPPED
            for namespace in (NAMESPACE, GUESTS)
            for key, obj in store.items(storage, namespace)
            if not is_forged(obj)
        ]
        for obj in found.values():
            self._check_whole(obj)
        requests = [f"{r.method} {r.path}" for wire in self._wires for r in wire.writes]
        return Outcome(
            states,
            sorted(objects),
            made=sum(self.creations.values()),
            writes=len(requests),
            lives=len(self._wires),
            evictions=self._evictions.evictions,
            cases=self._evictions.cases + self._reservations.cases + self._plan.weather.occurred,
            events=next(self._plan.told),
            requests=requests,
            moments=self._plan.moments,
        )

    def _is_one_buried(self) -> bool:
        """Whether what a deleted AppWrapper left still holds room, which ends after a while: pods
        that a client orphaned, which no dispatcher saw."""
        leader = self.leading()
        entries = leader.dispatcher.cluster.entries.values() if leader is not None else ()
        return any(one.phase is Phase.GONE for one in entries)

    def _unrest(self) -> list[str]:
        """What the dispatcher itself gets wrong at rest."""
        leader = self.leading()
        if leader is None:
            return ["no process leads"]
        store = self._cluster.registry.store
        objects = {storage: [obj for _, obj in store.items(storage)] for storage in WATCHED}
        return list(unrest(leader.dispatcher.cluster, objects, self._quota, self._former()))

    def _former(self) -> Container[str]:
        """The uids of those AppWrappers whose status another version has written."""
        return ()

    def _check_whole(self, obj: Json) -> None:
        """All or nothing at rest: what runs is its inventory, and nothing else is there."""
        store, name = self._cluster.registry.store, obj["metadata"]["name"]
        status = obj.get("status") or {}
        record = status.get("dispatch") or {}
        wanted = {
            (ref["kind"], ref["name"])
            for ref in record.get("inventory") or ()
            if record["phase"] == "dispatched"
        }
        live = {
            (one["kind"], key[1]): labels.labels_of(one)[labels.ATTEMPT]
            for storage in WRAPPED
            for key, one in store.items(storage, obj["metadata"]["namespace"])
            if labels.labels_of(one).get(labels.APPWRAPPER_UID) == obj["metadata"]["uid"]
            and not (_is_generated(one) or is_forged(one))
        }
        left_over = [one for one in live if one not in wanted]
        robbed = name in self._scenario.robbed or status["state"] != "Running"
        missing = [one for one in wanted if one not in live and not robbed]
        others = [one for one, attempt in live.items() if attempt != str(record.get("attempt"))]
        if left_over or missing or others:
            self.troubles.append(f"{name} is not whole: {left_over=} {missing=} {others=}")

    # -- the watcher ---------------------------------------------------------------------------

    def _seen(self, change: Change) -> None:
        """No pod ever finds its room taken; nothing is made twice in one attempt."""
        obj = change.obj
        if is_forged(obj):
            return
        marks = obj["metadata"].get("labels") or {}
        if change.type == "ADDED" and not _is_generated(obj) and labels.ATTEMPT in marks:
            self._made(marks, change)
        owner = marks.get(labels.APPWRAPPER, "")
        if obj["kind"] == "Pod" and not self._may_lack_room(owner) and has_no_room(obj):
            self.troubles.append(f"no room for pod {change.key[1]} of {owner}")

    def _may_lack_room(self, owner: str) -> bool:
        """What its pods had is taken away, or given to others: a list was of the past, or the pods
        were not seen."""
        is_gone = self._are_pods_given_up() or self._plan.weather.was_stale
        return is_gone or owner in self._scenario.crowded

    def _are_pods_given_up(self) -> bool:
        """Whether pods may be unseen for so long that they are not waited for any more (C4)."""
        timeout_ms = self._scenario.config.dispatch_resource_reservation_timeout
        return self._plan.weather.hides_pods_s * 1000 >= timeout_ms

    def _made(self, marks: Json, change: Change) -> None:
        """A create that is committed after its attempt was taken back is the sweep's (P7)."""
        name, attempt = marks[labels.APPWRAPPER], marks[labels.ATTEMPT]
        owner = self._cluster.registry.store.get(STORAGE, (change.key[0], name)) or {}
        uid, status = (owner.get("metadata") or {}).get("uid"), owner.get("status") or {}
        is_due = (status.get("dispatch") or {}).get("phase") in ("creating", "dispatched")
        if uid != marks[labels.APPWRAPPER_UID] or not is_due:
            return
        made = (uid, attempt, f"{change.obj['kind']}/{change.key[1]}")
        self.creations[made] += 1
        if self.creations[made] > 1 and not self._plan.weather.was_stale:
            self.troubles.append(f"made twice in attempt {attempt} of {name}: {made[2]}")

    def _said(self, change: Change) -> None:
        """Nothing is Completed while pods of it run, or are still to come."""
        status, was = ((obj or {}).get("status") or {} for obj in (change.obj, change.previous))
        if change.type != "MODIFIED" or status.get("state") != "Completed":
            return
        if was.get("state") == "Completed" or self._are_pods_given_up():
            return
        store, uid = self._cluster.registry.store, change.obj["metadata"]["uid"]
        for storage in WRAPPED:
            for key, obj in store.items(storage, change.key[0]):
                marks = obj["metadata"].get("labels") or {}
                if marks.get(labels.APPWRAPPER_UID) != uid or is_forged(obj):
                    continue
                if pods := pods_to_come(obj):
                    what = f"{obj['kind']} {key[1]} wants {pods} pods"
                    self.troubles.append(f"{change.key[1]} is Completed, but {what}")

    def check(self, outcome: Outcome) -> None:
        """Raise what went wrong."""
        assert not self.troubles, self.troubles[:3]
        ends = self._scenario.ends
        states = {name: "*" if ends[name] == "*" else s for name, s in outcome.states.items()}
        assert states == ends


def has_no_room(pod: Json) -> bool:
    """Whether kube-scheduler looked for a node in vain."""
    return any(
        condition["type"] == "PodScheduled" and condition["status"] == "False"
        for condition in pod["status"].get("conditions") or ()
    )


def _is_generated(obj: Json) -> bool:
    """Whether a controller made it, under a name that differs from run to run."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(owner["kind"] != "AppWrapper" for owner in owners)


def run(
    scenario: Scenario,
    plan: Plan | None = None,
    build: Callable[[Cluster, Scenario, Plan], World] = World,
) -> Outcome:
    """Live through a scenario, and check what must hold in any case."""
    plan = plan or Plan()

    async def whole() -> Outcome:
        clock = VirtualClock()
        async with embedded_cluster(clock, Random(3)) as cluster:
            world = build(cluster, scenario, plan)
            outcome = await world.live_through()
            world.check(outcome)
            return outcome

    return run_virtually(whole())


@cache
def undisturbed(scenario: Scenario) -> Outcome:
    """How it ends if nothing goes wrong."""
    return run(scenario)
