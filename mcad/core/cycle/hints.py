"""Takes up the queueing hints: what nodes may let in by now needs a verdict again.

A refusal stands until something happens that may let the shape in (core R4). It is tested again
within ``backoffTime`` all the same (admit.py), for the day on which this is wrong.
"""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.state.bounds import STEPS_PER_PASS


def take_up(cluster: Cluster, *, is_brief: bool = False) -> bool:
    """Requeue what nodes may let in after what happened. Returns whether that is all: if the work
    of this pass did not suffice the next one goes on, and until then nothing starts and nothing is
    evicted, or a lower priority would take the room of what is yet to be found. ``is_brief`` leaves
    most of the pass to what comes next."""
    agenda, begun = cluster.agenda, cluster.admission.steps
    least = STEPS_PER_PASS // 4
    most = least if is_brief else max(least, STEPS_PER_PASS - agenda.spent)
    is_all = _requeue(cluster, most)
    agenda.spent += cluster.admission.steps - begun
    if cluster.capacity.has_news:
        agenda.wake_at(cluster.now)
    return is_all


def take_up_all(cluster: Cluster) -> None:
    """The same whatever it takes, for dry runs."""
    while not _requeue(cluster, STEPS_PER_PASS):
        pass


def _requeue(cluster: Cluster, most: int) -> bool:
    everyone = cluster.waiting.turns.heads_block
    return cluster.waiting.inadmissible.requeue_for_nodes(most, everyone=everyone)
