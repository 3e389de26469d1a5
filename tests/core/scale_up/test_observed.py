"""Reports about scale-up requests: noted for the next pass, and never a reason for a command."""

import pytest

from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event, ScaleUpGone, ScaleUpRefused, ScaleUpSeen
from mcad.core.state.answer import Answer
from mcad.core.state.scale_up import ScaleUpState
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import START

SEEN = ScaleUpSeen(
    "uid-a", 1, ScaleUpState.ACCEPTED, "in a queue", START, "ProvisioningRequest default/a-1"
)


@pytest.mark.parametrize(
    "event",
    [SEEN, ScaleUpGone("uid-a", 1), ScaleUpRefused("uid-a", 1, Answer(403, "Forbidden", "no"))],
    ids=lambda event: type(event).__name__,
)
def test_a_report_about_a_request_that_nothing_waits_for_is_no_reason_for_a_command(
    event: Event,
) -> None:
    dispatcher = Dispatcher(Settings(scale_up=True))
    assert dispatcher.step(event, START) == ()


def test_a_request_is_known_until_it_is_gone() -> None:
    dispatcher = Dispatcher(Settings(scale_up=True))
    known = dispatcher.cluster.scale_ups
    dispatcher.step(SEEN, START + SECOND)
    (request,) = known
    assert (request.state, request.since, request.seen) == (ScaleUpState.ACCEPTED, START, True)
    dispatcher.step(ScaleUpGone("uid-a", 2), START + SECOND)
    assert len(known) == 1
    dispatcher.step(ScaleUpGone("uid-a", 1), START + SECOND)
    assert not known
