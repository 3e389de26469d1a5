"""What the controller reports about scale-up requests; the next pass decides what follows."""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.events import ScaleUpGone, ScaleUpRefused, ScaleUpSeen, ScaleUpServed
from mcad.core.state.scale_up import ScaleUpState


def served(cluster: Cluster, event: ScaleUpServed) -> None:
    """Note whether an autoscaler can be asked."""
    cluster.scale_ups.served = event.served


def seen(cluster: Cluster, event: ScaleUpSeen) -> None:
    """Note the state of a request, perhaps one that an earlier leader made."""
    request = cluster.scale_ups.seen(event.uid, event.attempt, min(event.since, cluster.now))
    if event.state is ScaleUpState.PROVISIONED:
        request.provisioned_at = request.provisioned_at or cluster.now
    request.state, request.message = event.state, event.message
    request.object, request.until_bound = event.object, event.until_bound


def gone(cluster: Cluster, event: ScaleUpGone) -> None:
    """Forget a request of which nothing is left."""
    cluster.scale_ups.gone(event.uid, event.attempt)


def refused(cluster: Cluster, event: ScaleUpRefused) -> None:
    """Note that a request was not created: it is repeated, unless the refusal lasts."""
    request = cluster.scale_ups.get(event.uid, event.attempt)
    if request is not None and not request.seen:
        request.refused(event.answer, cluster.now)
        cluster.agenda.wake_at(request.again_at)
