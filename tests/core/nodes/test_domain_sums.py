"""Sums by topology domain are those of a recount, whatever happened since."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.core.capacity import Capacity
from mcad.core.nodes import ledger as ledgers
from mcad.core.nodes.domain_sums import DomainSums
from mcad.core.nodes.ledger import Ledger
from mcad.core.state.model import HOSTNAME, HostPort, Topology
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from tests.core.builders import node, pod, pods

NODES = 4
GPU = "nvidia.com/gpu"

_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["use", "give", "idle", "seen", "resize", "remove", "port", "no ports"]),
        st.integers(0, NODES - 1),
        st.sampled_from(["a", "b", "", None]),
        st.booleans(),
    ),
    max_size=30,
)


def _recounted(ledger: Ledger, *, emptied: bool) -> dict[str, dict[str, int]]:
    """What is free by rack, one node at a time, nothing of what is overcommitted."""
    found: dict[str, dict[str, int]] = {}
    for row in ledger.rows.values():
        rack = dict(row.node.labels).get("rack")
        if rack is None or not row.node.ready:
            continue
        sums = found.setdefault(rack, {})
        for name, n in (row.idle if emptied else row.free).items():
            if n > 0:
                sums[name] = sums.get(name, 0) + n
    return found


def _kept(ledger: Ledger, *, emptied: bool) -> DomainSums:
    """The sums that are kept; kept from now on if they are not."""
    if ("rack", emptied) not in ledger.domain_sums:
        ledger.keep_domains(ledger.count_domains("rack", emptied=emptied))
    return ledger.domain_sums["rack", emptied]


@given(_STEPS)
def test_sums_are_those_of_a_recount_whatever_happened_since(
    steps: list[tuple[str, int, str | None, bool]],
) -> None:
    ledger = Ledger()
    for number in range(NODES):
        ledger.add(node(f"n{number}", "2", gpu=1, labels={"rack": "ab"[number % 2]}))
    for emptied in (False, True):
        _kept(ledger, emptied=emptied)
    for what, number, rack, flag in steps:
        name = f"n{number}"
        labels = {} if rack is None else {"rack": rack}
        there = name in ledger.rows
        if what == "seen":
            seen = node(name, "2", gpu=number, ready=flag, labels=labels)
            (ledger.replace if there else ledger.add)(seen)
        elif what == "port":
            ledger.load((("cpu", 1000),), (HostPort("TCP", number + 1),))
        elif what == "no ports":
            ledger.keep_ports(())
        elif there and what == "remove":
            ledger.remove(name)
        elif there and what == "resize":
            same = ledger.rows[name].node
            amounts = node(name, "1" if flag else "8", gpu=number).allocatable
            ledger.resize(replace(same, allocatable=amounts))
        elif there and what == "idle":
            ledger.note_idle(name, (("cpu", 3000), (GPU, 1)), 1 if flag else -1)
        elif there:
            ledger.note(name, (("cpu", 3000), (GPU, 1)), 1 if what == "use" else -1)
        ledger.post()
        for emptied in (False, True):
            expected = _recounted(ledger, emptied=emptied)
            sums = _kept(ledger, emptied=emptied)
            assert sums.amounts() == expected
            assert set(sums.values()) == expected.keys()


def test_levels_of_the_settings_are_counted_while_nodes_are_read() -> None:
    levels = ("zone", "rack", HOSTNAME)
    capacity = Capacity(Settings(topology_levels=levels))
    capacity.node_seen(node("n1", "4", labels={"rack": "a", "zone": "z"}))
    kept = capacity._ledger.domain_sums
    assert list(kept) == [("rack", False), ("zone", False)]
    assert kept["rack", False].of("a")["cpu"] == 4000


def test_more_levels_than_are_kept_are_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "LEVELS_KEPT", 2)
    ledger = Ledger()
    row = ledger.add(node("n1", "4", labels={"rack": "a", "zone": "z", "row": "r"}))
    for level in ("rack", "zone", "row"):
        ledger.keep_domains(ledger.count_domains(level, emptied=False))
    assert list(ledger.domain_sums) == [("row", False)]
    assert len(row.sums) == 1


def test_a_question_keeps_no_level_and_counts_it_once() -> None:
    capacity = Capacity(Settings())
    capacity.node_seen(node("n1", "4", labels={"rack": "a"}))
    shape = capacity.shape((replace(pods(1, "2"), topology=Topology(("rack",))),))
    questions = capacity.questions()
    assert questions.refusal(shape) is None
    assert not capacity._ledger.domain_sums
    assert capacity.refusal(shape) is None
    assert list(capacity._ledger.domain_sums) == [("rack", False)]


def test_sums_of_a_pickled_capacity_stay_in_step() -> None:
    """A snapshot of a journal goes on where it was taken."""
    capacity = Capacity(Settings(topology_levels=("rack",)))
    capacity.node_seen(node("n1", "4", labels={"rack": "a"}))
    copied: Capacity = pickle.loads(pickle.dumps(capacity))
    for one in (capacity, copied):
        one.pod_seen(pod("p", "n1", "3"))
        one.check()
        assert one._ledger.domain_sums["rack", False].of("a")["cpu"] == 1000
