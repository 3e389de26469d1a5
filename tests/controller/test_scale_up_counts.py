"""The figures of scale-up requests: each request has one outcome."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from mcad.controller.metrics.scale_ups import Outcome, ScaleUpCounts
from mcad.core.commands import Command, CreateItem, RequestScaleUp, WithdrawScaleUp
from mcad.core.state.scale_up import ScaleUpState
from tests.controller.clock import LoopClock
from tests.core.bench import Bench

ASK, AGAIN = RequestScaleUp("u", 1, ()), RequestScaleUp("u", 2, ())
CREATE, WITHDRAW = CreateItem("u", 1, 0), WithdrawScaleUp("u", 1)


class Counted:
    def __init__(self) -> None:
        self.cluster = Bench().dispatcher.cluster
        self.clock, self.registry = LoopClock(), CollectorRegistry()
        self.counts = ScaleUpCounts(self.cluster, self.registry, self.clock)

    def count(self, *commands: Command) -> dict[str, float]:
        """The outcomes that were counted."""
        for command in commands:
            self.counts.count(command)
        value = self.registry.get_sample_value
        name = "mcad_scale_up_requests_total"
        found = {one.value: value(name, {"outcome": one.value}) for one in Outcome}
        return {one: count for one, count in found.items() if count}


async def test_a_request_that_leads_to_a_dispatch_took_so_long() -> None:
    counted = Counted()
    counted.count(ASK)
    await counted.clock.advance(40)
    assert counted.count(ASK, CREATE, CreateItem("u", 1, 1), WITHDRAW) == {
        "asked": 1,
        "provisioned": 1,
    }
    assert counted.registry.get_sample_value("mcad_scale_up_seconds_sum") == 40
    assert counted.registry.get_sample_value("mcad_scale_up_seconds_count") == 1


OUTCOMES = {
    ScaleUpState.ASKED: "withdrawn",
    ScaleUpState.ACCEPTED: "withdrawn",
    ScaleUpState.PROVISIONED: "wasted",
    ScaleUpState.EXPIRED: "wasted",
    ScaleUpState.FAILED: "failed",
    ScaleUpState.REVOKED: "failed",
}


@pytest.mark.parametrize("state", ScaleUpState)
def test_what_becomes_of_a_request_that_is_withdrawn(state: ScaleUpState) -> None:
    counted = Counted()
    counted.cluster.scale_ups.seen("u", 1, 0).state = state
    assert counted.count(ASK, WITHDRAW, WITHDRAW) == {"asked": 1, OUTCOMES[state]: 1}


def test_requests_of_an_earlier_leader_and_other_attempts_do_not_count() -> None:
    counted = Counted()
    assert counted.count(WITHDRAW, CREATE) == {}
    assert counted.count(AGAIN, CREATE, WITHDRAW) == {"asked": 1}
