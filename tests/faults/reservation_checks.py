"""Which AppWrapper has a reservation, and whether it gets what it was promised, by what is
stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from mcad.api import labels
from mcad.api.wire import parse_instant
from mcad.core.state.units import SECOND
from mcad.sim.registry import Registry
from mcad.sim.store import Change
from tests.faults.edits import STORAGE
from tests.faults.forging import is_forged
from tests.faults.injection import SPELL_S
from tests.faults.interference import Interference
from tests.faults.scenarios import items_of, pods_to_come

Json = dict[str, Any]
PODS, NODES = ("", "pods"), ("", "nodes")
EVICTING = ("Preempting", "Reclaiming")
"""Reservations that no other AppWrapper may make use of meanwhile."""
ASKING = "ScalingUp"
"""A reservation for nodes that an autoscaler adds: its start is an estimate."""
LATE_S = SPELL_S + 100.0
"""By so much a promised start, or a deadline, may be missed: no process may have led meanwhile."""


def claim_of(obj: Json) -> Json | None:
    """What its status says that it is promised."""
    found: Json | None = (obj.get("status") or {}).get("reservation")
    return found


def nodes_of(obj: Json) -> list[str]:
    """The nodes that it is promised; there may be none yet where nodes are asked for."""
    return list((claim_of(obj) or {}).get("nodes") or ())


def dispatch_of(obj: Json | None) -> Json:
    """What is on record of its attempt."""
    found: Json = ((obj or {}).get("status") or {}).get("dispatch") or {}
    return found


def goes(change: Change) -> bool:
    """Whether it is being dispatched or was."""
    phase = dispatch_of(change.obj).get("phase")
    return change.type == "MODIFIED" and phase in ("creating", "dispatched")


class ReservationChecks:
    """Watches every status; ``broken`` are promised starts that were missed, and ``cases`` says how
    often what came up.

    A reservation stands until its deadline, or an edit of its AppWrapper. Both may end it before
    its status says so: what others do from then on is not held against them. A start is no promise
    any more when there is an excuse, or an AppWrapper of a higher priority.
    """

    def __init__(self, registry: Registry, interference: Interference) -> None:
        self.broken: list[str] = []
        self.cases: Counter[str] = Counter()
        self._registry, self._interference = registry, interference
        self._made: dict[str, tuple[str, int]] = {}  # uid -> since when, and of which generation
        self._starts: dict[str, tuple[float, int]] = {}  # uid -> when promised, and for when
        registry.store.listen(STORAGE, self._heard)
        registry.store.listen(PODS, self._bound)

    def standing(self) -> Iterator[Json]:
        """The AppWrappers with a reservation."""
        now = self._registry.clock.now_us()
        for _, obj in self._registry.store.items(STORAGE):
            reservation, meta = claim_of(obj), obj["metadata"]
            if reservation is None or parse_instant(reservation["until"]) <= now:
                continue
            if self._made[meta["uid"]] == (reservation["since"], meta["generation"]):
                yield obj

    def _heard(self, change: Change) -> None:
        obj, reservation = change.obj, claim_of(change.obj)
        uid, generation = obj["metadata"]["uid"], obj["metadata"]["generation"]
        if reservation is not None and self._made.get(uid, ("", 0))[0] != reservation["since"]:
            self._made[uid] = reservation["since"], generation
            self.cases[f"reservation: {reservation['reason']}"] += 1
            if reservation.get("start") and reservation["reason"] != ASKING:
                now = self._registry.clock.monotonic()
                self._starts[uid] = now, parse_instant(reservation["start"])
        had = claim_of(change.previous or {})
        if had is not None and reservation is None and change.type == "MODIFIED":
            self.cases[f"{'redeemed' if goes(change) else 'ended'}: {had['reason']}"] += 1
        if goes(change) and self._starts.pop(uid, None):
            self.cases["promise kept"] += 1
        self._judge()

    def _judge(self) -> None:
        found = {obj["metadata"]["uid"]: obj for _, obj in self._registry.store.items(STORAGE)}
        late = self._registry.clock.now_us() - LATE_S * SECOND
        for obj in found.values():
            reservation = claim_of(obj)
            if reservation is not None and parse_instant(reservation["until"]) < late:
                self.broken.append(
                    f"the reservation of {obj['metadata']['name']} outlives its deadline"
                )
        for uid, (then, start) in list(self._starts.items()):
            mine = found.get(uid)
            if (
                mine is None
                or self._interference.since(uid, then)
                or self._is_outranked(mine, found)
            ):
                del self._starts[uid]
            elif start < late:
                self.broken.append(f"{mine['metadata']['name']} did not start as promised")
                del self._starts[uid]

    def _is_outranked(self, mine: Json, found: dict[str, Json]) -> bool:
        return any(_priority(one) > _priority(mine) for one in found.values())

    def _bound(self, change: Change) -> None:
        """A pod goes to a node in a reservation: it is gone in time, or goes before it by its
        priority, or was told to keep off, and kube-scheduler had its reasons."""
        obj, was = change.obj, change.previous or {}
        node = obj["spec"].get("nodeName")
        if (
            change.type == "DELETED"
            or not node
            or is_forged(obj)
            or (was.get("spec") or {}).get("nodeName")
        ):
            return
        uid = labels.labels_of(obj).get(labels.APPWRAPPER_UID)
        for mine in [o for _, o in self._registry.store.items(STORAGE)]:
            if mine["metadata"]["uid"] == uid and (begun := dispatch_of(mine).get("intentTime")):
                for other in self.standing():
                    self._passes(obj, mine, other, parse_instant(begun))

    def _passes(self, pod: Json, mine: Json, other: Json, begun: int) -> None:
        reservation, node = claim_of(other) or {}, pod["spec"]["nodeName"]
        if (
            mine is other
            or node not in nodes_of(other)
            or begun <= parse_instant(reservation["since"])
        ):
            return
        if reservation["reason"] == ASKING:
            self.cases["beside nodes to come"] += 1  # it keeps places, and not whole nodes
            return
        limit = _limit(mine)
        if limit and begun + limit * SECOND <= parse_instant(reservation.get("start")):
            self.cases["backfilled"] += 1
        elif node in _avoided(pod):
            self.cases["strayed"] += 1
        elif self._is_beside(other, reservation):
            self.cases["beside a reservation"] += 1
        elif reservation["reason"] in EVICTING or _priority(mine) <= _priority(other):
            then = (begun - self._registry.clock.now_us()) / SECOND
            then += self._registry.clock.monotonic()
            edited = [
                self._interference.since(one["metadata"]["uid"], then) for one in (mine, other)
            ]
            if not any(edited):
                names = [one["metadata"]["name"] for one in (mine, other)]
                self.broken.append(f"{names[0]} goes where {names[1]} has a reservation")

    def _is_beside(self, owner: Json, reservation: Json) -> bool:
        """Whether its nodes have room for all pods of the owner when those that have to leave are
        gone, with what is bound there by now."""
        store, wanted = self._registry.store, sum(map(pods_to_come, items_of(owner)))
        found = (store.get(NODES, ("", name)) for name in nodes_of(owner))
        free = sum(int(node["status"]["allocatable"]["cpu"]) for node in found if node)
        leaving = {title.partition("/")[2] for title in reservation.get("waitsFor") or ()}
        for _, pod in store.items(PODS):
            if (
                pod["spec"].get("nodeName") in nodes_of(owner)
                and pods_to_come(pod)
                and not is_forged(pod)
            ):
                is_going = "deletionTimestamp" in pod["metadata"]
                free -= not (is_going or labels.labels_of(pod).get(labels.APPWRAPPER) in leaving)
        return bool(free >= wanted)


def _avoided(pod: Json) -> set[str]:
    """The names of the nodes that it was told to keep off, if there are others."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    wishes = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    fields = [one for wish in wishes for one in wish["preference"].get("matchFields") or ()]
    return {name for one in fields if one["operator"] == "NotIn" for name in one["values"]}


def _priority(obj: Json) -> int:
    return int(obj["spec"].get("priority") or 0)


def _limit(obj: Json) -> int:
    rules = obj["spec"].get("schedulingSpec") or {}
    return int((rules.get("dispatchDuration") or {}).get("limit") or 0)
