"""Histories that nobody thought of: what users do at random, and what goes wrong meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from mcad.api.config import Config
from mcad.kube.client import Client
from mcad.kube.errors import KubeError
from mcad.kube.kinds import CONFIG_MAPS, DEPLOYMENTS, NODES, PODS
from mcad.kube.resource import Resource
from tests import manifests
from tests.faults.injection import Fault, Gap, Plan
from tests.faults.meddling import Edit
from tests.faults.scenarios import (
    NAMESPACE,
    QUIET,
    Action,
    Json,
    Scenario,
    complete,
    create,
    delete,
    deployment,
    edit,
    job,
    pod,
)
from tests.manifests import components, config_map, generic

JOBS = Resource("batch", "v1", "jobs", "Job")
KINDS = (CONFIG_MAPS, DEPLOYMENTS, PODS, JOBS)
PAUSES_S = (0.0, 0.01, 0.05, 0.3, 1.0, 3.0, 8.0, 30.0, 90.0)
KEEP = ["example.com/keep"]
CONFIGS = (
    QUIET,
    Config(policy="StrictFIFO"),
    Config(headOfLineHoldingTime=20, protectAfter=0),
)
FAULTS_AT_MOST, GAPS_AT_MOST = 3, 2
WRITES, EVENTS = 40, 110  # among so many faults and gaps are spread; a history has about as many


@dataclass
class History:
    """One that is being written down; ``said`` is how to tell it."""

    rng: Random
    names: str
    acts: list[tuple[float, Action]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    is_disturbed: bool = False  # by others: their pods and what they orphan take room, and names
    is_robbed: bool = False
    now: float = 0.0

    def then(self, said: str, act: Action, later: float = 0.0) -> None:
        """Somebody does it, if it can be done."""

        async def softly(client: Client) -> None:
            with suppress(KubeError):
                await act(client)

        self.acts.append((self.now + later, softly))
        self.said.append(f"{self.now + later:.2f} {said}")

    def go_on(self) -> None:
        """One more act."""
        self.now += self.rng.choice(PAUSES_S)
        name, number = self.rng.choice(self.names), self.rng.randint(0, 2)
        (act,) = self.rng.choices(_ACTS, _ODDS)
        act(self, name, self.rng.choice((f"{name}-{number}", f"shared-{number}")))

    def create(self, name: str, _: str) -> None:
        made = _wrapper(self.rng, name)
        self.then(f"create {name}: {_told(made['spec'])}", create(made))

    def edit(self, name: str, _: str) -> None:
        spec = _wrapper(self.rng, name)["spec"]
        self.then(f"edit {name}: {_told(spec)}", edit(name, {"spec": spec}))

    def suspend(self, name: str, _: str) -> None:
        is_suspended = self.rng.random() < 0.5
        self.then(f"suspend {name} {is_suspended}", edit(name, {"spec": {"suspend": is_suspended}}))

    def delete(self, name: str, _: str) -> None:
        cascade = self.rng.choice(("Background", "Background", "Foreground", "Orphan"))
        self.is_disturbed |= cascade == "Orphan"
        self.then(f"delete {name} {cascade}", delete(name, cascade=cascade))

    def rob(self, _: str, item: str) -> None:
        kind, self.is_robbed = self.rng.choice(KINDS), True
        self.then(f"delete {kind.kind} {item}", delete(item, kind))

    def keep(self, _: str, item: str) -> None:
        kind = self.rng.choice(KINDS)
        for finalizers, later in ((KEEP, 0.0), (None, 150.0)):
            patch = {"metadata": {"finalizers": finalizers}}
            self.then(f"{kind.kind} {item} {patch}", edit(item, patch, kind), later)

    def intrude(self, name: str, item: str) -> None:
        self.is_disturbed = True
        others = manifests.pod(self.rng.choice((item, f"other-{name}")), "1", 20)
        name = others["metadata"]["name"]
        self.then(f"another pod {name}", lambda user: user.create(PODS, NAMESPACE, others))

    def cordon(self, *_: str) -> None:
        node, self.is_disturbed = f"node-{self.rng.randint(0, 2)}", True
        for cordoned, later in ((True, 0.0), (None, 100.0)):
            patch = {"spec": {"unschedulable": cordoned}}
            self.then(
                f"{node} {patch}", lambda user, p=patch: user.patch(NODES, None, node, p), later
            )

    def lose_node(self, *_: str) -> None:
        node, self.is_disturbed, self.is_robbed = f"node-{self.rng.randint(0, 2)}", True, True
        self.then(f"delete {node}", lambda user: user.delete(NODES, None, node))


_ACTS = (
    History.create,
    History.suspend,
    History.delete,
    History.edit,
    History.rob,
    History.keep,
    History.intrude,
    History.cordon,
    History.lose_node,
)
_ODDS = (35, 20, 15, 10, 10, 3, 3, 2, 2)


def _item(rng: Random, name: str) -> Json:
    makers = (
        lambda: config_map(name),
        lambda: deployment(name, rng.randint(1, 3)),
        lambda: job(name, rng.randint(1, 2), rng.choice((3, 20, 60)), rng.choice((1, 1, 2))),
        lambda: pod(name),
        lambda: manifests.pod(name, "1", rng.choice((3, 20))),
    )
    return rng.choice(makers)()


def _wrapper(rng: Random, name: str) -> Json:
    items = [
        _item(rng, rng.choice((f"{name}-{number}", f"{name}-{number}", f"shared-{number}")))
        for number in range(rng.randint(1, 3))
    ]
    priority = rng.choice((0, 0, 5))
    made = rng.choice(
        (
            generic(name, *items, priority=priority),
            components(name, *items, priority=priority),
            complete(name, *items, priority=priority, word="Complete, Succeeded, Available"),
        )
    )
    if rng.random() < 0.1:
        made["spec"]["suspend"] = True
    return made


def _told(spec: Json) -> str:
    """``ConfigMap/a-0 Deployment/a-1x3 {'priority': 5}``."""
    made = spec.get("components") or spec["resources"]["GenericItems"]
    objs = [one.get("template") or one["generictemplate"] for one in made]
    sizes = [obj.get("spec", {}).get("replicas", "") for obj in objs]
    items = [
        f"{obj['kind']}/{obj['metadata']['name']}{size and f'x{size}'}"
        for obj, size in zip(objs, sizes, strict=True)
    ]
    rest = {key: value for key, value in spec.items() if key not in ("components", "resources")}
    return " ".join((*items, str(rest)))


def history(rng: Random) -> tuple[History, Scenario]:
    """Up to nine acts on two or three AppWrappers and as many nodes."""
    told = History(rng, rng.choice(("ab", "abc")))
    told.create(told.names[0], "")
    for _ in range(rng.randint(3, 8)):
        told.go_on()
    cpus = tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 3)))
    names = (*told.names, "")
    scenario = Scenario(
        "at random",
        cpus,
        tuple(sorted(told.acts, key=lambda one: one[0])),
        ends={},
        crowded=names if told.is_disturbed else (),
        robbed=names if told.is_robbed else (),
        config=rng.choice(CONFIGS),
        settles_s=1200.0,
    )
    return told, scenario


def trouble(rng: Random, faults: Sequence[Fault | Edit]) -> Plan:
    """A few faults and gaps somewhere, and now and then an outage."""
    writes: dict[int, Fault | Edit] = {
        rng.randrange(WRITES): rng.choice(faults) for _ in range(rng.randint(0, FAULTS_AT_MOST))
    }
    events = {
        rng.randrange(EVENTS): rng.choice(tuple(Gap)) for _ in range(rng.randint(0, GAPS_AT_MOST))
    }
    if rng.random() < 0.25:
        outage = rng.choice((Fault.LOST_AFTER, Fault.NOT_FOUND, Fault.BROKEN))
        begin = rng.randrange(WRITES)
        for number in range(begin, begin + rng.randint(2, 8)):
            writes.setdefault(number, outage)
    return Plan(writes.get, events.get)
