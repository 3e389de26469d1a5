"""Stories in which somebody waits for room that others have: they end, or are evicted for it.

Whoever would overtake is there in each of them, and would run for ever on what is claimed.
"""

from __future__ import annotations

from mcad.api.config import Config
from tests.faults.scenarios import Scenario, complete, create, deployment, job, scheduled
from tests.manifests import generic

PROTECTED = Scenario(
    "one that waits for long gets the room of two that end, and nobody goes ahead",
    cpus=(2,),
    acts=(
        (0.0, create(scheduled(complete("a", job("a", 1, 110)), dispatchDuration={"limit": 180}))),
        (0.1, create(scheduled(complete("b", job("b", 1, 150)), dispatchDuration={"limit": 220}))),
        (1.0, create(complete("c", job("c", 2, 20)))),
        (100.0, create(generic("d", deployment("d", 1)))),
    ),
    ends={"a": "Completed", "b": "Completed", "c": "Completed", "d": "Running"},
    config=Config(protectAfter=20),
)

CLAIMED = (PROTECTED,)
