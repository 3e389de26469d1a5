"""DispatchPauses put AppWrappers on hold, and let them line up again at their position."""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.internal_errors import for_each
from mcad.core.state.bounds import PAUSED_PER_PASS
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.waiting_reason import WaitingReason
from mcad.core.state.waiting_state import WaitingState


def apply(cluster: Cluster) -> bool:
    """Check some AppWrappers after a change. Returns whether all have been checked."""
    pauses = cluster.waiting.dispatch_pauses
    if not pauses.pending:
        return True
    for uid in pauses.take(cluster.entries, PAUSED_PER_PASS):
        entry = cluster.entries.get(uid)
        if entry is not None and entry.phase is Phase.WAITING:
            for_each(cluster, (entry,), _look)
    if pauses.pending:
        cluster.agenda.wake_at(cluster.now)
    return not pauses.pending


def _look(cluster: Cluster, entry: Entry) -> None:
    """Hold or release an AppWrapper; another hold is checked again when it ends."""
    wanted = cluster.waiting.dispatch_pauses.hold(entry.workload)
    hold = entry.wait.hold
    is_paused = hold is not None and hold.reason is WaitingReason.DISPATCH_PAUSED
    if (is_paused and hold != wanted) or (
        wanted is not None and entry.wait.state in (WaitingState.IN_LINE, WaitingState.RESERVED)
    ):
        entry.report_anew()
        cluster.line_up(entry)
