"""What must hold when nothing has happened for a while, by the dispatcher's own books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from mcad.api.labels import APPWRAPPER_UID
from mcad.api.status import render_status
from mcad.controller.mirror import status_mark
from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.timers import Timer
from mcad.core.state.waiting_reason import WaitingReason
from mcad.core.status.status import derive
from tests.faults.edits import STORAGE, WRAPPED
from tests.faults.forging import is_forged
from tests.faults.quota_checks import QuotaChecks

Json = dict[str, Any]
Objects = Mapping[tuple[str, str], Sequence[Json]]

NODES = ("", "nodes")
WATCHED = [STORAGE, NODES, *WRAPPED]
COUNTS = {"Pending": "pending", "Running": "running", "Succeeded": "Succeeded", "Failed": "failed"}
AT_REST = (Phase.WAITING, Phase.RUNNING, Phase.COMPLETED, Phase.FAILED, Phase.DELETED)


def unrest(
    core: Cluster, objects: Objects, quota: QuotaChecks, former: Container[str] = ()
) -> Iterator[str]:
    """What is wrong; ``objects`` are all that exist, by storage. The status of the ``former``
    AppWrappers (their uids) is as another version has written it."""
    core.admission.check()
    if set(core.forest.charges) != quota.holders():
        yield f"charged: {sorted(core.forest.charges)}, stored: {sorted(quota.holders())}"
    stored = {obj["metadata"]["uid"]: obj for obj in objects[STORAGE]}
    if core.entries.keys() != stored.keys():
        yield f"known: {[one.title for one in core.entries.values()]}, there: {len(stored)}"
        return
    existing = {obj["metadata"]["uid"] for storage in WRAPPED for obj in objects[storage]}
    if ghosts := [child.ref for uid, child in core.objects.by_uid.items() if uid not in existing]:
        yield f"objects that do not exist: {ghosts}"
    agenda = core.agenda
    to_do = agenda.to_judge or agenda.to_resume or agenda.to_recover
    if to_do or core.objects.unswept or core.rights.held:
        yield "something is left to do"
    names = {
        (storage[1], obj["metadata"]["name"]) for storage in WRAPPED for obj in objects[storage]
    }
    for uid, entry in core.entries.items():
        yield from _unfinished(entry)
        is_due = Timer.RECORD in entry.timers  # it is written in a moment
        if uid not in former and not is_due and not _is_told(entry, stored[uid]):
            yield f"{entry.title}: its status is not what is known"
        yield from _miscounted(entry, stored[uid], objects)
        if entry.phase is Phase.WAITING:
            fits = quota.fits(stored[uid])
            yield from _waits_in_vain(core, entry, objects, names, fits=fits)
        reserved = sum(core.capacity.gangs.outstanding(uid))
        unbound = [pod for pod in core.capacity.pods.live(uid) if not pod.node]
        if reserved > len(unbound):
            yield f"{entry.title} reserves {reserved} for {len(unbound)} pods"


def _is_told(entry: Entry, obj: Json) -> bool:
    """Whether its status is what is known."""
    told = render_status(derive(entry), entry.uid)
    return status_mark(told) == status_mark(obj.get("status"))


def _unfinished(entry: Entry) -> Iterator[str]:
    if entry.phase not in AT_REST:
        yield f"{entry.title} is {entry.phase}"
    if entry.writes.flying is not None or entry.writes.dirty:
        yield f"{entry.title}: a status is still to be written"
    if entry.phase is Phase.RUNNING and entry.workload.suspended:
        yield f"{entry.title} runs although it is suspended"


def _miscounted(entry: Entry, obj: Json, objects: Objects) -> Iterator[str]:
    """Its status does not tell of its pods as they are, and nothing is going to change that."""
    if entry.phase is Phase.COMPLETED:
        return  # final: they may be deleted
    pods = [pod for pod in objects["", "pods"] if not is_forged(pod)]
    own = [pod for pod in pods if _belongs_to(pod, entry.uid)]
    there = Counter(pod["status"].get("phase", "Pending") for pod in own)
    status = obj.get("status", {})
    told = {phase: status.get(word, 0) for phase, word in COUNTS.items()}
    if told != {phase: there[phase] for phase in COUNTS}:
        yield f"{entry.title}: its status tells of {told} pods, and there are {dict(there)}"


def _belongs_to(pod: Json, uid: str) -> bool:
    return bool(pod["metadata"].get("labels", {}).get(APPWRAPPER_UID) == uid)


_WISHED = (WaitingReason.SUSPENDED, WaitingReason.DELETED)


def _waits_in_vain(
    core: Cluster, entry: Entry, objects: Objects, names: set[tuple[str, str]], *, fits: bool
) -> Iterator[str]:
    """It fits, in its shares and on the nodes, nothing is in front of it, and it does not go."""
    refusal, reason = (
        core.waiting.queue.refusal_of(entry),
        entry.wait.hold.reason if entry.wait.hold else "",
    )
    due = WaitingReason.SUSPENDED if entry.workload.suspended else ""
    due = WaitingReason.DELETED if entry.workload.deleting else due
    if (reason if reason in _WISHED else "") != due:
        yield f"{entry.title} is held: {reason}"
    if reason == WaitingReason.WAITING_FOR_NAME:
        if not any((item.ref.resource, item.ref.name) in names for item in entry.workload.items):
            yield f"{entry.title} waits for a name that is free"
    elif reason and not due:
        yield f"{entry.title} is held: {reason}"
    wanted = sum(one.replicas for one in entry.workload.sets)
    if not reason and (refusal is None or not refusal.reason.lets_others_first):
        free = _free(objects)
        if fits and wanted <= free:
            yield f"{entry.title} waits for {wanted} of {free} free CPUs"


def _free(objects: Objects) -> int:
    """CPUs on nodes that take pods; each pod uses one (see scenarios.py)."""
    free = {
        node["metadata"]["name"]: int(node["status"]["allocatable"]["cpu"])
        for node in objects[NODES]
        if not node["spec"].get("unschedulable")
    }
    for pod in objects["", "pods"]:
        node = pod["spec"].get("nodeName")
        if is_forged(pod):
            continue
        if node in free and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            free[node] -= 1
    return sum(max(0, left) for left in free.values())
