"""Adds up the shares from what is stored, without the dispatcher's books.

An AppWrapper holds what it demands from its intent on, until it has ended, or what is taken back is
gone; through a reset it holds it on. Those for whom others are evicted hold it before, as long as
their reservation stands: no other may go there. One that is new must fit within every hard node
and the root. A QuotaSubtree that was deleted counts as before until it is back, for a grace period.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcad.api import labels
from mcad.api.quotas import read_quota
from mcad.core.state.model import Resources
from mcad.core.state.quota_records import Designation, QuotaSubtree
from mcad.kube.kinds import QUOTA_SUBTREES
from mcad.sim.registry import Registry
from mcad.sim.store import Change
from tests.core.quotas import Model
from tests.faults.edits import STORAGE, WRAPPED
from tests.faults.forging import is_forged
from tests.faults.reservation_checks import EVICTING, ReservationChecks, claim_of, dispatch_of
from tests.faults.scenarios import items_of, pods_to_come

Json = dict[str, Any]
SUBTREES = (QUOTA_SUBTREES.group, QUOTA_SUBTREES.plural)
BEHIND_S = 60.0
"""A dispatcher whose watch has a gap may go by trees that are that old (injection.py)."""


class QuotaChecks:
    """Watches the QuotaSubtrees and every intent; ``overdrawn`` are those that did not fit."""

    def __init__(
        self, registry: Registry, reservations: ReservationChecks, grace_s: float = 0.0
    ) -> None:
        """``grace_s`` is the setting ``quotaGracePeriod``."""
        self.overdrawn: list[str] = []
        self._grace_s = grace_s
        self._absent: dict[tuple[str, str], tuple[float, QuotaSubtree]] = {}  # by key, until when
        self._reservations = reservations
        self._registry = registry
        self._trees: list[tuple[float, list[QuotaSubtree]]] = [(0.0, [])]
        registry.store.listen(SUBTREES, self._tree_changed)
        registry.store.listen(STORAGE, self._heard)

    def holders(self) -> set[str]:
        """The uids of those that hold shares, by what is stored."""
        return {
            obj["metadata"]["uid"]
            for _, obj in self._registry.store.items(STORAGE)
            if self._holds(obj) or claim_of(obj) is not None
        }

    def fits(self, obj: Json) -> bool:
        """Whether an AppWrapper that holds nothing would fit now."""
        return self._fits(obj, self._read())

    def _tree_changed(self, change: Change) -> None:
        self._absent.pop(change.key, None)
        was = read_quota(change.obj) if change.type == "DELETED" else None
        if was is not None:
            self._absent[change.key] = (self._now() + self._grace_s, was)
        self._trees.append((self._now(), self._read()))

    def _heard(self, change: Change) -> None:
        obj, was = change.obj, change.previous or {}
        if change.type == "MODIFIED" and self._holds(obj) and not self._holds(was):
            if not self._is_late(obj) and not any(
                self._fits(obj, trees) for trees in self._in_force()
            ):
                name, dispatch = obj["metadata"]["name"], obj["status"]["dispatch"]
                self.overdrawn.append(f"{name} goes beyond its shares: {dispatch['attempt']=}")

    def _is_late(self, obj: Json) -> bool:
        """Whether it was under way while a leader of a later epoch gave room away: it is tested
        again, and taken back where it does not fit (P12)."""
        others = (dispatch_of(one) for _, one in self._registry.store.items(STORAGE))
        latest = max(one.get("epoch", 0) for one in others)
        return bool(dispatch_of(obj)["epoch"] < latest)

    def _in_force(self) -> Iterator[list[QuotaSubtree]]:
        """All trees of the last while, the present ones first."""
        yield self._read()
        for since, trees in reversed(self._trees):
            yield trees
            if since <= self._now() - BEHIND_S:
                return

    def _fits(self, obj: Json, trees: list[QuotaSubtree]) -> bool:
        model = Model({one.uid: one for one in trees})
        for other in self._reservations.standing():
            is_other = other["metadata"]["uid"] != obj["metadata"]["uid"]
            if is_other and claim_of(other)["reason"] in EVICTING:
                model.charges[other["metadata"]["uid"]] = (_leaves(other), _demand(other))
        for _, other in self._registry.store.items(STORAGE):
            is_other = other["metadata"]["uid"] != obj["metadata"]["uid"]
            if is_other and self._holds(other) and not self._is_done(other):
                model.charges[other["metadata"]["uid"]] = (_leaves(other), _demand(other))
        return model.fits(_leaves(obj), _demand(obj))

    def _holds(self, obj: Json) -> bool:
        status = obj.get("status") or {}
        dispatch = status.get("dispatch") or {}
        match dispatch.get("phase"):
            case None | "released":
                return False
            case "undeploying" if dispatch["next"] != "reset":
                return bool(self._left_of(obj["metadata"]["uid"]))
            case _:
                return bool(status["state"] != "Completed")

    def _is_done(self, obj: Json) -> bool:
        """Whether it runs no pod any more, which its status does not say yet."""
        if obj["status"]["dispatch"]["phase"] != "dispatched":
            return False
        return not any(map(pods_to_come, self._left_of(obj["metadata"]["uid"])))

    def _left_of(self, uid: str) -> list[Json]:
        """What is there that it made."""
        return [
            one
            for storage in WRAPPED
            for _, one in self._registry.store.items(storage)
            if labels.labels_of(one).get(labels.APPWRAPPER_UID) == uid and not is_forged(one)
        ]

    def _read(self) -> list[QuotaSubtree]:
        found = [read_quota(obj) for _, obj in self._registry.store.items(SUBTREES)]
        absent = [one for until, one in self._absent.values() if self._now() < until]
        return [one for one in (*found, *absent) if one is not None]

    def _now(self) -> float:
        return self._registry.clock.monotonic()


def _leaves(obj: Json) -> Designation:
    """Those that its attempt is recorded under; its labels, before there is one."""
    recorded = ((obj.get("status") or {}).get("dispatch") or {}).get("quota") or ()
    labels = obj["metadata"].get("labels") or {}
    labels = labels | {one["tree"]: one["leaf"] for one in recorded}
    return Designation(tuple(sorted(labels.items())))


def _demand(obj: Json) -> Resources:
    """All of its pods, each of one CPU (scenarios.py)."""
    pods = sum(
        1 if one["kind"] == "Pod" else _replicas(one["spec"])
        for one in items_of(obj)
        if one["kind"] != "ConfigMap"
    )
    return (("cpu", 1000 * pods),) if pods else ()


def _replicas(spec: Json) -> int:
    return int(spec.get("parallelism") or spec["replicas"])
