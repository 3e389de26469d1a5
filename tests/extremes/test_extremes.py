"""Drawn manifests differ in many fields and can be read; some of them live on a control plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcad.api.appwrapper import parse
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import AppWrapperSeen, Decide, NodeSeen
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.api.builders import CATALOG
from tests.api.strategies import extremes_of, follow, places
from tests.controlplane.fixtures import controlplane_or_skip
from tests.core.bench import START, node
from tests.e2e.process import printed
from tests.extremes.drawn import manifest
from tests.extremes.soak import furnish, soak


def test_a_number_draws_the_same_manifest_each_time() -> None:
    assert manifest(1, 7) == manifest(1, 7)
    assert manifest(1, 7) != manifest(2, 7)


def test_extremes_are_drawn_in_many_fields() -> None:
    found = set()
    for number in range(400):
        drawn = manifest(1, number)
        for place in places(drawn):
            if follow(drawn, place) in extremes_of(drawn, place):
                found.add(tuple(part for part in place if not isinstance(part, int)))

    assert len(found) >= 100


def test_each_is_read_and_goes_through_a_pass() -> None:
    dispatcher = Dispatcher(Settings(preemption=True))
    now = START
    dispatcher.step(NodeSeen(node(milli=4000)), now)
    for number in range(150):
        drawn = manifest(3, number)
        meta = {"uid": f"uid-{number}", "generation": 1, "namespace": "default"}
        drawn["metadata"] |= meta | {"creationTimestamp": "2026-01-01T00:00:00Z"}
        now += SECOND
        dispatcher.step(AppWrapperSeen(parse(drawn, CATALOG).workload), now)
        dispatcher.step(Decide(), now)

    assert len(dispatcher.cluster.entries) == 150


@pytest.mark.controlplane
def test_a_sample_on_a_control_plane(tmp_path: Path) -> None:
    with controlplane_or_skip(kinds=printed("crd")) as plane:
        account = furnish(plane)
        found = soak(plane, account, tmp_path, policy="BestEffortFIFO", seed=5, numbers=range(40))

    assert not found.ended
    assert not found.untold
    assert not any(found.log.values()), found.log
    assert sum(found.fates.values()) == 40
