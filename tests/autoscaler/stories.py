"""Random stories in a cluster that grows: users, an autoscaler, the moods of a cloud, one fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from random import Random
from typing import Any

from mcad.api.config import Config
from mcad.kube.client import Client
from tests.autoscaler.groups import Group, Moods, StockOut
from tests.autoscaler.standin import STARTUP
from tests.faults.injection import Fault, Plan
from tests.faults.scenarios import Action, Scenario, complete, create, delete, edit, job

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
VIAS = ("ProvisioningRequest", "ProvisioningRequest", "CapacityBuffer", "PlaceholderPods")
FAULTS = (
    Fault.KILLED_BEFORE,
    Fault.KILLED_AFTER,
    Fault.LOST_AFTER,
    Fault.LATE,
    Fault.BROKEN,
    Fault.CHANGED,
)
LAST_S = 900.0
"""When what cannot run is deleted, and stock-outs are over."""
KIND_S = 2000.0
"""From when on the cloud keeps what it promises, so that all stories end."""
FOR_EVER = 100_000.0
MOST = 8  # pods of an AppWrapper


@dataclass(frozen=True)
class Story:
    """One of them. ``kind`` says that the cloud keeps what it promises, and users do nothing."""

    seed: int
    via: str
    groups: tuple[Group, ...]
    moods: Moods
    scenario: Scenario
    plan: Plan
    kind: bool
    said: list[str] = field(default_factory=list)


def story(seed: int, *, kind: bool = False) -> Story:
    """The story of a seed."""
    rng = Random(seed)
    groups = _groups(rng)
    moods = Moods(seed=seed) if kind else _moods(rng, groups)
    via = rng.choice(VIAS)
    said: list[str] = []
    acts, ends = _acts(rng, groups, said, kind=kind)
    timeout = rng.choice((300, 400, 600))  # longer than late nodes take
    config = Config(
        protectAfter=0,
        policy=rng.choice(("BestEffortFIFO", "Backfill")),
        scaleUp={
            "via": via,
            "concurrent": rng.choice((1, 2, 5)),
            "timeout": 600 if kind else timeout,
            "startupTaints": [STARTUP],
        },
    )
    crowded = tuple(ends) if moods.lost else ()
    scenario = Scenario(
        f"growing {seed}",
        (),
        tuple(sorted(acts, key=lambda one: one[0])),
        ends=ends,
        crowded=crowded,
        robbed=crowded,
        config=config,
        settles_s=4000.0,
    )
    return Story(seed, via, groups, moods, scenario, _plan(rng, said), kind, said)


@dataclass(frozen=True)
class Lasting:
    """Gangs that run for ever; ``needed`` are the nodes that suffice."""

    groups: tuple[Group, ...]
    moods: Moods
    scenario: Scenario
    needed: int


def lasting(seed: int) -> Lasting:
    """The world of a seed: pods are of one CPU. In each second one nodes come late or never."""
    rng = Random(seed)
    cpus, pods, acts, now = rng.randint(1, 4), 0, [], 0.0
    names = "abcdef"[: rng.randint(2, 6)]
    for name in names:
        now += rng.choice((0.0, 0.1, 3.0, 40.0))
        count = rng.randint(1, 9)
        pods += count
        acts.append((now, create(complete(name, job(name, count, FOR_EVER)))))
    via = VIAS[seed % len(VIAS)]
    config = Config(protectAfter=0, scaleUp={"via": via, "concurrent": rng.choice((1, 5))})
    ends = dict.fromkeys(names, "Running")
    group = Group("cpus", str(cpus), 60, rng.choice((2.0, 20.0, 60.0)))
    is_kind = seed // len(VIAS) % 2 == 0
    moods = Moods() if is_kind else _scarce(rng)
    settles_s = 400.0 if is_kind else 4000.0
    scenario = Scenario(
        f"lasting {seed}", (), tuple(acts), ends, config=config, settles_s=settles_s
    )
    return Lasting((group,), moods, scenario, ceil(pods / cpus))


def _scarce(rng: Random) -> Moods:
    begins = rng.uniform(0.0, 60.0)
    return Moods(
        [StockOut("cpus", begins, begins + rng.uniform(20.0, 300.0))],
        late=rng.choice((0.0, 0.3)),
        never=rng.choice((0.0, 0.2)),
        until_s=KIND_S,
        seed=rng.randrange(1 << 30),
    )


def _groups(rng: Random) -> tuple[Group, ...]:
    cpus = rng.randint(1, 3)
    groups = [Group("small", str(cpus), rng.randint(3, 8), rng.choice((5.0, 20.0, 60.0)))]
    if rng.random() < 0.4:
        groups.append(Group("large", "6", rng.randint(1, 3), rng.choice((20.0, 90.0))))
    if rng.random() < 0.4:
        taints = [{"key": GPU, "effect": "NoSchedule"}]
        groups.append(Group("gpu", "4", 2, 30.0, extended={GPU: "4"}, taints=taints))
    return tuple(groups)


def _moods(rng: Random, groups: tuple[Group, ...]) -> Moods:
    outs = [
        StockOut(one.name, begins := rng.uniform(0.0, 400.0), begins + rng.uniform(20.0, 300.0))
        for one in groups
        if rng.random() < 0.4
    ]
    return Moods(
        stock_outs=outs,
        late=rng.choice((0.0, 0.3)),
        never=rng.choice((0.0, 0.0, 0.2)),
        lost=rng.choice((0.0, 0.0, 0.3)),
        startup_s=rng.choice((0.0, 10.0)),
        booking_s=rng.choice((120.0, 600.0)),
        until_s=KIND_S,
        seed=rng.randrange(1 << 30),
    )


def _acts(
    rng: Random, groups: tuple[Group, ...], said: list[str], *, kind: bool
) -> tuple[list[tuple[float, Action]], dict[str, str]]:
    acts: list[tuple[float, Action]] = []
    ends: dict[str, str] = {}
    now = 0.0
    for name in "abcdef"[: rng.randint(2, 6)]:
        now += rng.choice((0.0, 0.1, 3.0, 40.0))
        made, fits = _gang(rng, groups, name)
        acts.append((now, create(made)))
        ends[name] = "Completed" if fits else ""
        said.append(f"{now:.1f} create {name}: {_told(made)}{'' if fits else ', too large'}")
        if not fits:
            acts.append((LAST_S, _softly(delete(name))))
        if kind or rng.random() < 0.6:
            continue
        later = now + rng.uniform(0.0, 120.0)
        what = rng.choice(("delete", "suspend", "rank"))
        said.append(f"{later:.1f} {what} {name}")
        acts += [(at, _softly(act)) for at, act in _change(what, name, later)]
        ends[name] = "" if not fits or what == "delete" else "*"
    return acts, ends if kind else dict.fromkeys(ends, "*") | {
        n: e for n, e in ends.items() if not e
    }


def _change(what: str, name: str, at: float) -> list[tuple[float, Action]]:
    if what == "delete":
        return [(at, delete(name))]
    if what == "rank":
        return [(at, edit(name, {"spec": {"priority": 5}}))]
    return [
        (at, edit(name, {"spec": {"suspend": True}})),
        (at + 60.0, edit(name, {"spec": {"suspend": False}})),
    ]


def _softly(act: Action) -> Action:
    """A user does it, if it can be done."""

    async def done(client: Client) -> None:
        from contextlib import suppress

        from mcad.kube.errors import KubeError

        with suppress(KubeError):
            await act(client)

    return done


def _gang(rng: Random, groups: tuple[Group, ...], name: str) -> tuple[Json, bool]:
    """Pods of one CPU; now and then more than any group has, and pods with GPUs."""
    small = groups[0]
    room = max(int(one.cpu) * one.largest for one in groups if not one.taints)
    pods, too_large = rng.randint(1, MOST), rng.random() < 0.1
    pods = room + rng.randint(1, 5) if too_large else min(pods, room)
    fits_one_group = pods <= int(small.cpu) * small.largest or pods <= room
    items = [job(name, pods, rng.choice((20, 60, 200)))]
    if any(one.taints for one in groups) and rng.random() < 0.5:
        items.append(_with_gpus(job(f"{name}-gpu", rng.randint(1, 2), 60)))
    made = complete(name, *items, priority=rng.choice((0, 0, 5)))
    return made, fits_one_group and not too_large


def _with_gpus(made: Json) -> Json:
    spec = made["spec"]["template"]["spec"]
    resources = spec["containers"][0]["resources"]
    resources["requests"][GPU] = "4"
    resources["limits"] = {GPU: "4"}
    spec["tolerations"] = [{"key": GPU, "operator": "Exists"}]
    return made


def _told(made: Json) -> str:
    objs = [one["generictemplate"] for one in made["spec"]["resources"]["GenericItems"]]
    return ", ".join(f"{one['metadata']['name']}x{one['spec']['parallelism']}" for one in objs)


def _plan(rng: Random, said: list[str]) -> Plan:
    if rng.random() < 0.4:
        return Plan()
    fault, at = rng.choice(FAULTS), rng.randint(0, 60)
    said.append(f"{fault.value}: write {at}")
    return Plan(writes=lambda number: fault if number == at else None)
