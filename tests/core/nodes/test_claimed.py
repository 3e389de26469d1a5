"""The nodes that some shapes could use: the same answers as comparing pool with pool."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mcad.core.fit.shape_cache import Memory
from mcad.core.nodes.claimed import ClaimedNodes
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pools import Pool, meet
from mcad.core.nodes.shape import ClassKey
from mcad.core.state.model import Constraint
from tests.core.builders import needs, node, on, wants

HOST = "kubernetes.io/hostname"
NAMES = [f"n{i}" for i in range(3)]


@st.composite
def constraints(draw: st.DrawFn) -> Constraint:
    """Some hosts, or all but some, of one zone or of both."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    term = (needs(HOST, draw(st.sampled_from(["In", "NotIn"])), *names),)
    return on(term, **draw(st.sampled_from([{}, {}, {"zone": "a"}, {"zone": "b"}])))


@pytest.mark.parametrize("most", [0, 5, 100_000])
@given(data=st.data())
def test_claimed_nodes_are_those_of_any_pool_that_was_claimed(
    most: int, data: st.DataObject
) -> None:
    ledger = Ledger()
    memory = Memory(ledger, on_nodes=True)
    for number, name in enumerate(NAMES):
        ledger.add(node(name, labels={HOST: name, "zone": "ab"[number % 2]}))
    wanted = data.draw(st.lists(constraints(), min_size=3, max_size=6, unique=True))
    pools = [memory.hold_class(ClassKey(wants("1"), one, 0)).pool for one in wanted]
    groups = st.lists(st.sampled_from(pools), max_size=2).map(tuple)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcad.core.nodes.claimed.CLAIMED_MEMBERSHIPS_MAX", most)
        claimed, before = ClaimedNodes(), list[Pool]()
    for number in range(5):
        for asked in (*((pool,) for pool in pools), data.draw(groups)):
            found = any(meet(one, other) for one in asked for other in before)
            event(f"{found} after {number}")
            assert claimed.has_one_of(asked) == found
        more: tuple[Pool, ...] = data.draw(groups)
        claimed.claim(more)
        before += more
