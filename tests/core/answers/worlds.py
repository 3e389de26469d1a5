"""Small random clusters, and what happens in them when a change is carried out.

A change reaches a dispatcher at rest as events, as from the API server, and whole cycles follow.
This shares nothing with dry runs, which make a change on a dispatcher and take it back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from mcad.core.answers.changes import AddNodes, Edit, End, Leave, RaiseQuota
from mcad.core.answers.dry_run import Facts
from mcad.core.commands import LookForRemains
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import (
    AppWrapperGone,
    AppWrapperSeen,
    ChildGone,
    ChildSeen,
    Decide,
    Event,
    NodeSeen,
    PodGone,
    PodSeen,
    QuotaSeen,
    Remaining,
)
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import (
    Child,
    DispatchPhase,
    DispatchRecord,
    Item,
    ObjectRef,
    Persisted,
    PodSet,
    Wanted,
    Workload,
)
from mcad.core.state.quota_records import QuotaSubtree
from mcad.core.state.records import replace
from mcad.core.state.settings import Fairness, Fit, Policy, Settings
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, node
from tests.core.builders import START, appwrapper, pod
from tests.core.quotas import child, subtree

Change = AddNodes | Edit | End | Leave | RaiseQuota


def at_rest(facts: Facts) -> Dispatcher:
    """A dispatcher after its first cycles."""
    dispatcher = Dispatcher(facts.settings)
    for event in facts.events:
        dispatcher.step(event, facts.now)
    _come_to_rest(dispatcher, facts)
    return dispatcher


def _come_to_rest(dispatcher: Dispatcher, facts: Facts) -> None:
    """Cycles follow each other until none starts anything."""
    before = -1
    while before != (count := len(intended(dispatcher))):
        before = count
        dispatcher.step(Decide(), facts.now)


def intended(dispatcher: Dispatcher) -> set[str]:
    """The uids of the AppWrappers that are about to start."""
    entries = dispatcher.cluster.entries.values()
    return {entry.uid for entry in entries if entry.phase is Phase.INTENDING}


def started(facts: Facts, uid: str, *changes: Change) -> bool:
    """Whether the AppWrapper is dispatched in the next cycles, after changes."""
    return uid in everyone(facts, *changes)


def everyone(facts: Facts, *changes: Change) -> set[str]:
    """All that are dispatched then."""
    dispatcher = at_rest(facts)
    for event in (one for change in changes for one in _events(facts, change)):
        for command in dispatcher.step(event, facts.now):
            if isinstance(command, LookForRemains):
                dispatcher.step(Remaining(command.uid, command.attempt, ()), facts.now)
    _come_to_rest(dispatcher, facts)
    return intended(dispatcher)


def _events(facts: Facts, change: Change) -> Iterator[Event]:
    """What is observed of a change that users and administrators make."""
    match change:
        case AddNodes():
            yield from map(NodeSeen, change.nodes())
        case Edit(work):
            yield AppWrapperSeen(work)
        case End(uids) | Leave(uids):
            for uid in uids:
                yield AppWrapperGone(uid)
                yield from _vanished(facts, uid)
        case RaiseQuota(_, after):
            yield from map(QuotaSeen, after)


def _vanished(facts: Facts, uid: str) -> Iterator[Event]:
    for event in facts.events:
        if isinstance(event, ChildSeen) and event.child.workload == uid:
            yield ChildGone(event.child.uid)
        if isinstance(event, PodSeen) and event.pod.workload == uid:
            yield PodGone(event.pod.uid)


# -- random ones ---------------------------------------------------------------------------------


def gang(name: str, sets: Sequence[tuple[int, int]], **changes: object) -> Workload:
    """An AppWrapper with one item of (pods, milli-CPU each) per set."""
    items = tuple(
        Item(ObjectRef("batch", "v1", "jobs", "Job", "default", f"{name}-{n}"))
        for n in range(len(sets))
    )
    made = tuple(
        PodSet(n, 0, f"items[{n}]", pods, (("cpu", milli), ("pods", 1)))
        for n, (pods, milli) in enumerate(sets)
    )
    return replace(appwrapper(name, items, made), **changes)


def settings(rng: Random) -> Settings:
    """Any of the policies; no AppWrapper has run for long enough to be evicted."""
    return replace(
        PATIENT,
        policy=rng.choice((Policy.BEST_EFFORT_FIFO, Policy.BEST_EFFORT_FIFO, Policy.STRICT_FIFO)),
        fairness=rng.choice((Fairness.NONE, Fairness.NONE, Fairness.NAMESPACE, Fairness.LEAF)),
        fit=rng.choice((Fit.NODES, Fit.NODES, Fit.NODES, Fit.AGGREGATE)),
        preemption=rng.random() < 0.3,
        protect_after=0,
        min_run_time=3600 * SECOND,
    )


def shares(rng: Random) -> list[QuotaSubtree]:
    """A root and two teams below it, which may borrow or not."""
    red = child("red", hard=rng.random() < 0.5, cpu=rng.choice((500, 1000)))
    blue = child("blue", cpu=rng.choice((500, 1500)))
    root = child("root", cpu=rng.choice((1500, 3000)))
    return [subtree("root", root), subtree("teams", red, blue, parent="root")]


def world(rng: Random, *, evicts: bool = False) -> Facts:
    """A few nodes, and AppWrappers of which some run, some leave and most wait. ``evicts``: with a
    higher priority one may evict others, and none does as it is."""
    nodes = [node(f"n{n}", rng.choice((600, 1000))) for n in range(rng.randint(1, 4))]
    quotas = shares(rng) if rng.random() < 0.4 and not evicts else []
    free = {one.name: dict(one.allocatable)["cpu"] for one in nodes}
    events: list[Event] = [*map(NodeSeen, nodes), *map(QuotaSeen, quotas)]
    if rng.random() < 0.3:
        free["n0"] -= 200
        events.append(PodSeen(pod("foreign", "n0", "200m")))
    for number in range(rng.randint(4, 10)):
        sizes = rng.choice((1, 1, 1, 2))
        sets = [(rng.randint(1, 4), rng.choice((100, 200, 300, 500))) for _ in range(sizes)]
        quota = (("gold", rng.choice(("red", "blue"))),) if quotas else ()
        made = gang(f"w{number}", sets, priority=rng.choice((0, 0, 0, 1, 3)), quota=quota)
        made = _moved(made, rng.choice(("default", "other")))
        made = replace(made, created=START + number * SECOND)
        made = replace(made, suspended=rng.random() < 0.05)
        life = _life(rng, made, free)
        if evicts and len(life) == 1:
            life = [AppWrapperSeen(replace(made, priority=0), listed=True)]
        events += life
    given = settings(rng)
    if evicts:
        given = replace(given, preemption=True, min_run_time=0)
    return _settled(Facts(given, tuple(events), START + 1000 * SECOND))


def _settled(facts: Facts) -> Facts:
    """The facts without the AppWrappers that would start: they are dispatched long since, and have
    ended."""
    gone = intended(at_rest(facts))
    if not gone:
        return facts
    stay = [one for one in facts.events if _appwrapper(one) not in gone]
    return _settled(replace(facts, events=tuple(stay)))


def _appwrapper(event: Event) -> str:
    return event.workload.uid if isinstance(event, AppWrapperSeen) else ""


def _moved(work: Workload, namespace: str) -> Workload:
    items = [replace(one, ref=replace(one.ref, namespace=namespace)) for one in work.items]
    return replace(work, namespace=namespace, items=tuple(items))


def _life(rng: Random, work: Workload, free: dict[str, int]) -> list[Event]:
    """An AppWrapper that waits, runs or leaves, and what there is of it. All pods are bound: where
    a dispatcher assumes others is not on record, so a fresh one would assume them elsewhere."""
    places = None if work.suspended or rng.random() < 0.4 else _places(rng, work, free)
    if places is None:
        return [AppWrapperSeen(work, listed=True)]
    return running(work, places, is_leaving=rng.random() < 0.15)


def running(
    work: Workload, places: Sequence[tuple[int, str]], *, is_leaving: bool = False
) -> list[Event]:
    """An AppWrapper with an attempt on record, and with a pod of an item at each place."""
    since = work.created + SECOND
    record = DispatchRecord(
        attempt=1,
        epoch=1,
        phase=DispatchPhase.UNDEPLOYING if is_leaving else DispatchPhase.DISPATCHED,
        payload=work.payload,
        inventory=tuple(item.ref for item in work.items),
        since=since,
        confirmed=since,
        entered=since if is_leaving else 0,
        quota=work.quota,
    )
    saved = Persisted("Pending" if is_leaving else "Running", work.created, dispatch=record)
    events: list[Event] = [AppWrapperSeen(replace(work, persisted=saved), listed=True)]
    for number, item in enumerate(work.items):
        made = Child(f"{work.uid}-{number}", item.ref, work.uid, 1, number, is_leaving)
        wants = (Wanted(work.sets[number].replicas),)
        events.append(ChildSeen(replace(made, wants=wants)))
    for number, (item, where) in enumerate(places):
        uid, root = f"{work.uid}-{item}-{number}", f"{work.uid}-{item}"
        milli = dict(work.sets[item].request)["cpu"]
        names = {"of": work.uid, "item": item, "index": 0, "attempt": 1, "root": root}
        made_pod = pod(uid, where, f"{milli}m", **names)
        made_pod = replace(made_pod, namespace=work.namespace, terminating=is_leaving)
        events.append(PodSeen(made_pod))
    return events


def _places(rng: Random, work: Workload, free: dict[str, int]) -> list[tuple[int, str]] | None:
    """(item, node) of each pod if all find room; then the room is taken."""
    left, found = dict(free), []
    for one in work.sets:
        for _ in range(one.replicas):
            milli = dict(one.request)["cpu"]
            fit = [name for name, n in left.items() if n >= milli]
            if not fit:
                return None
            where = rng.choice(fit)
            left[where] -= milli
            found.append((one.item, where))
    free.update(left)
    return found
