"""A verdict in topology domains that takes several passes: nothing behind it starts meanwhile."""

import pytest

from mcad.core.fit import domains
from mcad.core.state.model import Constraint, Workload
from mcad.core.state.records import replace
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.bench import Bench, workload
from tests.core.builders import on
from tests.core.cycle.test_admit import begun
from tests.core.racks import close, rack

RACKS = 24
PASSES = range(1, 200)


def _bench(monkeypatch: pytest.MonkeyPatch, policy: Policy, *, last: int = 2) -> Bench:
    """Racks of two nodes, for which the gang is one pod too many by a search alone; the last rack
    has so many nodes."""
    monkeypatch.setattr(domains, "DOMAINS_WORK", 200)
    sizes = [*(2 for _ in range(RACKS - 1)), last]
    nodes = [one for n, size in enumerate(sizes) for one in rack(f"r{n:02}", size)]
    settings = Settings(policy=policy, placement_timeout=0, binding_wait=0)
    return Bench(settings, nodes=nodes)


def _passes_until(bench: Bench, is_over: object) -> int:
    """How many passes follow each other at once until that holds."""
    assert callable(is_over)
    for number in PASSES:
        bench.decide()
        if is_over():
            return number
        assert bench.now in bench.wishes, "the next pass is made at once"
        assert not begun(bench), "nothing starts meanwhile"
    raise AssertionError


GANG = (700, 700, 500)


@pytest.mark.parametrize("policy", [Policy.STRICT_FIFO, Policy.BEST_EFFORT_FIFO])
def test_what_is_behind_waits_for_the_verdict_and_then_goes_by_it(
    monkeypatch: pytest.MonkeyPatch, policy: Policy
) -> None:
    bench = _bench(monkeypatch, policy)
    bench.submit(close("gang", *GANG), workload("small", 100))
    cluster = bench.dispatcher.cluster
    gang = cluster.entries["uid-gang"]

    assert _passes_until(bench, lambda: begun(bench)) > RACKS // 4
    refusal = cluster.waiting.queue.refusal_of(gang)
    assert refusal is not None
    assert refusal.reason is WaitingReason.NO_DOMAIN
    assert begun(bench) == ["small"], "the gang would fit in no rack even if all were empty"


def test_a_gang_starts_in_the_last_rack_that_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench(monkeypatch, Policy.STRICT_FIFO, last=3)
    bench.submit(close("gang", *GANG), workload("small", 100))
    assert _passes_until(bench, lambda: begun(bench)) > RACKS // 4
    assert begun(bench)[0] == "gang"
    chosen = bench.dispatcher.cluster.capacity.gangs.domains("uid-gang")
    assert {one.domain for one in chosen} == {("rack", f"r{RACKS - 1:02}")}


def test_a_head_that_would_fit_in_the_last_rack_blocks_though_to_see_that_takes_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = _bench(monkeypatch, Policy.STRICT_FIFO, last=3)
    last = on(rack=f"r{RACKS - 1:02}")
    bench.start(_where(workload("holder", 900), last))
    bench.submit(close("gang", *GANG), workload("small", 100))
    assert _passes_until(bench, lambda: bench.now not in bench.wishes) > RACKS // 3
    assert not begun(bench)
    bench.delete("uid-holder").settle()
    assert bench.order == ["holder", "gang", "small"]


def test_a_gang_behind_a_blocking_head_keeps_its_nodes_though_to_see_that_takes_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The gang would fit in the last rack if nothing ran; the pod behind it wants another rack."""
    bench = _bench(monkeypatch, Policy.STRICT_FIFO, last=3)
    last, first = (on(rack=f"r{n:02}") for n in (RACKS - 1, 0))
    bench.start(_where(workload("holder", 300, 300, 300), last))
    head = _where(workload("head", 900, 900, 900), last)
    bench.submit(head, close("gang", *GANG), _where(workload("small", 100), first))
    for _ in range(3 * RACKS):
        bench.decide()
        assert not begun(bench)


def _where(work: Workload, where: Constraint) -> Workload:
    return replace(work, sets=tuple(replace(one, constraint=where) for one in work.sets))
