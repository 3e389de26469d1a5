"""Reads what an autoscaler says about a request: the conditions of its object.

A ProvisioningRequest is answered by cluster-autoscaler, a CapacityBuffer by cluster-autoscaler or
Karpenter, and placeholder pods by kube-scheduler, which binds them.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from mcad.api import labels
from mcad.api.scale_up.settings import Via
from mcad.api.wire import Map, as_list, as_map, as_text, parse_instant, plural
from mcad.core.state.quotation import quoted
from mcad.core.state.scale_up import ScaleUpState
from mcad.core.state.units import SECOND, Duration, Instant

BOOKED: Duration = 9 * 60 * SECOND
"""For how long nodes are kept for a ProvisioningRequest: cluster-autoscaler does so for 10 minutes,
and a new request has to be made before."""

NOT_READY: Duration = 30 * SECOND
"""How long a CapacityBuffer may be unready. The autoscaler may read it before its template."""

ADDS_NODES = "RequiresNewCapacity"
"""The reason for which Karpenter writes Provisioning=False while it adds the nodes."""

CONSUMED = "CapacityBookingConsumed"
"""The reason of BookingExpired if all pods have used their nodes."""


class Sight(Struct, frozen=True):
    """One object of a request, as it is at present. ``later``: if it stays so, it is in this state
    from this instant on; 0 is never. ``objects`` is of how many objects the request consists."""

    state: ScaleUpState
    message: str
    since: Instant
    title: str
    later_at: Instant = 0
    later: ScaleUpState = ScaleUpState.FAILED
    objects: int = 1

    def at(self, now: Instant) -> "Sight":
        """What the object says at this instant."""
        is_due = 0 < self.later_at <= now
        return Sight(self.later, self.message, self.since, self.title) if is_due else self


def asked_by(obj: Map) -> tuple[str, int]:
    """(uid, attempt) of the request that an object belongs to; ("", 0) if it is not ours."""
    tags = labels.labels_of(obj)
    uid = as_text(tags.get(labels.SCALE_UP_UID))
    attempt = labels.parse_number(tags.get(labels.SCALE_UP_ATTEMPT), 0)
    return (uid, attempt) if uid and attempt else ("", 0)


def read(via: Via, obj: Map) -> Sight:
    """What the autoscaler says about an object of a request."""
    readers = {Via.PROVISIONING_REQUEST: _request, Via.CAPACITY_BUFFER: _buffer}
    count = labels.parse_number(labels.labels_of(obj).get(labels.SCALE_UP_OBJECTS), 1)
    return replace(readers.get(via, _pod)(obj), objects=count)


def together(sights: Sequence[Sight]) -> Sight:
    """The objects of one request as one: it has failed if one of them has, and is as far as the
    last of them. A request of which a part is missing has to be made anew."""
    found = sorted(sights, key=lambda one: (_ORDER.index(one.state), one.title))
    worst, others = found[0], len(found) - 1
    if len(found) < max(one.objects for one in found):
        return Sight(ScaleUpState.EXPIRED, PARTLY, worst.since, worst.title)
    due = min((one for one in found if one.later_at), key=lambda one: one.later_at, default=worst)
    return Sight(
        worst.state,
        worst.message,
        min(one.since for one in found),
        f"{worst.title} and {plural(others, 'other')}" if others else worst.title,
        due.later_at,
        due.later,
    )


PARTLY = "a part of the request does not exist"

_ORDER = (
    ScaleUpState.FAILED,
    ScaleUpState.REVOKED,
    ScaleUpState.EXPIRED,
    ScaleUpState.ASKED,
    ScaleUpState.ACCEPTED,
    ScaleUpState.PROVISIONED,
)


class _Conditions:
    """The conditions of an object by type."""

    def __init__(self, obj: Map) -> None:
        meta = as_map(obj.get("metadata"))
        given = as_list(as_map(obj.get("status")).get("conditions"))
        self._of = {as_text(one.get("type")): one for one in map(as_map, given)}
        self.since = parse_instant(meta.get("creationTimestamp"))
        self.name = f"{as_text(meta.get('namespace'))}/{as_text(meta.get('name'))}"

    def has(self, name: str, status: str = "True") -> bool:
        return self._of.get(name, {}).get("status") == status

    def reason(self, name: str) -> str:
        return as_text(self._of.get(name, {}).get("reason"))

    def words(self, name: str) -> str:
        return quoted(as_text(self._of.get(name, {}).get("message"))) or self.reason(name)

    def changed(self, name: str) -> Instant:
        return parse_instant(self._of.get(name, {}).get("lastTransitionTime")) or self.since


def _request(obj: Map) -> Sight:
    told = _Conditions(obj)
    title = f"ProvisioningRequest {told.name}"
    later_at: Instant = 0
    if told.has("Failed"):
        state, name = ScaleUpState.FAILED, "Failed"
    elif told.has("CapacityRevoked"):
        state, name = ScaleUpState.REVOKED, "CapacityRevoked"
    elif told.has("BookingExpired") and told.reason("BookingExpired") != CONSUMED:
        state, name = ScaleUpState.EXPIRED, "BookingExpired"
    elif told.has("Provisioned"):
        state, name = ScaleUpState.PROVISIONED, "Provisioned"
        later_at = 0 if told.has("BookingExpired") else told.changed(name) + BOOKED
    elif told.has("Provisioned", "False"):  # it tries again later, when another may be asked for
        state, name = ScaleUpState.FAILED, "Provisioned"
    elif told.has("Accepted"):
        state, name = ScaleUpState.ACCEPTED, "Accepted"
    else:
        state, name = ScaleUpState.ASKED, "Accepted"
    words = told.words(name)
    return Sight(state, words, told.since, title, later_at, ScaleUpState.EXPIRED)


def _buffer(obj: Map) -> Sight:
    """The autoscaler does not say when the nodes of a buffer are there."""
    told = _Conditions(obj)
    title = f"CapacityBuffer {told.name}"
    if told.has("LimitedByQuotas"):
        return Sight(ScaleUpState.FAILED, told.words("LimitedByQuotas"), told.since, title)
    name = "Provisioning"
    if told.reason(name) == ADDS_NODES:
        return Sight(ScaleUpState.ACCEPTED, told.words(name), told.since, title)
    for name in ("ReadyForProvisioning", "Provisioning"):
        if told.has(name, "False"):
            late = told.changed(name) + NOT_READY
            return Sight(ScaleUpState.ASKED, told.words(name), told.since, title, late)
    name = "Provisioning" if told.has("Provisioning") else "ReadyForProvisioning"
    state = ScaleUpState.ACCEPTED if told.has(name) else ScaleUpState.ASKED
    return Sight(state, told.words(name), told.since, title)


def _pod(obj: Map) -> Sight:
    told = _Conditions(obj)
    is_bound = bool(as_map(obj.get("spec")).get("nodeName"))
    state = ScaleUpState.PROVISIONED if is_bound else ScaleUpState.ASKED
    words = "" if is_bound else told.words("PodScheduled")
    return Sight(state, words, told.since, f"Pod {told.name}")
