"""``schedulingSpec``: MCAD's words and defaults, and what is refused of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.api.durations import YEAR, YEAR_S
from mcad.api.tolerance import PREFIX
from mcad.core.state.run_policy import Growth, Requeuing
from mcad.core.state.units import SECOND
from tests.api.builders import Map, accepted, config_map, job, pod, read, v1beta1, v1beta2

DEFAULT = Requeuing(300 * SECOND, Growth.EXPONENTIAL, 0, 0)


def requeued(**requeuing: Any) -> Map:
    return v1beta1(pod(), schedulingSpec={"minAvailable": 1, "requeuing": requeuing})


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, DEFAULT),
        ({"minAvailable": 2}, DEFAULT),
        ({"minAvailable": 2, "requeuing": None}, DEFAULT),
        ({"minAvailable": 2, "requeuing": {}}, DEFAULT),
    ],
)
def test_the_documented_defaults_hold_with_and_without_requeuing(
    rules: Map, expected: Requeuing
) -> None:
    assert accepted(v1beta1(pod(), schedulingSpec=rules)).workload.requeuing == expected
    assert accepted(v1beta2(pod(), schedulingSpec=rules)).workload.requeuing == expected


@pytest.mark.parametrize(
    ("requeuing", "expected"),
    [
        ({"timeInSeconds": 5}, Requeuing(5 * SECOND)),
        ({"timeInSeconds": 5, "initialTimeInSeconds": 0}, Requeuing(5 * SECOND)),
        ({"timeInSeconds": 5, "initialTimeInSeconds": 7}, Requeuing(7 * SECOND)),
        ({"timeInSeconds": 9, "initialTimeInSeconds": 7}, Requeuing(7 * SECOND)),
        ({"initialTimeInSeconds": 7}, Requeuing(7 * SECOND)),
        ({"maxTimeInSeconds": 600}, Requeuing(wait_max=600 * SECOND)),
        ({"maxNumRequeuings": 3}, Requeuing(times_max=3)),
        ({"numRequeuings": 3}, DEFAULT),
        ({"growthType": "exponential"}, DEFAULT),
        ({"growthType": "linear"}, Requeuing(growth=Growth.LINEAR)),
        ({"growthType": "none"}, Requeuing(growth=Growth.NONE)),
        ({"growthType": None}, DEFAULT),
        ({"timeInSeconds": 2**31 - 1}, Requeuing(YEAR)),
        ({"maxTimeInSeconds": 2**31 - 1}, Requeuing(wait_max=YEAR)),
    ],
)
def test_requeuing(requeuing: Map, expected: Requeuing) -> None:
    work = accepted(requeued(**requeuing)).workload
    assert work.requeuing == expected
    assert work.warnings == ()


@pytest.mark.parametrize("word", ["", "Exponential", "quadratic"])
def test_an_unknown_growth_is_none_and_is_reported(word: str) -> None:
    work = accepted(requeued(growthType=word)).workload
    assert work.requeuing.growth is Growth.NONE
    assert work.warnings == (
        f"spec.schedulingSpec.requeuing.growthType: is the string {word!r}; use exponential, "
        "linear or none. The wait does not grow.",
    )


def test_a_wait_of_zero_gets_the_default() -> None:
    work = accepted(requeued(timeInSeconds=0)).workload
    assert work.requeuing == DEFAULT
    assert work.warnings == (
        "spec.schedulingSpec.requeuing.timeInSeconds: is 0, which leaves the pods no time to "
        "start; "
        "300 is used.",
    )
    first = accepted(requeued(timeInSeconds=0, initialTimeInSeconds=4)).workload
    assert (first.requeuing.wait, first.warnings) == (4 * SECOND, ())


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [(None, 0), (0, 0), (1, 1), (YEAR_S - 1, YEAR_S - 1), (YEAR_S, 0), (2**31 - 1, 0)],
)
def test_the_run_time_limit(limit: int | None, seconds: int) -> None:
    """One of a year or more is none."""
    rules = {"dispatchDuration": {"limit": limit, "expected": 1, "overrun": True}}
    work = accepted(v1beta1(pod(), schedulingSpec=rules)).workload
    assert (work.run_limit, work.warnings) == (seconds * SECOND, ())


@pytest.mark.parametrize("dialect", [v1beta1, v1beta2])
@pytest.mark.parametrize(("given", "seconds"), [(None, 0), (0, 0), (1, 1), (2**31 - 1, YEAR_S)])
def test_the_expected_run_time(dialect: Any, given: int | None, seconds: int) -> None:
    rules = {"dispatchDuration": {"expected": given}}
    work = accepted(dialect(pod(), schedulingSpec=rules)).workload
    assert (work.run_expected, work.run_limit, work.warnings) == (seconds * SECOND, 0, ())


def test_the_expected_run_time_is_at_most_the_limit() -> None:
    rules = {"dispatchDuration": {"expected": 601, "limit": 600}}
    work = accepted(v1beta1(pod(), schedulingSpec=rules)).workload
    assert (work.run_expected, work.run_limit) == (600 * SECOND, 600 * SECOND)
    assert work.warnings == (
        "spec.schedulingSpec.dispatchDuration.expected: is 601, but the limit is 600; 600 is used.",
    )


def ending(seconds: Any, name: str = "j", **spec: Any) -> Map:
    return job(name, activeDeadlineSeconds=seconds, **spec)


@pytest.mark.parametrize(
    ("items", "seconds"),
    [
        ([ending(60)], 60),
        ([ending(60), ending(90, "k"), config_map()], 90),
        ([ending(60), pod()], 0),  # which may stay for ever
        ([ending(60, suspend=True)], 0),  # no time passes
        ([ending(None)], 0),
        ([ending(-5)], 0),  # the API server will refuse it
        ([ending(2**63 - 1), ending(60, "k")], 0),
        ([ending(60, parallelism=0), ending(90, "k")], 90),
        ([config_map()], 0),
    ],
)
def test_jobs_with_deadlines_limit_an_attempt(items: list[Map], seconds: int) -> None:
    """In v1beta2 only if none follows in the same room."""
    assert accepted(v1beta1(*items)).workload.attempt_limit == seconds * SECOND
    assert accepted(v1beta2(*items)).workload.attempt_limit == 0
    once = v1beta2(*items)
    once["metadata"]["annotations"] = {f"{PREFIX}retryLimit": "0"}
    assert accepted(once).workload.attempt_limit == seconds * SECOND


NUMBERS = {
    "minAvailable": "minAvailable",
    "requeuing.timeInSeconds": "timeInSeconds",
    "requeuing.initialTimeInSeconds": "initialTimeInSeconds",
    "requeuing.maxTimeInSeconds": "maxTimeInSeconds",
    "requeuing.maxNumRequeuings": "maxNumRequeuings",
    "dispatchDuration.limit": "limit",
    "dispatchDuration.expected": "expected",
}


@pytest.mark.parametrize(
    ("value", "said"), [(-1, "must not be negative, but is -1."), (2**40, "is")]
)
@pytest.mark.parametrize("path", NUMBERS)
def test_negative_and_absurd_numbers_are_refused(path: str, value: int, said: str) -> None:
    rules: Any = value
    for key in reversed(path.split(".")):
        rules = {key: rules}
    (problem,) = read(v1beta1(pod(), schedulingSpec=rules)).problems
    assert problem.field == f"spec.schedulingSpec.{path}"
    assert problem.message.startswith(said)


def test_equal_rules_are_one_object() -> None:
    """Thousands of AppWrappers have the same ones."""
    made = [accepted(requeued(timeInSeconds=61, growthType="linear")) for _ in range(2)]
    assert made[0].workload.requeuing is made[1].workload.requeuing
    bare = [accepted(v1beta1(pod())) for _ in range(2)]
    assert bare[0].workload.requeuing is bare[1].workload.requeuing


@given(
    st.dictionaries(
        st.sampled_from([*NUMBERS.values(), "growthType", "numRequeuings"]),
        st.integers() | st.none() | st.text(max_size=5) | st.floats(),
    )
)
def test_the_rules_are_within_bounds_for_any_input(requeuing: Map) -> None:
    made = read(requeued(**requeuing)).workload.requeuing
    assert made.wait > 0
    assert min(made.wait_max, made.times_max) >= 0
