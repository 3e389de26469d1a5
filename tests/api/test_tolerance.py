"""Fault tolerance: the annotations of v1beta2 over the configuration, for both dialects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.api import tolerance
from mcad.api.appwrapper import Parsed, parse
from mcad.api.config import Config, catalog_of
from mcad.api.durations import YEAR
from mcad.api.sources import ConfigError, load
from mcad.api.tolerance import PREFIX
from mcad.core.state.run_policy import LENIENT, TOLERANT, WEEK, FaultTolerance
from mcad.core.state.units import SECOND
from tests.api.builders import CATALOG, Map, pod, v1beta1, v1beta2
from tests.api.strategies import JSON

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
NAMES = {
    "admissionGracePeriodDuration": "admission_grace",
    "warmupGracePeriodDuration": "warmup_grace",
    "failureGracePeriodDuration": "failure_grace",
    "retryPausePeriodDuration": "retry_pause",
    "forcefulDeletionGracePeriodDuration": "forceful_deletion_grace",
    "deletionOnFailureGracePeriodDuration": "deletion_on_failure_grace",
}


def annotated(obj: Map, **annotations: Any) -> Map:
    own = {f"{PREFIX}{name}": value for name, value in annotations.items()}
    obj["metadata"]["annotations"] = {"kubectl.kubernetes.io/x": "{}"} | own
    return obj


def judged(obj: Map, *sets: str) -> Parsed:
    catalog = catalog_of(load(sets=sets), CATALOG.installed.values()) if sets else CATALOG
    return parse(obj, catalog)


def later(*sets: str, **annotations: Any) -> FaultTolerance:
    work = judged(annotated(v1beta2(pod()), **annotations), *sets).workload
    assert work.warnings == ()
    return work.tolerance


def told(*sets: str, **annotations: Any) -> tuple[FaultTolerance, list[str]]:
    """What holds, and what is said about one annotation without the name of it."""
    parsed = judged(annotated(v1beta2(pod()), **annotations), *sets)
    assert parsed.problems == (), "nothing of it keeps an AppWrapper from running"
    (name,) = annotations
    said = [
        one.partition(f"metadata.annotations.{PREFIX}{name}: ") for one in parsed.workload.warnings
    ]
    assert all(middle for _, middle, _ in said)
    return parsed.workload.tolerance, [last for _, _, last in said]


def test_the_defaults_are_those_of_the_core_in_each_dialect() -> None:
    assert judged(v1beta2(pod())).workload.tolerance is CATALOG.tolerances.tolerant
    assert judged(v1beta1(pod())).workload.tolerance is CATALOG.tolerances.lenient
    assert CATALOG.tolerances.tolerant == TOLERANT
    assert CATALOG.tolerances.lenient == LENIENT


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("text", "value"),
    [("7s", 7 * SECOND), (" 1m30s\n", 90 * SECOND), ("0s", 0), ("24h", 24 * HOUR)],
)
def test_graces(name: str, text: str, value: int) -> None:
    expected = replace(TOLERANT, **{NAMES[name]: value})
    assert later(**{name: text}) == expected


@pytest.mark.parametrize("name", NAMES)
def test_annotations_count_in_the_older_dialect_too(name: str) -> None:
    work = judged(annotated(v1beta1(pod()), **{name: "7s"})).workload
    assert work.tolerance == replace(LENIENT, **{NAMES[name]: 7 * SECOND})


def test_the_rest() -> None:
    assert later(retryLimit="0").retry_limit == 0
    assert later(retryLimit="+7").retry_limit == 7
    assert later(successTTLDuration="1m").success_ttl == MINUTE
    assert later(successTTLDuration="168h").success_ttl == WEEK
    assert later(terminalExitCodes="3").terminal_exit_codes == (3,)
    assert later(retryableExitCodes=" 10, 3,10 ,-1").retryable_exit_codes == (-1, 3, 10)
    assert later(terminalExitCodes="") == TOLERANT
    both = later(terminalExitCodes="1", retryableExitCodes="2")
    assert (both.terminal_exit_codes, both.retryable_exit_codes) == ((1,), (2,))


def test_in_v1beta1_only_an_annotation_removes_what_succeeded() -> None:
    kept = judged(annotated(v1beta1(pod()), successTTLDuration="1000h")).workload
    assert (kept.tolerance.success_ttl, kept.warnings) == (1000 * HOUR, ())
    cut = judged(annotated(v1beta1(pod()), successTTLDuration="2562047h")).workload
    assert cut.tolerance.success_ttl == YEAR
    assert cut.warnings[0].endswith("between 0s and 8784h is allowed, 8784h is used.")


A_DURATION, A_LIFETIME = 'a duration like "90s" or "1h30m"', 'a duration longer than 0, like "24h"'
A_NUMBER, CODES = 'a whole number like "3"', 'exit codes like "3,10,42"'


@pytest.mark.parametrize(
    ("given", "expected", "default"),
    [
        ("warmupGracePeriodDuration=5 minutes", A_DURATION, "5m"),
        ("retryPausePeriodDuration=90", A_DURATION, "1m30s"),
        *((f"retryLimit={text}", A_NUMBER, "3") for text in ("three", "1e2", "", "9" * 40)),
        *((f"successTTLDuration={text}", A_LIFETIME, "168h") for text in ("0s", "-1s")),
        *((f"terminalExitCodes={text}", CODES, "none") for text in ("1,two", "1," * 1000 + "1")),
        *((f"retryableExitCodes={text}", CODES, "none") for text in ("1,,2", "2147483648")),
    ],
)
def test_nonsense_is_reported_and_the_default_used(given: str, expected: str, default: str) -> None:
    name, _, text = given.partition("=")
    shown = text if len(text) <= 64 else f"{text[:61]}..."
    said = f"is the string {shown!r}, not {expected}; the default is used, {default}."
    assert told(**{name: text}) == (TOLERANT, [said])


@pytest.mark.parametrize(
    ("given", "field", "value", "bounds", "used"),
    [
        ("failureGracePeriodDuration=25h", "failure_grace", 24 * HOUR, "0s and 24h", "24h"),
        ("admissionGracePeriodDuration=-5s", "admission_grace", 0, "0s and 24h", "0s"),
        ("successTTLDuration=169h", "success_ttl", WEEK, "0s and 168h", "168h"),
        ("retryLimit=-1", "retry_limit", 0, "0 and 2147483647", "0"),
        ("retryLimit=2147483648", "retry_limit", 2**31 - 1, "0 and 2147483647", "2147483647"),
    ],
)
def test_values_beyond_the_bounds_are_cut(
    given: str, field: str, value: int, bounds: str, used: str
) -> None:
    name, _, text = given.partition("=")
    said = f"is the string {text!r}; between {bounds} is allowed, {used} is used."
    assert told(**{name: text}) == (replace(TOLERANT, **{field: value}), [said])


def test_a_misspelt_annotation_is_reported() -> None:
    found, said = told(deletionOnFailureGracePeriod="5m")
    assert found == TOLERANT
    meant = 'Did you mean "deletionOnFailureGracePeriodDuration"?'
    assert said == [f"is unknown and has no effect. {meant}"]
    assert told(zzz="5m")[1] == ["is unknown and has no effect."]
    many = {f"z{number}": "" for number in range(1000)}
    parsed = judged(annotated(v1beta2(pod()), **many, retryLimit="1"))
    assert len(parsed.workload.warnings) == 8
    assert parsed.workload.tolerance.retry_limit == 1


def test_equal_annotations_share_one_object() -> None:
    ones = [later(retryLimit="41", warmupGracePeriodDuration="9m") for _ in range(2)]
    assert ones[0] is ones[1]


def test_nothing_is_read_where_there_is_nothing() -> None:
    before = tolerance._read.cache_info()
    judged(v1beta2(pod()))
    judged(annotated(v1beta1(pod())))
    assert tolerance._read.cache_info() == before


@given(st.dictionaries(st.sampled_from([*tolerance._ANNOTATIONS, "x"]), JSON) | JSON)
def test_no_annotation_raises_and_what_holds_is_within_bounds(annotations: Any) -> None:
    obj = v1beta2(pod())
    if isinstance(annotations, dict):
        annotations = {f"{PREFIX}{name}": value for name, value in annotations.items()}
    obj["metadata"]["annotations"] = annotations
    parsed = judged(obj)
    assert parsed.problems == ()
    found = parsed.workload.tolerance
    assert all(0 <= getattr(found, field) <= 24 * HOUR for field in NAMES.values())
    assert 0 < (found.success_ttl or 0) <= WEEK
    assert found.retry_limit >= 0


# -- the configuration ------------------------------------------------------------------------


def test_every_setting_of_fault_tolerance() -> None:
    text = (
        "faultTolerance={admissionGracePeriod: 1, warmupGracePeriod: 2s, failureGracePeriod: 0.5, "
        "retryPausePeriod: 1m30s, retryLimit: 5, forcefulDeletionGracePeriod: 6, "
        "deletionOnFailureGracePeriod: 7, successTTL: 8h, gracePeriodCeiling: 100}"
    )
    tolerances = catalog_of(load(sets=[text]), ()).tolerances
    expected = FaultTolerance(
        admission_grace=SECOND,
        warmup_grace=2 * SECOND,
        failure_grace=SECOND // 2,
        retry_pause=90 * SECOND,
        retry_limit=5,
        forceful_deletion_grace=6 * SECOND,
        deletion_on_failure_grace=7 * SECOND,
        success_ttl=8 * HOUR,
    )
    assert tolerances.tolerant == expected
    assert tolerances.lenient == replace(expected, forceful_deletion_grace=None, success_ttl=None)
    assert tolerances.grace_max == 100 * SECOND


def test_the_configuration_is_the_default_of_the_annotations() -> None:
    sets = ["faultTolerance.successTTL=1h", "faultTolerance.retryPausePeriod=5"]
    found = later(*sets, retryLimit="1")
    assert found == replace(TOLERANT, success_ttl=HOUR, retry_pause=5 * SECOND, retry_limit=1)
    _, (said,) = told(*sets, successTTLDuration="2h")
    assert said == "is the string '2h'; between 0s and 1h is allowed, 1h is used."


WRONG = {
    "{retryPausePeriod: 86401}": "retryPausePeriod (86401) must be at most gracePeriodCeiling "
    "(86400).",
    "{gracePeriodCeiling: 100}": "warmupGracePeriod (300) must be at most gracePeriodCeiling (100)",
    "{admissionGracePeriod: 301}": "admissionGracePeriod (301) must be at most warmupGracePeriod "
    "(300): pods are created before they run.",
    "{successTTL: 0}": "faultTolerance.successTTL: must be more than 0, not 0.",
    "{successTTL: 100000h}": "faultTolerance.successTTL: must be at most 31622400, not",
    "{warmupGracePeriod: soon}": "faultTolerance.warmupGracePeriod: must be a number of seconds or "
    "a duration like \"1m30s\", not the string 'soon'.",
    "{warmupGracePeriod: -1s}": "faultTolerance.warmupGracePeriod: must be at least 0, not",
    "{retryLimit: 1.5}": "faultTolerance.retryLimit: must be a whole number, not 1.5.",
    "{resetPause: 5}": "faultTolerance.resetPause: is unknown.",
}


@pytest.mark.parametrize(("value", "message"), WRONG.items())
def test_a_configuration_that_contradicts_itself_is_refused(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(sets=[f"faultTolerance={value}"])
    assert message in str(caught.value)


def test_durations_can_be_written_down_and_read_again() -> None:
    config = load(sets=["faultTolerance={successTTL: 90m}"])
    assert config.fault_tolerance.success_ttl == 5400
    assert Config.model_validate(config.model_dump(mode="json", by_alias=True)) == config
