"""Renders ``status`` from the core's view of it, and reads it back after a restart.

A status is replaced as a whole, with the fields of others (``STATUS`` are ours). As in MCAD, zeros
are left out, except for the two requeueing fields of a queued AppWrapper.
"""

from mcad.api.components import render_components
from mcad.api.durations import clamp_seconds
from mcad.api.labels import MAX_ATTEMPT
from mcad.api.located_fields import clamp_count, clamp_priority, describe
from mcad.api.pods import POD_SCHEDULED, UNSCHEDULABLE
from mcad.api.podspec import amounts, to_resources
from mcad.api.wire import (
    Json,
    Map,
    as_int,
    as_list,
    as_map,
    as_text,
    format_instant,
    parse_instant,
    without_nulls,
)
from mcad.core.state.bounds import AVOIDED_MAX
from mcad.core.state.model import (
    AddedRequests,
    ChosenDomain,
    Condition,
    DispatchPhase,
    DispatchRecord,
    Domain,
    KeptApart,
    Next,
    ObjectRef,
    Persisted,
    PodCounts,
    PrioritySource,
    Unscheduled,
)
from mcad.core.state.quantity import format_amount
from mcad.core.state.reservation import Eviction, Reservation, ReservationReason
from mcad.core.state.status_view import StatusView
from mcad.core.state.units import SECOND, Duration, Instant

QUEUED = "Pending"
AT_REST = frozenset({"", QUEUED, "Completed", "Failed", "Deleted"})
"""States without an attempt. An AppWrapper in another state, but without a record of its attempt,
was dispatched by another controller."""

STATE_OF_PHASE = {"Suspended": QUEUED, "Succeeded": "Completed", "Failed": "Failed"}
"""Final and suspended phases of an upstream v1beta2 controller, as v1beta1 states."""

STATUS = frozenset(
    (
        *("state", "phase", "queuejobstate", "canrun", "filterignore", "sender"),
        *("systempriority", "prioritySource", "controllerfirsttimestamp"),
        *("controllerfirstdispatchtimestamp", "numberOfRequeueings", "requeueingTimeInSeconds"),
        *("resettingCount", "pending", "running", "Succeeded", "failed", "totalcpu"),
        *("totalmemory", "totalgpu", "pendingpodconditions", "conditions", "componentStatus"),
        *("dispatch", "quota", "reservation", "eviction", "observedGeneration"),
    )
)
"""The fields of a status that are ours. All others stay as they are stored: those that only MCAD
writes, and those of a later release after a rollback."""

FORMER = frozenset({"claim"})
"""Fields that were ours in a former release. The next write drops them."""

_TOTALS = {"totalcpu": "cpu", "totalmemory": "memory", "totalgpu": "nvidia.com/gpu"}
"""Milli-CPU, bytes and devices; MCAD had 32 bits for them, which is too few for bytes."""

TOTAL_MAX = 2**63 - 1

MAX_CONDITIONS = 64
"""Conditions that are read back, of either list; MCAD appended to its own without limit."""

MAX_NAMES = 16
"""Nodes of a reservation, and AppWrappers that it waits for, that are named; the first by name."""

MAX_PLACES = 256
"""Reservations with more nodes have no ``placement``, which would be more than about 10 KB."""


MAX_EPOCH = 2**62
"""The largest epoch that counts. The next leader's is one more, and the API server has 64 bits for
it: one forged status must not keep every later dispatch from being recorded."""

CLOCK_SKEW: Duration = 60 * SECOND
"""By how much the clock of a dispatcher may be behind that of the API server."""


def render_status(view: StatusView, uid: str) -> Map:
    """The fields of ``status`` that are ours and have a value, for the AppWrapper with this uid."""
    return as_map(without_nulls(_fields(view, uid)))


def _fields(view: StatusView, uid: str) -> Map:
    queued, waits = view.state == QUEUED, view.requeueing_wait // SECOND
    totals = dict(view.pods.totals)
    return {
        "state": view.state,
        "phase": view.phase or None,
        "queuejobstate": view.queue_job_state or None,
        "canrun": view.can_run or None,
        "filterignore": True,
        "sender": view.sender or None,
        "systempriority": view.system_priority or None,
        "prioritySource": _render_source(view.priority_source) if view.priority_source else None,
        "controllerfirsttimestamp": format_instant(view.first_seen),
        "controllerfirstdispatchtimestamp": format_instant(view.first_dispatch),
        "numberOfRequeueings": view.requeueings if queued else view.requeueings or None,
        "requeueingTimeInSeconds": waits if queued else waits or None,
        "resettingCount": view.resets or None,
        "pending": view.pods.pending or None,
        "running": view.pods.running or None,
        "Succeeded": view.pods.succeeded or None,
        "failed": view.pods.failed or None,
        **{word: _saturated(totals.get(name)) for word, name in _TOTALS.items()},
        "pendingpodconditions": [
            _render_unscheduled(pod, why) for pod, why in view.pods.unscheduled
        ]
        or None,
        "conditions": [
            _render_condition(one, standard=bool(view.phase)) for one in view.conditions
        ],
        "componentStatus": render_components(view) if view.items else None,
        "dispatch": _render_dispatch(view.dispatch, uid) if view.dispatch else None,
        "quota": _render_places(view) or None,
        "reservation": render_reservation(view.reservation) if view.reservation else None,
        "eviction": render_eviction(view.eviction) if view.eviction else None,
        "observedGeneration": view.observed_generation or None,
    }


def _render_source(source: PrioritySource) -> Map:
    return {"kind": source.kind, "name": source.name, "value": source.value}


def _read_source(value: Map) -> PrioritySource | None:
    kind, name = as_text(value.get("kind")), as_text(value.get("name"))
    if not (kind and name):
        return None
    return PrioritySource(kind, name, clamp_priority(as_int(value.get("value"))))


def _saturated(total: int | None) -> int | None:
    """A sum of requests, each of which the API server takes, may be more than its 64 bits hold."""
    return None if total is None else min(total, TOTAL_MAX)


def _render_condition(condition: Condition, *, standard: bool) -> Map:
    """One condition. A list is replaced as a whole, so fields without a value are left out.

    Clients of v1beta2 (``standard``) read lastTransitionTime; v1beta1 does not have it.
    """
    rendered = {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastUpdateMicroTime": format_instant(condition.updated),
        "lastTransitionMicroTime": format_instant(condition.changed),
        "lastTransitionTime": format_instant(condition.changed) if standard else None,
    }
    return {key: value for key, value in rendered.items() if value}


def _render_unscheduled(pod: str, why: Unscheduled) -> Map:
    """The condition of a pending pod that is unschedulable, as MCAD copied it."""
    condition = {
        "type": POD_SCHEDULED,
        "status": "False",
        "reason": UNSCHEDULABLE,
        "message": why.message,
        "lastTransitionTime": format_instant(why.since),
    }
    return {"podname": pod, "conditions": [condition]}


FORMAT = 1
"""The format of ``status.dispatch``; increased when an older version would misread it."""


def _render_dispatch(record: DispatchRecord, uid: str) -> Map:
    underway = record.phase in (DispatchPhase.CREATING, DispatchPhase.DISPATCHED)
    return {
        "format": FORMAT,
        "uid": uid,
        "attempt": record.attempt,
        "epoch": record.epoch,
        "phase": record.phase.value,
        "payloadSHA256": record.payload or None,
        "inventory": [_render_ref(ref) for ref in record.inventory],
        "intentTime": format_instant(record.since),
        "confirmTime": format_instant(record.confirmed),
        "phaseTime": format_instant(record.entered),
        "finished": list(record.finished) or None,
        "quota": _render_leaves(record.quota),
        "reason": record.reason or None,
        "message": record.message or None,
        "next": None if underway and record.next is Next.QUEUED else record.next.value,
        "preemptor": record.preemptor or None,
        "limitSince": format_instant(record.limit_since),
        "domains": [_render_domain(one) for one in record.domains] or None,
        "preferredDomain": _render_label(record.prefers) if record.prefers else None,
        "excludedNodes": [_render_apart(one) for one in record.apart] or None,
        "placedTime": format_instant(record.placed),
        "suspendedPodSets": list(record.resumed) or None,
        "addedRequests": [_render_added(one) for one in record.added] or None,
    }


def _render_added(one: AddedRequests) -> Map:
    requests = {name: format_amount(name, size) for name, size in one.requests}
    return {"item": one.item, "index": one.index, "requests": requests}


def _read_added(value: Json) -> tuple[AddedRequests, ...]:
    found = map(as_map, as_list(value))
    return tuple(
        AddedRequests(as_int(one.get("item")), as_int(one.get("index")), requests)
        for one in found
        if (requests := to_resources(amounts(one.get("requests"))))
    )


def _render_domain(one: ChosenDomain) -> Map:
    place = {"item": one.item, "index": one.index, "path": one.path or None}
    return place | _render_label(one.domain)


def _render_apart(one: KeptApart) -> Map:
    rendered = {"item": one.item, "path": one.path or None, "nodes": list(one.nodes)}
    return rendered | {"preferred": one.preferred or None}


def _is_true(kept_apart: Map) -> bool:
    return kept_apart.get("preferred") is True


def _read_apart(value: Json) -> tuple[KeptApart, ...]:
    found = map(as_map, as_list(value))
    return tuple(
        KeptApart(as_int(one.get("item")), as_text(one.get("path")), nodes, _is_true(one))
        for one in found
        if (nodes := tuple(map(as_text, as_list(one.get("nodes"))[:AVOIDED_MAX])))
    )


def _render_label(domain: Domain) -> Map:
    label, value = domain
    return {"label": label, "value": value}


def _read_label(value: Json) -> Domain | None:
    found = as_map(value)
    label = as_text(found.get("label"))
    return (label, as_text(found.get("value"))) if label else None


def _read_domains(value: Json) -> tuple[ChosenDomain, ...]:
    found = map(as_map, as_list(value))
    return tuple(
        ChosenDomain(
            as_int(one.get("item")),
            as_int(one.get("index")),
            as_text(one.get("path")),
            domain,
        )
        for one in found
        if (domain := _read_label(one))
    )


def render_reservation(reservation: Reservation) -> Map:
    """``status.reservation``, with the first ``MAX_NAMES`` nodes and AppWrappers."""
    return {
        "reason": reservation.reason.value,
        "since": format_instant(reservation.since),
        "until": format_instant(reservation.until),
        "start": format_instant(reservation.start),
        "nodeCount": len(reservation.nodes),
        "nodes": list(reservation.nodes[:MAX_NAMES]) or None,
        "placement": _render_placement(reservation),
        "waitsFor": list(reservation.waits_for[:MAX_NAMES]) or None,
    }


def _render_placement(reservation: Reservation) -> Json:
    """All nodes or None: from a part one cannot tell what is free elsewhere."""
    if not reservation.pods or len(reservation.pods) > MAX_PLACES:
        return None
    return [
        {"node": name, "pods": list(counts)}
        for name, counts in zip(reservation.nodes, reservation.pods, strict=True)
    ]


def render_eviction(eviction: Eviction) -> Map:
    """``status.eviction``."""
    return {
        "count": eviction.count,
        "reason": eviction.reason.value,
        "by": eviction.by or None,
        "title": eviction.title or None,
        "at": format_instant(eviction.at),
    }


def _render_leaves(path: tuple[tuple[str, str], ...]) -> Json:
    return [{"tree": tree, "leaf": leaf} for tree, leaf in path] or None


def _render_places(view: StatusView) -> list[Json]:
    places: list[Json] = []
    deleted = dict(view.deleted_trees)
    for tree, leaf in view.quota:
        since = {"treeDeleted": format_instant(deleted[tree])} if tree in deleted else {}
        places.append({"tree": tree, "leaf": leaf, **since})
    return places


def _render_ref(ref: ObjectRef) -> Map:
    rendered = {
        "group": ref.group,
        "version": ref.version,
        "resource": ref.resource,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
    }
    return {key: value for key, value in rendered.items() if value}


def is_about(status: Json, uid: str, created: Instant) -> bool:
    """Whether a status is that of the AppWrapper with this uid and creation time.

    It is that of another one where a backup is restored, or where an AppWrapper is exported and
    created again. Records of older versions have no uid: they are of another one if their attempt
    began before this one was created.
    """
    record = as_map(as_map(status).get("dispatch"))
    owner = as_text(record.get("uid"))
    if owner:
        return owner == uid
    since = parse_instant(record.get("intentTime"))
    return not since or created <= since + CLOCK_SKEW


def read_status(status: Json) -> Persisted | None:
    """Read a status; None if it is empty. Malformed parts count as absent.

    A status may be of MCAD, which wrote a first-seen time too: an AppWrapper that it left queued is
    dispatched in its old order; one that it left running is ``foreign`` and left alone (P7).
    """
    status = as_map(status)
    phase = as_text(status.get("phase"))
    state = as_text(status.get("state")) or STATE_OF_PHASE.get(phase, phase)
    first_seen = parse_instant(status.get("controllerfirsttimestamp"))
    dispatch = _read_dispatch(as_map(status.get("dispatch")))
    unreadable = _why_unreadable(status.get("dispatch")) if dispatch is None else ""
    if not (state or first_seen or dispatch or unreadable):
        return None
    conditions = map(_read_condition, as_list(status.get("conditions"))[-MAX_CONDITIONS:])
    return Persisted(
        state=state,
        first_seen=first_seen,
        conditions=tuple(one for one in conditions if one is not None),
        dispatch=dispatch,
        first_dispatch=parse_instant(status.get("controllerfirstdispatchtimestamp")),
        requeueings=clamp_count(as_int(status.get("numberOfRequeueings"))),
        requeueing_wait=clamp_seconds(as_int(status.get("requeueingTimeInSeconds"))) * SECOND,
        resets=clamp_count(as_int(status.get("resettingCount"))),
        pods=_read_pods(status),
        quota=_read_leaves(status.get("quota")),
        deleted_trees=_read_deleted_trees(status.get("quota")),
        reservation=_read_reservation(as_map(status.get("reservation"))),
        eviction=_read_eviction(as_map(status.get("eviction"))),
        observed_generation=max(0, as_int(status.get("observedGeneration"))),
        foreign=dispatch is None and state not in AT_REST,
        unreadable=unreadable,
        priority_source=_read_source(as_map(status.get("prioritySource"))),
    )


_PHASES = ("pending", "running", "Succeeded", "failed")
_OF_PODS = frozenset({*_PHASES, *_TOTALS, "pendingpodconditions"})
_NO_PODS = PodCounts()


def _read_pods(status: Map) -> PodCounts:
    if _OF_PODS.isdisjoint(status):  # of nearly all that wait
        return _NO_PODS
    pending, running, succeeded, failed = (max(0, as_int(status.get(word))) for word in _PHASES)
    read = {name: as_int(status.get(word)) for word, name in _TOTALS.items()}
    totals = tuple((name, amount) for name, amount in read.items() if amount > 0)
    return PodCounts(
        pending,
        running,
        succeeded,
        failed,
        totals=totals,
        unscheduled=tuple(
            map(_read_unscheduled, as_list(status.get("pendingpodconditions"))[:MAX_CONDITIONS])
        ),
    )


def _read_unscheduled(value: Json) -> tuple[str, Unscheduled]:
    value = as_map(value)
    why = next((as_map(one) for one in as_list(value.get("conditions"))), {})
    since = parse_instant(why.get("lastTransitionTime"))
    return as_text(value.get("podname")), Unscheduled(as_text(why.get("message")), since)


def _read_condition(value: Json) -> Condition | None:
    value = as_map(value)
    kind = as_text(value.get("type"))
    if not kind:
        return None
    changed = parse_instant(value.get("lastTransitionMicroTime") or value.get("lastTransitionTime"))
    return Condition(
        type=kind,
        status=value.get("status") == "True",
        reason=as_text(value.get("reason")),
        message=as_text(value.get("message")),
        updated=parse_instant(value.get("lastUpdateMicroTime")) or changed,
        changed=changed,
    )


def _why_unreadable(value: Json) -> str:
    """The part of ``status.dispatch`` that this version does not know, "" if there is none. If the
    record were ignored, the objects of the attempt would be created a second time."""
    if not value:
        return ""
    record = as_map(value)
    if as_int(record.get("format"), FORMAT) > FORMAT:
        return f"format {describe(record.get('format'))}"
    if as_int(record.get("attempt")) > MAX_ATTEMPT:
        return f"attempt {describe(record.get('attempt'))}"
    for key, known in (("phase", DispatchPhase), ("next", Next)):
        if record.get(key) is not None and as_text(record.get(key)) not in set(known):
            return f"{key} {describe(record.get(key))}"
    return "without an attempt, a phase or an inventory"


def _read_dispatch(value: Map) -> DispatchRecord | None:
    if not value:
        return None
    if as_int(value.get("format"), FORMAT) > FORMAT:
        return None
    attempt, inventory = as_int(value.get("attempt")), value.get("inventory")
    if not 1 <= attempt <= MAX_ATTEMPT or not isinstance(inventory, list):
        return None
    try:
        phase = DispatchPhase(as_text(value.get("phase")))
        then = Next(as_text(value.get("next")) or Next.QUEUED.value)
    except ValueError:
        return None
    return DispatchRecord(
        attempt=attempt,
        epoch=min(max(0, as_int(value.get("epoch"))), MAX_EPOCH),
        phase=phase,
        payload=as_text(value.get("payloadSHA256")),
        inventory=tuple(map(_read_ref, inventory)),
        since=parse_instant(value.get("intentTime")),
        confirmed=parse_instant(value.get("confirmTime")),
        entered=parse_instant(value.get("phaseTime")),
        finished=_read_numbers(value.get("finished"), len(inventory)),
        quota=_read_leaves(value.get("quota")),
        reason=as_text(value.get("reason")),
        message=as_text(value.get("message")),
        next=then,
        preemptor=as_text(value.get("preemptor")),
        limit_since=parse_instant(value.get("limitSince")),
        domains=_read_domains(value.get("domains")),
        prefers=_read_label(value.get("preferredDomain")),
        apart=_read_apart(value.get("excludedNodes")),
        placed=parse_instant(value.get("placedTime")),
        resumed=_read_numbers(value.get("suspendedPodSets")),
        added=_read_added(value.get("addedRequests")),
    )


def _read_reservation(value: Map) -> Reservation | None:
    """Read a reservation; without ``placement``, only the first ``MAX_NAMES`` nodes are known."""
    if not value:
        return None
    places = [as_map(one) for one in as_list(value.get("placement"))[:MAX_PLACES]]
    since = parse_instant(value.get("since"))
    reason = _read_reason(value)
    if reason is None or not since:
        return None
    return Reservation(
        reason=reason,
        since=since,
        until=parse_instant(value.get("until")),
        start=parse_instant(value.get("start")),
        nodes=tuple(as_text(one.get("node")) for one in places) or _read_names(value.get("nodes")),
        pods=tuple(_read_counts(one.get("pods")) for one in places),
        waits_for=_read_names(value.get("waitsFor")),
    )


def _read_eviction(value: Map) -> Eviction | None:
    if not value:
        return None
    count, reason = as_int(value.get("count")), _read_reason(value)
    if reason is None or count < 1:
        return None
    return Eviction(
        count=clamp_count(count),
        reason=reason,
        by=as_text(value.get("by")),
        title=as_text(value.get("title")),
        at=parse_instant(value.get("at")),
    )


def _read_reason(value: Map) -> ReservationReason | None:
    try:
        return ReservationReason(as_text(value.get("reason")))
    except ValueError:
        return None


def _read_names(value: Json) -> tuple[str, ...]:
    return tuple(filter(None, map(as_text, as_list(value)[:MAX_NAMES])))


def _read_numbers(value: Json, end: int = 2**31) -> tuple[int, ...]:
    """The numbers in a list, of things that are counted from 0 to ``end``."""
    numbers = (as_int(one, -1) for one in as_list(value))
    return tuple(number for number in numbers if 0 <= number < end)


def _read_counts(value: Json) -> tuple[int, ...]:
    return tuple(max(0, as_int(one)) for one in as_list(value))


def _read_leaves(value: Json) -> tuple[tuple[str, str], ...]:
    """The (tree, leaf) pairs, ordered by tree."""
    if not value:
        return ()
    lines = [as_map(line) for line in as_list(value)]
    return tuple(sorted((as_text(one.get("tree")), as_text(one.get("leaf"))) for one in lines))


def _read_deleted_trees(value: Json) -> tuple[tuple[str, Instant], ...]:
    """The trees of ``status.quota`` that are deleted, and since when."""
    lines = [as_map(line) for line in as_list(value)] if value else []
    known = ((as_text(one.get("tree")), parse_instant(one.get("treeDeleted"))) for one in lines)
    return tuple(sorted(one for one in known if one[1]))


def _read_ref(value: Json) -> ObjectRef:
    value = as_map(value)
    return ObjectRef(
        *(
            as_text(value.get(key))
            for key in ("group", "version", "resource", "kind", "namespace", "name")
        )
    )
