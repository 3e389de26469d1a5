"""The state of a core as the events that a dispatcher would observe that starts at that moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcad.core.events import (
    AppWrapperSeen,
    ChildSeen,
    Event,
    KindWatched,
    NodeSeen,
    PauseSeen,
    PodSeen,
    QuotaSeen,
    ScaleUpSeen,
    ScaleUpServed,
)
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import DispatchPhase, Persisted
from mcad.core.state.reasons import State
from mcad.core.state.records import replace
from mcad.core.status.status import derive, persisted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcad.core.cluster import Cluster
    from mcad.core.state.entry import Entry
    from mcad.core.state.scale_up import ScaleUpRequest
    from mcad.core.state.units import Instant

_BEING_CREATED = frozenset({Phase.INTENDING, Phase.CREATING, Phase.CONFIRMING})


def present(
    cluster: Cluster, leave_out: Callable[[Entry], bool] = lambda _: False
) -> Iterator[Event]:
    """Every present object as an event, but for AppWrappers to ``leave_out``. The core may go on
    between two of them, as a cluster does between the lists of a dispatcher that starts.

    An AppWrapper that is being created is restored as dispatched, although this core may not know
    all of its objects.
    """
    for (group, resource), message in list(cluster.objects.unwatched.items()):
        yield KindWatched(group, resource, watched=False, message=message)
    yield from map(NodeSeen, list(cluster.capacity.nodes()))
    yield from map(QuotaSeen, list(cluster.forest.subtrees.values()))
    yield from map(PauseSeen, list(cluster.waiting.dispatch_pauses.by_uid.values()))
    for entry in list(cluster.entries.values()):
        if not (entry.rebuilt or entry.phase is Phase.GONE or leave_out(entry)):
            work = replace(entry.edited or entry.workload, persisted=_saved(entry, cluster.now))
            yield AppWrapperSeen(work, listed=True)
    yield from map(ChildSeen, list(cluster.objects.by_uid.values()))
    yield from map(PodSeen, list(cluster.capacity.pods.all()))
    if not cluster.scale_ups.served:
        yield ScaleUpServed(served=False)
    yield from (_seen(one) for one in cluster.scale_ups if one.seen)


def _seen(request: ScaleUpRequest) -> ScaleUpSeen:
    one = request
    about = (one.uid, one.attempt, one.state, one.message, one.since, one.object, one.until_bound)
    return ScaleUpSeen(*about)


def _saved(entry: Entry, now: Instant) -> Persisted:
    saved = replace(persisted(derive(entry)), foreign=entry.phase is Phase.FOREIGN)
    if saved.dispatch is None or entry.phase not in _BEING_CREATED:
        return saved
    record = saved.dispatch
    confirmed = record.confirmed or now
    done = replace(record, phase=DispatchPhase.DISPATCHED, confirmed=confirmed)
    return replace(saved, state=State.RUNNING, dispatch=done)
