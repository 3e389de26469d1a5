"""The flags for kube-scheduler of the benchmarks of gangs, on the real one."""

from __future__ import annotations

import pytest

from benchmarks.real_gangs import PODS, parser, scheduler_config
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.manifests import pod

pytestmark = pytest.mark.controlplane


def test_kube_scheduler_fills_one_node_before_the_next() -> None:
    fields = scheduler_config(parser(None, 3).parse_args(["--most-allocated", "--score-all"]))
    assert fields["percentageOfNodesToScore"] == 100
    with controlplane_or_skip(scheduler=fields, start_delay_ms=0) as plane:
        for number in range(3):
            plane.add_node(f"node-{number}", cpu="8", memory="16Gi")
        for number in range(4):
            plane.request("POST", PODS, pod(f"pod-{number}", cpu="1"))
        plane.wait_for(lambda: len(_nodes(plane)) == 4, 30, "all are bound")
        assert len(set(_nodes(plane))) == 1


def _nodes(plane: ControlPlane) -> list[str]:
    specs = [one["spec"] for one in plane.get(PODS)["items"]]
    return [one["nodeName"] for one in specs if "nodeName" in one]
