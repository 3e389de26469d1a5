"""Random histories of a cluster that grows: no gang starts without places for all of its pods, what
is asked for is what has no place, and no request is left.

``MCAD_EXAMPLES=5000 pytest tests/core/scale_up/test_growing.py`` plays more of them.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests import budget
from tests.core.scale_up.growing import Growing

EXAMPLES = int(os.environ.get("MCAD_EXAMPLES", "400" if budget.SOAK else "60"))


@pytest.mark.parametrize("begin", budget.slow_but_first(range(0, EXAMPLES, 20)))
def test_gangs_start_with_all_places_and_ask_for_the_others(begin: int) -> None:
    cases: Counter[str] = Counter()
    for seed in range(begin, begin + 20):
        one = Growing(seed)
        try:
            one.run(30)
        except AssertionError as error:
            error.add_note(f"{seed=}")
            raise
        cases.update(one.cases)
    if begin == 0:  # a block of a longer run may have fewer
        common = ("asked", "asked for some", "starts", "leaders")
        assert min(cases[one] for one in common) >= 10, cases
        assert cases["all served"] >= 5, cases
