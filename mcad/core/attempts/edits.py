"""An edit of a dispatched AppWrapper: accepted, and effective from the next attempt (protocol P8).

Items of a v1beta1 AppWrapper are not immutable, so the API server accepts such an edit. A condition
says that the running attempt differs from the spec.
"""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import ENDED
from mcad.core.state.model import Workload
from mcad.core.state.reasons import APPLIED, NEXT_ATTEMPT, ConditionType, EventReason
from mcad.core.state.waiting_reason import WaitingReason

_NOTE = (
    "The spec was edited after the dispatch: what runs stays as it is, and the edit counts from "
    "the next attempt. To begin one now, suspend the AppWrapper and resume it."
)


def report(cluster: Cluster, entry: Entry) -> None:
    """Report an edit once per attempt; a restart does not repeat the condition."""
    kind = ConditionType.EDIT_PENDING
    if entry.edited is None:
        if entry.shows(kind):
            entry.unset_condition(kind, cluster.now, reason=APPLIED)
            cluster.settle(entry)
        return
    if entry.shows(kind) or entry.phase in ENDED or _is_not_read(entry.edited):
        return
    entry.set_condition(kind, cluster.now, reason=NEXT_ATTEMPT, message=_NOTE)
    cluster.settle(entry)
    cluster.announce(entry, EventReason.EDIT_PENDING, _NOTE, action="Dispatch", warning=True)


def _is_not_read(spec: Workload) -> bool:
    """Whether the spec names a kind that is not discovered now: then it cannot be compared."""
    return spec.problem is not None and spec.problem.kind is WaitingReason.NOT_INSTALLED
