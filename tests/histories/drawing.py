"""What a history has, drawn by its seed: AppWrappers, nodes, what users do, what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from mcad.api.config import Config
from tests.histories import objects
from tests.histories.objects import Item
from tests.manifests import bearing

Json = dict[str, Any]
LASTS_S = 1500.0  # from the first submission to the last look
SIM = "sim.mcad.dev/"
WRAPPER, TEAM = "example.com/wrapper", "example.com/team"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
APART_SHARE = 0.35  # of the AppWrappers have pods that keep off others

WRAPPED = [
    *(one.model_dump(by_alias=True) for one in Config().wrapped_resources),
    {"apiGroup": "example.com", "resources": ["widgets"]},
]

GRACES_S = {"admission": 60.0, "warmup": 300.0, "failure": 60.0}
"""Those of v1beta2 by default."""

SHORT_S = {"admission": 15.0, "warmup": 60.0, "failure": 15.0}
SHORT = {f"{name}GracePeriodDuration": f"{grace_s:.0f}s" for name, grace_s in SHORT_S.items()}
"""Shorter ones, as annotations."""

FAULTS = {"pull-fails-for", "config-fails-for", "mount-fails-for", "fail-after"}
MOODS = {"start-delay", "ready-after", *FAULTS}


class Act(NamedTuple):
    """What happens at a time: ``what`` is a method of the world, with these arguments."""

    at_s: float
    what: str
    arguments: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.at_s:.0f} s: {self.what} {' '.join(map(str, self.arguments))}"


@dataclass(frozen=True, slots=True)
class Submitted:
    """One AppWrapper."""

    name: str
    obj: Json
    items: tuple[Item, ...]
    is_v1beta2: bool
    graces_s: Mapping[str, float]

    def declared(self) -> dict[str, int]:
        """Pods by set."""
        return {name: count for item in self.items for name, count in item.declared.items()}

    def item_of(self, pod_set: str) -> Item:
        """The item with a pod set."""
        return next(item for item in self.items if pod_set in item.declared)


@dataclass
class History:
    """One history; ``moods`` are annotations of the pods of a set, or of one index of it.
    ``sidecars`` are the CPUs that a webhook adds to each pod of a set."""

    seed: int
    rng: Random
    config: Config
    cpus: tuple[int, ...]
    submitted: list[Submitted] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    moods: dict[str, Json] = field(default_factory=dict)
    gates_s: dict[str, float] = field(default_factory=dict)
    apart: dict[str, Json] = field(default_factory=dict)  # a term of anti-affinity, by pod set
    sidecars: dict[str, str] = field(default_factory=dict)
    lags_s: dict[str, float] = field(default_factory=dict)

    @property
    def keeps_off_others(self) -> bool:
        """Whether pods keep off what no fit test looks at: pods of other AppWrappers, and zones."""
        return any(term["topologyKey"] != HOST or TEAM in str(term) for term in self.apart.values())

    def told(self) -> list[str]:
        """What happens in it."""
        config = self.config.model_dump(exclude_defaults=True, exclude={"wrapped_resources"})
        lines = [f"nodes of {self.cpus} CPUs, {config}"]
        for one in self.submitted:
            dialect = "v1beta2" if one.is_v1beta2 else "v1beta1"
            items = [f"{item.kind} {dict(item.declared)}" for item in one.items]
            lines.append(f"{one.name} {dialect} {dict(one.graces_s)}: {'; '.join(items)}")
        lines += [f"pods of {name}: {mood}" for name, mood in self.moods.items()]
        lines += [f"gates of {name}: {wait_s} s" for name, wait_s in self.gates_s.items()]
        lines += [f"pods of {name} keep off {term}" for name, term in self.apart.items()]
        lines += [f"to pods of {name} a webhook adds {cpu}" for name, cpu in self.sidecars.items()]
        lines += [f"lags: {self.lags_s}"] if self.lags_s else []
        return lines + [str(act) for act in self.acts]


def drawn(seed: int) -> History:
    """The history of a seed."""
    rng = Random(f"history {seed}")
    cpus = tuple(rng.choice((2, 3, 4, 6)) for _ in range(rng.choice((1, 1, 2, 3))))
    history = History(seed, rng, _config(rng), cpus)
    for number in range(rng.choice((1, 1, 2, 2, 3, 4))):
        _submit(history, f"w{number}", rng.choice((0.0, 0.0, 5.0, 40.0, 200.0)))
    for _ in range(rng.choice((0, 0, 1, 2, 3, 4, 5))):
        rng.choice(TROUBLES)(history)
    history.acts.sort(key=lambda act: act.at_s)
    _inject(history)
    return history


def _inject(history: History) -> None:
    """A webhook adds a container to the pods of some sets. Drawn by itself, so that a history
    without it is what it was."""
    rng = Random(f"sidecars {history.seed}")
    if rng.random() < 0.1:
        for one in history.submitted:
            for item in one.items:
                for pod_set in item.declared:
                    if rng.random() < 0.7:
                        history.sidecars[pod_set] = rng.choice(("100m", "500m", "1"))


def _config(rng: Random) -> Config:
    return Config(
        placementTimeout=rng.choice((300, 300, 60)),
        preemption=rng.random() < 0.2,
        protectAfter=0,
        policy=rng.choice(("BestEffortFIFO", "BestEffortFIFO", "Backfill")),
        dispatchResourceReservationTimeout=rng.choice((300_000, 300_000, 60_000)),
        wrappedResources=WRAPPED,
    )


def _submit(history: History, name: str, at_s: float) -> None:
    rng = history.rng
    count = rng.choice((1, 1, 1, 2))
    items = [rng.choice(objects.MAKERS)(rng, f"{name}-{number}") for number in range(count)]
    _keep_apart(history, name, items)
    is_v1beta2 = rng.random() < 0.5
    obj = objects.wrapped(name, "v1beta2" if is_v1beta2 else "v1beta1", items)
    notes = SHORT if rng.random() < 0.4 else {}
    if notes:
        bearing(obj, **notes, retryPausePeriodDuration="10s", retryLimit=str(rng.choice((0, 1, 3))))
    if not is_v1beta2:
        obj["spec"]["priority"] = rng.choice((0, 0, 5))
    wrapper = Submitted(name, obj, tuple(items), is_v1beta2, SHORT_S if notes else GRACES_S)
    history.submitted.append(wrapper)
    history.acts.append(Act(at_s, "submit", (name,)))
    for item in items:
        for pod_set in item.declared:
            _mood(history, pod_set)


def _keep_apart(history: History, name: str, items: list[Item]) -> None:
    """Required anti-affinity of some sets of some AppWrappers: off pods of their own, of another
    set, of all sets, or of whatever bears the label of the team, on a node or, rarely, in a
    zone."""
    rng = Random(f"apart {history.seed} {name}")
    if rng.random() >= APART_SHARE:
        return
    made = objects.templates([item.obj for item in items])
    sets = [one["metadata"]["labels"][objects.SET] for one in made]
    for one in made:
        tags = one["metadata"]["labels"]
        tags |= {WRAPPER: name} | ({TEAM: "x"} if rng.random() < 0.5 else {})
        own, other = tags[objects.SET], rng.choice(sets)
        key, value = rng.choice(
            [(objects.SET, own), (objects.SET, other), (objects.SET, other), (WRAPPER, name)]
            + [(TEAM, "x")] * (rng.random() < 0.3)
        )
        if rng.random() < 0.3:
            continue
        term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {key: value}}}
        if rng.random() < 0.06:
            term["topologyKey"] = ZONE
        elif rng.random() < 0.2:
            term |= {"matchLabelKeys": [rng.choice((objects.SET, WRAPPER))]}
        history.apart[own] = term
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        one["spec"]["affinity"] = {"podAntiAffinity": required}


def _mood(history: History, pod_set: str) -> None:
    """How the pods of a set live; those of most sets have nothing special."""
    rng = history.rng
    moods: tuple[Json, ...] = (
        {"start-delay": f"{rng.choice((20, 90, 200))}s"},
        {"pull-fails-for": rng.choice(("30s", "120s", "ever"))},
        {rng.choice(("config-fails-for", "mount-fails-for")): rng.choice(("40s", "ever"))},
        {"ready-after": f"{rng.choice((20, 60, 120))}s"},
        {"fail-after": f"{rng.choice((5, 40))}s", "only": rng.choice(("first", "index 0", "all"))},
    )
    if rng.random() < 0.35:
        history.moods[pod_set] = rng.choice(moods)
    if rng.random() < 0.07:
        history.gates_s[pod_set] = rng.choice((10.0, 100.0, 400.0))


# -- what users do -------------------------------------------------------------------------------


def _item(history: History, *kinds: str) -> Item | None:
    found = [
        item for one in history.submitted for item in one.items if not kinds or item.kind in kinds
    ]
    return history.rng.choice(found) if found else None


def _time(history: History) -> float:
    return history.rng.choice((15.0, 60.0, 150.0, 400.0)) + history.rng.uniform(0, 60)


def _scale(history: History) -> None:
    kinds = ("Deployment", "StatefulSet", "RayCluster", "LeaderWorkerSet")
    if (item := _item(history, *kinds)) is not None:
        count = history.rng.choice((0, 1, 3, 5))
        history.acts.append(Act(_time(history), "scale", (item.kind, item.name, count)))


def _roll(history: History) -> None:
    if (item := _item(history, "Deployment")) is not None:
        history.acts.append(Act(_time(history), "roll", (item.kind, item.name)))


def _suspend(history: History) -> None:
    item = _item(history, "Job", "JobSet", "RayCluster", "RayJob")
    if item is None:
        return
    at_s, part = _time(history), ""
    if item.kind == "RayCluster" and history.rng.random() < 0.5:
        part = "group"
    history.acts.append(Act(at_s, "suspend_item", (item.kind, item.name, True, part)))
    if history.rng.random() < 0.6:
        again_s = at_s + history.rng.choice((30.0, 200.0))
        history.acts.append(Act(again_s, "suspend_item", (item.kind, item.name, False, part)))


def _suspend_wrapper(history: History) -> None:
    at_s, name = _time(history), history.rng.choice(history.submitted).name
    history.acts.append(Act(at_s, "suspend", (name, True)))
    history.acts.append(Act(at_s + history.rng.choice((20.0, 150.0)), "suspend", (name, False)))


def _delete_item(history: History) -> None:
    if (item := _item(history)) is not None:
        history.acts.append(Act(_time(history), "delete_item", (item.kind, item.name)))


def _delete_wrapper(history: History) -> None:
    name = history.rng.choice(history.submitted).name
    history.acts.append(Act(_time(history), "delete", (name,)))


def _delete_pod(history: History) -> None:
    number = history.rng.randint(0, 9)
    history.acts.append(Act(_time(history), "delete_pod", (number,)))


# -- what goes wrong -----------------------------------------------------------------------------


def _evict(history: History) -> None:
    """A pod is evicted by request, as ``kubectl drain`` does."""
    history.acts.append(Act(_time(history), "evict", (history.rng.randint(0, 9),)))


def _lose_node(history: History) -> None:
    at_s, node = _time(history), f"n{history.rng.randrange(len(history.cpus))}"
    history.acts.append(Act(at_s, history.rng.choice(("lose", "silence")), (node,)))
    if history.rng.random() < 0.6:
        more_s = history.rng.choice((20.0, 100.0, 300.0))
        history.acts.append(Act(at_s + more_s, "recover", (node,)))


def _cordon(history: History) -> None:
    at_s, node = history.rng.choice((0.0, 0.05, 1.0, 100.0)), f"n{len(history.cpus) - 1}"
    history.acts.append(Act(at_s, "cordon", (node, True)))
    history.acts.append(Act(at_s + history.rng.choice((60.0, 500.0)), "cordon", (node, False)))


def _intrude(history: History) -> None:
    """A pod of another user, before or over the pods of AppWrappers."""
    at_s = history.rng.choice((0.0, 0.02, 30.0, 200.0))
    is_urgent = history.rng.random() < 0.6
    lasts_s = history.rng.choice((60, 200, 600))
    history.acts.append(Act(at_s, "intrude", (len(history.acts), is_urgent, lasts_s)))


def _refuse(history: History) -> None:
    """The API server refuses pods for a while."""
    at_s = history.rng.choice((0.0, 30.0, 200.0))
    history.acts.append(Act(at_s, "refuse", (True,)))
    history.acts.append(Act(at_s + history.rng.choice((20.0, 150.0, 500.0)), "refuse", (False,)))


def _restart(history: History) -> None:
    gap_s = history.rng.choice((0.5, 10.0, 60.0, 200.0))
    history.acts.append(Act(_time(history), "restart", (gap_s,)))


def _lag(history: History) -> None:
    name = history.rng.choice(("Scheduler", "JobController", "ReplicaSetController", "Kubelet"))
    history.lags_s[name] = history.rng.choice((0.5, 3.0))


TROUBLES = (
    *(_scale, _scale, _roll, _suspend, _suspend, _suspend_wrapper, _delete_item),
    *(_delete_wrapper, _delete_pod, _evict, _lose_node, _lose_node, _cordon, _intrude, _intrude),
    *(_refuse, _restart, _restart, _lag),
)
