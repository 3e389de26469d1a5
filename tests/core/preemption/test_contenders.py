"""No right to evict is lost: after holds, requeues and lost nodes of preemptors and victims.

``MCAD_EXAMPLES=5000 pytest tests/core/preemption/test_contenders.py`` plays more of them.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests import budget
from tests.core import bench
from tests.core.preemption.contenders import Contenders

EXAMPLES = int(os.environ.get("MCAD_EXAMPLES", "600" if budget.SOAK else "60"))


@pytest.mark.parametrize("begin", budget.slow_but_first(range(0, EXAMPLES, 20)))
def test_none_waits_behind_a_victim_that_it_may_evict(
    begin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "AUDITED_MAX", 0)
    cases: Counter[str] = Counter()
    for seed in range(begin, begin + 20):
        one = Contenders(seed)
        try:
            one.run(20)
        except AssertionError as error:
            error.add_note(f"{seed=}")
            raise
        cases.update(one.cases)
        cases["evicted"] += sum(view.eviction is not None for view in one.bench.status.values())
    if begin == 0:  # a block of a longer run may have fewer
        assert cases["waits"] >= 5, cases
        assert cases["evicted"] >= 3, cases
    assert cases["not quiet"] + cases["still changing"] <= 5, cases
