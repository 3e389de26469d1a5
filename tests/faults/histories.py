"""Random histories: what users do, and what goes wrong meanwhile.

Some are ``contested``: there is less room than is asked for, teams have shares of it, and by
settings that are drawn as well, and changed from life to life, some get reservations on what others
have. They end with room for all, or with none in the way: then every AppWrapper that can run has
to."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from mcad.api.config import Config
from mcad.core.state.settings import Policy
from mcad.kube.client import Client, Selection
from mcad.kube.errors import KubeError
from mcad.kube.kinds import APPWRAPPERS, CONFIG_MAPS, DEPLOYMENTS, NODES, PODS, QUOTA_SUBTREES
from mcad.kube.resource import Resource
from tests import manifests
from tests.faults.scenarios import (
    NAMESPACE,
    QUIET,
    TREE,
    Action,
    Json,
    Scenario,
    complete,
    create,
    define,
    delete,
    deployment,
    edit,
    job,
    pod,
    pods_to_come,
    resize,
)
from tests.faults.upheavals import GUESTS, NAMESPACES
from tests.manifests import components, config_map, generic, subtree

JOBS = Resource("batch", "v1", "jobs", "Job")
KINDS = (CONFIG_MAPS, DEPLOYMENTS, PODS, JOBS)
PAUSES_S = (0.0, 0.01, 0.05, 0.3, 1.0, 3.0, 8.0, 30.0, 90.0)
GUEST = "guest"
KEEP = ["example.com/keep"]
APART, APART_SHARE = "example.com/apart", 0.3
CONFIGS = (QUIET, Config(policy="StrictFIFO"), Config(headOfLineHoldingTime=20, protectAfter=0))
NEVER = "workload.codeflare.dev/never-preempt"
LEAVES = ("red", "blue", "blue", "green")  # the last one is a stranger in some trees
ROUND_S = 200.0  # within that an AppWrapper ends, and those that wait for it only follow


@dataclass
class History:
    """One that is being written down; ``said`` is how to tell it."""

    rng: Random
    names: str
    is_contested: bool = False
    is_planted: bool = False  # there are quota trees
    acts: list[tuple[float, Action]] = field(default_factory=list)
    ends_s: float = float("inf")  # what is done from then on brings it to rest
    said: list[str] = field(default_factory=list)
    is_disturbed: bool = False  # by others: their pods and what they orphan take room, and names
    is_robbed: bool = False
    now: float = 0.0

    def then(self, said: str, act: Action, later: float = 0.0) -> None:
        """A user does it, if it can be done."""

        async def softly(client: Client) -> None:
            with suppress(KubeError):
                await act(client)

        self.acts.append((self.now + later, softly))
        self.said.append(f"{self.now + later:.2f} {said}")

    def go_on(self) -> None:
        """One more act."""
        self.now += self.rng.choice(PAUSES_S)
        name, number = self.rng.choice(self.names), self.rng.randint(0, 2)
        (act,) = self.rng.choices(*(_CONTESTED if self.is_contested else _ACTS))
        act(self, name, self.rng.choice((f"{name}-{number}", f"shared-{number}")))

    def create(self, name: str, _: str) -> None:
        made = self._wrapper(name)
        told = made["metadata"].get("labels"), made["metadata"].get("annotations")
        self.then(f"create {name}: {_told(made['spec'])} {told}", create(made))

    def _wrapper(self, name: str) -> Json:
        return (_contender if self.is_contested else _wrapper)(self.rng, name)

    def edit(self, name: str, _: str) -> None:
        spec = self._wrapper(name)["spec"]
        self.then(f"edit {name}: {_told(spec)}", edit(name, {"spec": spec}))

    def suspend(self, name: str, _: str) -> None:
        is_suspended = self.rng.random() < 0.5
        self.then(f"suspend {name} {is_suspended}", edit(name, {"spec": {"suspend": is_suspended}}))

    def delete(self, name: str, _: str) -> None:
        cascade = self.rng.choice(("Background", "Background", "Foreground", "Orphan"))
        self.is_disturbed |= cascade == "Orphan"
        is_kept = self.rng.random() < 0.25
        if is_kept:
            self._finalizers(name, KEEP, 0.0)
        self.then(f"delete {name} {cascade}", delete(name, cascade=cascade))
        if is_kept:
            self._finalizers(name, None, 150.0)

    def rob(self, _: str, item: str) -> None:
        kind, self.is_robbed = self.rng.choice(KINDS), True
        self.then(f"delete {kind.kind} {item}", delete(item, kind))

    def keep(self, _: str, item: str) -> None:
        kind = self.rng.choice(KINDS)
        for finalizers, later in ((KEEP, 0.0), (None, 150.0)):
            self._finalizers(item, finalizers, later, kind)

    def _finalizers(
        self, name: str, finalizers: list[str] | None, later: float, kind: Resource = APPWRAPPERS
    ) -> None:
        patch = {"metadata": {"finalizers": finalizers}}
        self.then(f"{kind.kind} {name} {patch}", edit(name, patch, kind), later)

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

    # -- where room is contested ---------------------------------------------------------------

    def slip(self, name: str, _: str) -> None:
        """A small AppWrapper that is soon over."""
        made = complete(f"{name}-small", job(f"{name}-small", 1, self.rng.choice((3, 10))))
        made["spec"]["schedulingSpec"] = {"dispatchDuration": {"limit": 15}}
        made["metadata"]["labels"] = {TREE: self.rng.choice(LEAVES)}
        self.then(f"create {name}-small", create(made))

    def rank(self, name: str, _: str) -> None:
        patch = {"spec": {"priority": self.rng.choice((0, 1, 5))}}
        self.then(f"edit {name} {patch}", edit(name, patch))

    def limit(self, name: str, _: str) -> None:
        limit = {"dispatchDuration": {"limit": self.rng.choice(_LIMITS)}}
        patch = {"spec": {"schedulingSpec": limit}}
        self.then(f"edit {name} {patch}", edit(name, patch))

    def move(self, name: str, _: str) -> None:
        patch = {"metadata": {"labels": {TREE: self.rng.choice(LEAVES)}}}
        self.then(f"edit {name} {patch}", edit(name, patch))

    def insist(self, name: str, _: str) -> None:
        patch = {"metadata": {"annotations": {NEVER: self.rng.choice(("true", None))}}}
        self.then(f"edit {name} {patch}", edit(name, patch))

    def replant(self, *_: str) -> None:
        if not self.is_planted:
            return
        made = self._tree()
        if self.rng.random() < 0.2:
            self.then("delete teams", lambda user: user.delete(QUOTA_SUBTREES, NAMESPACE, "teams"))
        else:
            name = made["metadata"]["name"]
            self.then(f"{name} is {made['spec']}", resize(name, made))
        self.then(f"define {made['metadata']['name']}", define(made), later=30.0)

    def plant(self) -> None:
        """There are shares from the beginning."""
        self.is_planted = True
        for name in ("root", "teams"):
            made = self._tree(name)
            self.then(f"define {name} {made['spec']}", define(made))

    def _tree(self, name: str = "") -> Json:
        rng = self.rng
        if (name or rng.choice(("root", "teams"))) == "root":
            return subtree("root", TREE, root=rng.randint(3, 6))
        shares = {leaf: rng.randint(1, 3) for leaf in rng.choice((LEAVES[:2], LEAVES))}
        return subtree("teams", TREE, "root", hard=rng.random() < 0.1, **shares)

    def end(self) -> None:
        """There is room for all at last, or all that do not end are deleted, one after the
        other."""
        self.now += ROUND_S
        self.ends_s = self.now
        if self.rng.random() < 0.5:
            large = subtree("teams", TREE, "root", **dict.fromkeys(LEAVES, 50))
            for made in (subtree("root", TREE, root=100), large) if self.is_planted else ():
                name = made["metadata"]["name"]
                self.then(f"{name} is large", resize(name, made))
                self.then(f"{name} is large", define(made))
            self.then("there is a large node", _add_node)
            return
        for _ in self.names:
            self.now += ROUND_S
            self.then("delete one that runs", _delete_one)


_ACTS = (
    (
        History.create,
        History.suspend,
        History.delete,
        History.edit,
        History.rob,
        History.keep,
        History.intrude,
        History.cordon,
        History.lose_node,
    ),
    (35, 20, 15, 10, 10, 3, 3, 2, 2),
)
_CONTESTED = (
    (
        *_ACTS[0],
        History.slip,
        History.rank,
        History.limit,
        History.move,
        History.insist,
        History.replant,
    ),
    (25, 8, 10, 4, 3, 2, 2, 1, 1, 30, 6, 6, 4, 2, 6),
)
_LIMITS = (20, 60, 200, 600)
_SHORT, _LONG = (20, 20, 60), (200, 400)


async def _add_node(user: Client) -> None:
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "large"}}
    await user.create(NODES, None, node | {"status": {"allocatable": amounts}})


async def _delete_one(user: Client) -> None:
    """The last by name, so that it is the same one in every run."""
    found, _ = await user.list_all(APPWRAPPERS, Selection(namespace=NAMESPACE))
    run = [one["metadata"]["name"] for one in found if _is_in_the_way(one)]
    for name in sorted(run)[-1:]:
        await user.delete(APPWRAPPERS, NAMESPACE, name)


def visit(rng: Random) -> Json:
    """An AppWrapper that comes to the namespace of guests."""
    made = rng.choice((generic, components))(
        GUEST, config_map("guest-0"), deployment("guest-1", rng.randint(1, 2)), pod("guest-2")
    )
    made["metadata"]["labels"] = {TREE: rng.choice(LEAVES)}
    return made


async def arrive(made: Json, user: Client) -> None:
    """Its namespace is made if it is not there."""
    with suppress(KubeError):
        await user.create(NAMESPACES, None, {"metadata": {"name": GUESTS}})
    version = made["apiVersion"].rpartition("/")[2]
    with suppress(KubeError):  # the namespace may just be going
        await user.create(replace(APPWRAPPERS, version=version), GUESTS, made)


async def leave(user: Client) -> None:
    """The namespace of guests is deleted."""
    with suppress(KubeError):
        await user.delete(NAMESPACES, None, GUESTS)


def _is_in_the_way(obj: Json) -> bool:
    status = obj.get("status") or {}
    return status.get("state") not in (None, "Pending", "Completed", "Failed", "Deleted")


def _with_claims(rng: Random, made: Json, pods: int) -> Json:
    """What decides the order: priority, leaf, how long it runs at most."""
    made["spec"]["priority"] = rng.choice((0, 0, 1, 5))
    made["metadata"]["labels"] = {TREE: rng.choice(LEAVES)}
    if rng.random() < 0.1:
        made["metadata"]["annotations"] = {NEVER: "true"}
    if "resources" in made["spec"] and rng.random() < 0.8:
        limit = rng.choice(_SHORT if pods == 1 else _LONG)
        made["spec"]["schedulingSpec"] = {"dispatchDuration": {"limit": limit}}
    return made


def settings(rng: Random) -> tuple[Config, ...]:
    """Those of the first life, and those of all that come after it."""
    one = Config(
        quotaEnabled=rng.random() < 0.7,
        neverPreempt=rng.choice(((), (NAMESPACE,))),
        policy=rng.choice(("BestEffortFIFO", "BestEffortFIFO", "Backfill", "Backfill")),
        protectAfter=rng.choice((0, 10, 40)),
        reclaim=rng.random() < 0.8,
        preemption=rng.random() < 0.6,
        minRunTime=rng.choice((0, 0, 15)),
        preemptionGracePeriod=rng.choice((0, 2, 20)),
        dispatchResourceReservationTimeout=rng.choice((40_000, 300_000)),
        headOfLineHoldingTime=rng.choice((0, 0, 20)),
    )
    if rng.random() < 0.7:
        return (one,)
    changes: dict[str, object] = rng.choice(
        (
            {"preemption": not one.preemption},
            {"reclaim": not one.reclaim},
            {"protect_after": 0 if one.protect_after else 20},
            {"policy": Policy.STRICT_FIFO},
            {"policy": Policy.BACKFILL},
            {"min_run_time": 60},
        )
    )
    return (one, one.model_copy(update=changes))


def _item(rng: Random, name: str) -> Json:
    makers = (
        lambda: config_map(name),
        lambda: deployment(name, rng.randint(1, 3)),
        lambda: job(name, rng.randint(1, 2), rng.choice((3, 20, 60)), rng.choice((1, 1, 2))),
        lambda: pod(name),
        lambda: manifests.pod(name, "1", rng.choice((3, 20))),
    )
    return rng.choice(makers)()


def _contender(rng: Random, name: str) -> Json:
    """One or two items that take room, mostly for as long as they may."""
    items = [
        rng.choice(
            (
                deployment(f"{name}-{number}", rng.randint(1, 2)),
                deployment(f"{name}-{number}", rng.randint(1, 3)),
                job(f"{name}-{number}", rng.randint(1, 3), rng.choice((20, 60, 150))),
                _item(rng, rng.choice((f"{name}-{number}", f"shared-{number}"))),
            )
        )
        for number in range(rng.choice((1, 1, 1, 2)))
    ]
    made = _wrapped(rng, name, items)
    if "components" in made["spec"] and rng.random() < 0.5:
        made = generic(name, *items)  # of which limits are known
    return _with_claims(rng, made, sum(map(pods_to_come, items)))


def _wrapper(rng: Random, name: str) -> Json:
    items = [
        _item(rng, rng.choice((f"{name}-{number}", f"{name}-{number}", f"shared-{number}")))
        for number in range(rng.randint(1, 3))
    ]
    _keep_apart(items)
    return _wrapped(rng, name, items)


def _keep_apart(items: list[Json]) -> None:
    """Now and then pods of some items keep off pods of the same item, or of another one."""
    rng = Random(repr(items))
    made = {
        one["metadata"]["name"]: one["spec"]["template"]
        for one in items
        if "template" in one.get("spec", {})
    }
    if not made or rng.random() >= APART_SHARE:
        return
    for name, one in made.items():
        meta = one.setdefault("metadata", {})
        meta["labels"] = meta.get("labels", {}) | {APART: name}
        selector = {"matchLabels": {APART: rng.choice(list(made))}}
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        one["spec"]["affinity"] = {"podAntiAffinity": required}


def _wrapped(rng: Random, name: str, items: list[Json]) -> Json:
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
    return told, _scenario(told)


def contested(rng: Random) -> tuple[History, Scenario]:
    """A few more acts on up to five, where reservations are made."""
    told = History(rng, rng.choice(("abcd", "abcde")), is_contested=True)
    configs = settings(rng)
    if configs[0].quota_enabled:
        told.plant()
    for name in told.names:
        told.create(name, "")
        told.now += rng.choice(PAUSES_S[4:])
    for _ in range(rng.randint(2, 7)):
        told.go_on()
    told.end()
    return told, _scenario(told, configs)


def _scenario(told: History, configs: tuple[Config, ...] = ()) -> Scenario:
    rng = told.rng
    cpus = tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 3)))
    if told.is_contested:
        cpus = rng.choice(((2,), (3,), (4,), (6,), (2, 1), (2, 2), (3, 2)))
    names = (*told.names, *(f"{name}-small" for name in told.names), GUEST, "")
    configs = configs or (rng.choice(CONFIGS),)
    return Scenario(
        "at random",
        cpus,
        tuple(sorted(told.acts, key=lambda one: one[0])),
        ends={},
        crowded=names if told.is_disturbed else (),
        robbed=names if told.is_robbed else (),
        config=configs[0],
        later=configs[-1],
        settles_s=700.0 if told.is_contested else 1200.0,
    )
