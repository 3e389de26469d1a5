"""``kill -9`` at random moments, thirty AppWrappers: nothing lost, nothing doubled.

A moment is a number of writes after the start, which the API server's audit log counts, and a few
milliseconds: so it falls between the writes of a dispatch, into a teardown, or into the start.
The judge in the end is a bystander that watched every object come and go.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import budget
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import LONG, Bystander, Sight, ours, wait_until_quiet, writes
from tests.e2e.process import SHORT_LEASE, Dispatcher
from tests.e2e.support import appwrappers, appwrappers_path, create, get, patch, state
from tests.manifests import components, config_map, deployment, generic, job, pod

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

SEED = int(os.environ.get("KILL_SEED", "20260727"))  # another one to look for more
KILLS = 20 if budget.SOAK else 9
WRITES_MAX = 9  # of one life; thirty AppWrappers need some 150
LIFE_SECONDS = 5.0  # of a life without that many writes, the wait for the lease included
# Each life begins when the lease of the one before has run out.
SLOT = "example.com/slot"
WATCHED = (
    appwrappers_path(),
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/configmaps",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/batch/v1/namespaces/default/jobs",
)

SINGLE = [f"single-{number}" for number in range(6)]
SLOTS = [f"slot-{number}" for number in range(6)]
BUNDLES = [f"bundle-{number}" for number in range(4)]
PAIRS = [f"pair-{number}" for number in range(4)]
JOBS = [f"job-{number}" for number in range(3)]
SERVICES = [f"service-{number}" for number in range(3)]
SUSPENDED = [f"suspended-{number}" for number in range(4)]
ENDLESS = {*SERVICES, *SUSPENDED}


def fleet(rng: random.Random) -> list[list[Json]]:
    """Thirty AppWrappers, of which not half fit at once, in rounds: none has two of one shape."""
    made = [generic(name, pod(name, "900m", 1), completion="Succeeded") for name in SINGLE]
    # One slot in all, so that at most one of these can hold an intent.
    made += [components(name, pod(name, "50m", 0.5, {SLOT: "1"})) for name in SLOTS]
    for name in BUNDLES:
        parts = config_map(f"{name}-a"), pod(f"{name}-b", "400m", 1), pod(f"{name}-c", "400m", 1)
        made.append(components(name, *parts))
    for name in PAIRS:
        parts = pod(f"{name}-a", "600m", 1), config_map(f"{name}-b")
        made.append(generic(name, *parts, completion="Succeeded"))
    made += [generic(name, job(name, 2, "300m", 1), completion="Complete") for name in JOBS]
    made += [generic(name, deployment(name, 2, "100m")) for name in SERVICES]
    made += [components(name, config_map(f"{name}-a"), deployment(name, 1)) for name in SUSPENDED]
    rng.shuffle(made)
    rounds: dict[int, list[Json]] = defaultdict(list)
    for one in made:
        rounds[int(one["metadata"]["name"].rpartition("-")[2])].append(one)
    return [rounds[number] for number in sorted(rounds)]


class Killer:
    """Starts the dispatcher and kills it, again and again."""

    def __init__(self, plane: ControlPlane, account: Path, rng: random.Random) -> None:
        self._plane = plane
        self._rng = rng
        self.dispatcher = Dispatcher(plane, account, *SHORT_LEASE)
        self.moments: list[int] = []

    def live_and_die(self) -> None:
        """One life, of a random number of writes and some milliseconds."""
        wanted, more = self._rng.randint(0, WRITES_MAX), self._rng.uniform(0, 0.03)
        mark, started = self._plane.audit_mark(), time.monotonic()
        self.dispatcher.start(ready=False)
        while time.monotonic() - started < LIFE_SECONDS:
            seen = ours(self._plane.audit(mark))
            if seen and len(writes(seen)) >= wanted:
                break
            time.sleep(0.002)
        time.sleep(more)
        self.dispatcher.kill()
        self.moments.append(len(writes(self._plane.audit(mark))))


def test_killed_again_and_again(control_plane: ControlPlane, account: Path) -> None:
    plane, rng = control_plane, random.Random(SEED)
    print(f"seed {SEED}")
    plane.add_node("node", cpu="4", memory="64Gi", extended={SLOT: "1"})
    bystander = Bystander(plane, *WATCHED)
    mark = plane.audit_mark()
    killer = Killer(plane, account, rng)
    rounds = fleet(rng)
    for kill in range(KILLS):
        if rounds:
            # creationTimestamp has seconds only: age has to show in it.
            time.sleep(1.01 - time.time() % 1)
            create(plane, *rounds.pop(0))
        killer.live_and_die()
        suspend_some(plane, kill)
    print(f"writes per life: {killer.moments}")

    for name in SUSPENDED:
        patch(plane, name, {"spec": {"suspend": False}})
    with Dispatcher(plane, account):
        plane.wait_for(lambda: all_are_through(plane), LONG, "the end of the queue")
        turn_over(plane)
        plane.wait_for(lambda: all_are_through(plane), LONG, "the end of the queue, once more")
        wait_until_quiet(plane)
        found, sights, entries = appwrappers(plane), bystander.sights(), plane.audit(mark)
    assert "trace" not in killer.dispatcher.log().lower()
    assert len(found) == 30
    check_that_nothing_is_doubled(found, sights)
    check_creations(found, entries)
    check_that_attempts_do_not_overlap(sights)
    check_that_everything_is_there(found, sights)
    check_the_slot(sights)
    check_order(found, sights)


def suspend_some(plane: ControlPlane, kill: int) -> None:
    """Each of them is suspended twice while no dispatcher runs, and let go a kill or two later."""
    for number, name in enumerate(SUSPENDED):
        since = kill - 6 - number
        if since in (0, 4):
            patch(plane, name, {"spec": {"suspend": True}})
        elif since in (1, 6):
            patch(plane, name, {"spec": {"suspend": False}})


def turn_over(plane: ControlPlane) -> None:
    """Suspend what runs and let it go as soon as it is being taken back."""
    for name in SUSPENDED:
        patch(plane, name, {"spec": {"suspend": True}})
    for name in SUSPENDED:
        plane.wait_for(lambda name=name: is_taken_back(get(plane, name)), LONG, f"{name} goes")
        patch(plane, name, {"spec": {"suspend": False}})


def is_taken_back(appwrapper: Json) -> bool:
    return appwrapper["status"]["dispatch"]["phase"] in ("undeploying", "released")


def all_are_through(plane: ControlPlane) -> bool:
    """Every AppWrapper is in the state that its manifest leads to."""
    states = {name: state(one) for name, one in appwrappers(plane).items()}
    return all(
        found == ("Running" if name in ENDLESS else "Completed") for name, found in states.items()
    )


def items(sights: list[Sight]) -> Iterator[Sight]:
    """What the bystander saw of wrapped objects."""
    return (one for one in sights if one.is_item and one.kind != "AppWrapper")


def check_that_nothing_is_doubled(found: dict[str, Json], sights: list[Sight]) -> None:
    """At most one object per AppWrapper, attempt and item, however often it was deleted."""
    uids = {one["metadata"]["uid"]: one for one in found.values()}
    made: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for sight in items(sights):
        made[sight.made_for].add(sight.uid)
    assert {key: objects for key, objects in made.items() if len(objects) > 1} == {}
    for uid, attempt, _ in made:
        assert 1 <= int(attempt) <= uids[uid]["status"]["dispatch"]["attempt"]


def check_creations(found: dict[str, Json], entries: list[Any]) -> None:
    """The audit log agrees: no more successful creations of a name than there were attempts.

    There may be fewer: it does not say 201 if the dispatcher was killed before the answer, although
    the object exists.
    """
    made = Counter((one.resource, one.name) for one in writes(entries) if is_creation(one))
    attempts = {
        (line["resource"], line["name"]): one["status"]["dispatch"]["attempt"]
        for one in found.values()
        for line in one["status"]["dispatch"]["inventory"]
    }
    asked = Counter(one.code for one in writes(entries) if one.verb == "create")
    print(f"answers to creations {asked}, items by attempt {Counter(attempts.values())}")
    assert all(found[name]["status"]["dispatch"]["attempt"] > 1 for name in SUSPENDED)
    assert made.keys() <= attempts.keys()
    assert {what: count for what, count in made.items() if count > attempts[what]} == {}


def is_creation(entry: Any) -> bool:
    return bool(entry.verb == "create" and entry.code == 201)


def check_that_attempts_do_not_overlap(sights: list[Sight]) -> None:
    """Never an object or pod of one attempt beside one of another (protocol P4 c)."""
    alive: dict[str, dict[str, str]] = defaultdict(dict)
    for sight in sights:
        owner, attempt, _ = sight.made_for
        if not owner or sight.kind == "AppWrapper":
            continue
        if sight.type == "DELETED":
            alive[owner].pop(sight.uid, None)
            continue
        alive[owner][sight.uid] = attempt
        assert len(set(alive[owner].values())) == 1, (sight, alive[owner])


def check_that_everything_is_there(found: dict[str, Json], sights: list[Sight]) -> None:
    """All or nothing at rest: every item of the recorded attempt exists, and nothing else does."""
    there: dict[str, set[tuple[str, str, str, str]]] = defaultdict(set)
    for sight in items(sights):
        owner, attempt, item = sight.made_for
        key = (sight.kind, sight.name, attempt, item)
        (there[owner].discard if sight.type == "DELETED" else there[owner].add)(key)
    for one in found.values():
        record = one["status"]["dispatch"]
        assert record["phase"] == "dispatched"
        wanted = {
            (line["kind"], line["name"], str(record["attempt"]), str(number))
            for number, line in enumerate(record["inventory"])
        }
        assert there[one["metadata"]["uid"]] == wanted


def intents(sights: list[Sight]) -> dict[str, str]:
    """Name -> time of the first intent that the bystander saw."""
    first: dict[str, str] = {}
    for sight in sights:
        record = sight.object.get("status", {}).get("dispatch", {})
        if sight.kind == "AppWrapper" and record.get("attempt") == 1:
            first.setdefault(sight.name, record["intentTime"])
    return first


def check_the_slot(sights: list[Sight]) -> None:
    """There is one slot: each waits until the pod before it has ended, and all go in order."""
    ended: set[str] = set()
    for sight in sights:
        if sight.kind == "Pod" and sight.name in SLOTS:
            earlier = SLOTS[: SLOTS.index(sight.name)]
            assert ended.issuperset(earlier), sight.name
            if sight.object["status"]["phase"] == "Succeeded":
                ended.add(sight.name)
    times = [intents(sights)[name] for name in SLOTS]
    assert times == sorted(set(times))


def check_order(found: dict[str, Json], sights: list[Sight]) -> None:
    """Of equal shape, none overtakes within one life.

    Intents are in flight together. So a kill may let a younger one's be the last that was written,
    but the older one had its place beside it, and is the first of its shape in the next life.
    """
    first = intents(sights)
    epochs = epochs_of_intents(sights)
    for shape in (SINGLE, BUNDLES, PAIRS, JOBS, SERVICES, SUSPENDED):
        seen = [found[name]["status"]["controllerfirsttimestamp"] for name in shape]
        assert seen == sorted(set(seen))
        for epoch in sorted(set(epochs.values())):
            mine = [first[name] for name in shape if epochs[name] == epoch]
            assert mine == sorted(mine)
        for older, younger in pairwise(shape):
            if first[younger] < first[older]:
                assert epochs[younger] < epochs[older]


def epochs_of_intents(sights: list[Sight]) -> dict[str, int]:
    """Name -> epoch of the first intent."""
    first: dict[str, int] = {}
    for sight in sights:
        record = sight.object.get("status", {}).get("dispatch", {})
        if sight.kind == "AppWrapper" and record.get("attempt") == 1:
            first.setdefault(sight.name, record["epoch"])
    return first
