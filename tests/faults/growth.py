"""What a process holds, and days of a busy cluster that leave nothing behind.

Everything that comes also goes, under names never seen before. So whatever a dispatcher still holds
at the end of a day is a leak, wherever it is kept.
"""

from __future__ import annotations

import asyncio
import functools
import gc
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from random import Random
from typing import Any

from sortedcontainers import SortedDict, SortedList

from mcad.api import labels
from mcad.kube.client import Client, DeleteOptions
from mcad.kube.errors import ApiError
from mcad.kube.kinds import APPWRAPPERS, CONFIG_MAPS, DEPLOYMENTS, NODES, PODS
from mcad.sim.cluster import Cluster
from tests.faults.scenarios import NAMESPACE, complete, create, delete, edit
from tests.manifests import components, config_map, deployment, generic, job, pod, wrapper

Json = dict[str, Any]
SIZED = (dict, list, set, frozenset, tuple, deque, SortedDict, SortedList)
OURS, NOT_OURS = "mcad.", ("mcad.sim.", "mcad.cli.")


def held() -> Counter[str]:
    """``Class`` -> how many are alive, and ``Class.attribute`` -> how many elements they hold."""
    gc.unfreeze()  # what was there before the test may grow, too (tests/conftest.py)
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper):  # each is bounded, by its maxsize
            one.cache_clear()
    gc.collect()
    counts: Counter[str] = Counter(tasks=len(asyncio.all_tasks()))
    for one in gc.get_objects():
        kind = type(one)
        module = kind.__module__
        if (
            not isinstance(module, str)
            or not module.startswith(OURS)
            or module.startswith(NOT_OURS)
        ):
            continue
        counts[kind.__qualname__] += 1
        for name, value in _attributes(one):
            if isinstance(value, SIZED):
                counts[f"{kind.__qualname__}.{name}"] += _size(value)
    return counts


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """What there is more of."""
    return {
        name: (before.get(name, 0), count)
        for name, count in sorted(after.items())
        if count > before.get(name, 0)
    }


def _attributes(one: object) -> Iterator[tuple[str, object]]:
    slots = chain.from_iterable(getattr(kind, "__slots__", ()) for kind in type(one).__mro__)
    for name in slots:
        if not name.startswith("__") and hasattr(one, name):
            yield name, getattr(one, name)
    yield from getattr(one, "__dict__", {}).items()


def _size(value: object) -> int:
    """Its elements and those of the containers in it; objects in it are counted by themselves."""
    if not isinstance(value, SIZED):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return len(value) + sum(map(_size, inner))


# -- a day ---------------------------------------------------------------------------------------

DAY_S = 8 * 3600.0  # a working day: an idle night only costs time
Episode = Callable[[Client, str, Random], Awaitable[None]]


async def _finishes(user: Client, name: str, rng: Random) -> None:
    """Jobs that complete, in both dialects, of a demand that no other has."""
    cpu = f"{rng.randint(100, 900)}m"
    made = complete(name, job(name, 2, cpu, 60), priority=rng.randint(0, 99))
    if rng.random() < 0.5:
        made = components(name, job(name, 1, cpu, 60, waves=2), config_map(name))
    await create(made)(user)
    await user.clock.sleep(600)
    await delete(name)(user)


async def _runs(user: Client, name: str, rng: Random) -> None:
    """A Deployment that runs until it is deleted, edited and suspended in between."""
    await create(components(name, config_map(name), deployment(name, 2)))(user)
    await user.clock.sleep(rng.randint(1, 300))
    for suspended in (True, False):
        await edit(name, {"spec": {"suspend": suspended}})(user)
        await user.clock.sleep(200)
    await delete(name)(user)


async def _never_fits(user: Client, name: str, rng: Random) -> None:
    """Too large, or for nodes that there are not; it ages as fast as no other."""
    made = generic(name, pod(name, f"{rng.randint(100, 999)}"), priorityslope=rng.random())
    if rng.random() < 0.5:
        made = generic(name, pod(name))
        inner = made["spec"]["resources"]["GenericItems"][0]["generictemplate"]["spec"]
        inner["nodeSelector"] = {name: "yes"}
    await create(made)(user)
    await user.clock.sleep(400)
    await delete(name)(user)


async def _waits_for_a_name(user: Client, name: str, rng: Random) -> None:
    """Two that want the same name; the second goes first or last."""
    for suffix in "ab":
        await create(generic(f"{name}{suffix}", config_map(name)))(user)
    await user.clock.sleep(100)
    for suffix in rng.sample("ab", 2):
        await delete(f"{name}{suffix}")(user)
        await user.clock.sleep(60)


async def _meets_a_stranger(user: Client, name: str, rng: Random) -> None:
    """The name belongs to an object without AppWrapper."""
    await user.create(CONFIG_MAPS, NAMESPACE, config_map(name))
    await create(generic(name, config_map(name), pod(f"{name}-pod")))(user)
    await user.clock.sleep(300)
    await user.delete(CONFIG_MAPS, NAMESPACE, name)
    await delete(name)(user)


async def _is_refused(user: Client, name: str, rng: Random) -> None:
    """An item that no server takes, or a kind that is not installed, or nonsense."""
    broken = deployment(name)
    broken["spec"]["selector"] = {"matchLabels": {"app": "another"}}
    rocket = {"apiVersion": "acme.io/v1", "kind": "Rocket", "metadata": {"name": name}}
    item = {"generictemplate": rng.choice((broken, rocket, pod("no name")))}
    await create(wrapper(name, {"resources": {"GenericItems": [item]}}))(user)
    await user.clock.sleep(700)
    await delete(name)(user)


async def _is_orphaned(user: Client, name: str, rng: Random) -> None:
    """What it made is left behind, and goes later."""
    await create(generic(name, deployment(name, 1)))(user)
    await user.clock.sleep(30)
    await user.delete(APPWRAPPERS, NAMESPACE, name, DeleteOptions(propagation="Orphan"))
    await user.clock.sleep(900)
    with suppress(ApiError):  # where there was no room it was never made
        await user.delete(DEPLOYMENTS, NAMESPACE, name)


async def _others_pods(user: Client, name: str, rng: Random) -> None:
    """Pods without AppWrapper, one with our labels and an owner that does not exist."""
    await user.create(PODS, NAMESPACE, pod(name, "50m", 120))
    lost = pod(f"{name}-lost", "50m", 120)
    lost["metadata"] |= {
        "labels": {labels.APPWRAPPER_UID: f"uid-{name}", labels.ATTEMPT: "1"},
        "ownerReferences": [
            {
                "apiVersion": "acme.io/v1",
                "kind": "Rocket",
                "name": name,
                "uid": f"uid-of-{name}",
                "controller": True,
            }
        ],
    }
    await user.create(PODS, NAMESPACE, lost)
    await user.clock.sleep(rng.randint(1, 300))
    for one in (name, f"{name}-lost"):
        with suppress(ApiError):  # the collector knows that its owner is not there
            await user.delete(PODS, NAMESPACE, one, DeleteOptions(grace_period_s=0))


async def _node_comes_and_goes(user: Client, name: str, rng: Random) -> None:
    """A node with a resource of its own, for as long as one AppWrapper needs it."""
    own = f"acme.io/{name}"
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110", own: "2"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {name: "y"}}}
    await user.create(NODES, None, node | {"status": {"allocatable": allocatable}})
    port = rng.randint(8000, 8999)
    await create(complete(name, _holding(job(name, 2, "1", 300), own, port)))(user)
    await user.clock.sleep(900)
    await delete(name)(user)
    await user.clock.sleep(60)
    await user.delete(NODES, None, name)


def _holding(made: Json, resource: str, port: int) -> Json:
    container = made["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"][resource] = "1"
    container["resources"]["limits"] = {resource: "1"}
    container["ports"] = [{"containerPort": port, "hostPort": port}]
    return made


EPISODES: tuple[Episode, ...] = (
    _finishes,
    _runs,
    _never_fits,
    _waits_for_a_name,
    _meets_a_stranger,
    _is_refused,
    _is_orphaned,
    _others_pods,
    _node_comes_and_goes,
)


async def live_a_day(cluster: Cluster, user: Client, day: int, episodes: int) -> None:
    """So many episodes of each kind, spread over half of it; then nothing of them is left."""
    rng = Random(day)
    clock = cluster.registry.clock
    ends = clock.monotonic() + DAY_S
    running = []
    for number in range(episodes * len(EPISODES)):
        episode = EPISODES[number % len(EPISODES)]
        name = f"d{day}-{number}"
        running.append(asyncio.ensure_future(episode(user, name, Random(rng.random()))))
        await clock.sleep(0.5 * DAY_S / (episodes * len(EPISODES)))
    await asyncio.gather(*running)
    await clock.sleep(ends - clock.monotonic())
