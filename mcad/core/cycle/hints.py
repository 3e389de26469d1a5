"""Takes up the queueing hints: what nodes may let in by now needs a verdict again.

A refusal stands until something happens that may let the shape in (core R4). It is tested again
within ``backoffTime`` all the same (admit.py), for the day on which this is wrong.
"""

from __future__ import annotations

from mcad.core.cluster import Cluster


def take_up(cluster: Cluster) -> None:
    """Requeue what nodes may let in after what happened."""
    everyone = cluster.waiting.turns.heads_block
    cluster.waiting.inadmissible.requeue_for_nodes(everyone=everyone)
