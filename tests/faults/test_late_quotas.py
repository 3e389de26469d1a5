"""The watch of QuotaSubtrees is late while those of a tree are replaced: nothing is dispatched past
the limits that are there before and after (the bailiff counts), and it goes on when they are back.
"""

from __future__ import annotations

import pytest

from mcad.kube.kinds import QUOTA_SUBTREES
from tests.faults.injection import Plan
from tests.faults.scenarios import Scenario, create, delete, deployment
from tests.faults.shares import COUNTING, ROOT, TEAMS, define, of
from tests.faults.weather import SlowStream, Weather
from tests.faults.world import run
from tests.manifests import generic

REPLACED = Scenario(
    "a tree is replaced while others wait for a share",
    cpus=(8,),
    acts=(
        (0.0, define(ROOT)),
        (0.0, define(TEAMS)),
        (90.0, create(of("red", generic("a", deployment("a", 2))))),
        (91.0, create(of("blue", generic("c", deployment("c", 1))))),
        (92.0, create(of("red", generic("b", deployment("b", 2))))),
        (93.0, create(of("blue", generic("d", deployment("d", 1))))),
        (160.0, delete("root", QUOTA_SUBTREES)),
        (160.1, define(ROOT)),
        (161.0, delete("teams", QUOTA_SUBTREES)),
        (161.1, define(TEAMS)),
        (500.0, delete("a")),
    ),
    ends={"a": "", "b": "Running", "c": "Running", "d": "Pending"},
    config=COUNTING,
)


@pytest.mark.parametrize(
    ("from_s", "until_s"),
    [(0.0, float("inf")), (160.05, 162.0), (0.0, 160.05), (161.05, 162.0)],
    ids=["all", "the new ones", "until the first is gone", "the last one"],
)
@pytest.mark.parametrize("lag_s", [0.5, 5.0, 60.0])
def test_a_tree_that_is_replaced_limits_all_the_time(
    lag_s: float, from_s: float, until_s: float
) -> None:
    late = SlowStream(QUOTA_SUBTREES.plural, lag_s, from_s, until_s)
    run(REPLACED, Plan(weather=Weather((late,))))
