"""Which known name was probably meant."""

import pytest

from mcad.core.state.spelling import did_you_mean

KNOWN = ("backoffTime", "maxPriority", "policy", "a-team", "b-team")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("BACKOFFTIME", 'Did you mean "backoffTime"?'),
        ("backoff_time", 'Did you mean "backoffTime"?'),
        ("backof-time", 'Did you mean "backoffTime"?'),
        ("policies", 'Did you mean "policy"?'),
        ("nothing-alike", ""),
    ],
)
def test_the_nearest_name_is_told(name: str, told: str) -> None:
    assert did_you_mean(name, KNOWN) == told


def test_several_may_be_alike() -> None:
    assert did_you_mean("team", KNOWN, 3) == 'Did you mean "b-team" or "a-team"?'
