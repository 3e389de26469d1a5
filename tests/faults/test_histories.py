"""Random histories with a few faults each: at rest everything is whole, and the books are true.

What the other suites enumerate is one fault in stories that were thought of. These are faults in
combination, on stories that were not. A seed that fails is a test: put it into ``FOUND``.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.faults import pair, world
from tests.faults.histories import history, trouble
from tests.faults.injection import SPELLS, Fault
from tests.faults.meddling import Edit

ALONE = [*(one for one in Fault if one not in (*SPELLS, Fault.BEQUEATHED)), *Edit]
LEADERS = [*SPELLS, Fault.BEQUEATHED, Fault.KILLED_BEFORE, Fault.KILLED_AFTER, Fault.LATE]
SEEDS = 40
FOUND = (211,)


@pytest.mark.parametrize("seed", [*FOUND, *range(SEEDS)])
def test_whatever_happens_everything_is_whole_and_true_at_rest(seed: int) -> None:
    rng = Random(seed)
    told, scenario = history(rng)
    try:
        if rng.random() < 0.2:
            pair.run(scenario, trouble(rng, LEADERS))
        else:
            world.run(scenario, trouble(rng, ALONE))
    except AssertionError as error:
        error.add_note("\n".join((f"cpus={scenario.cpus}", *told.said)))
        raise
