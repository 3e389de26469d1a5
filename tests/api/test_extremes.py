"""Each number that is read, at its extremes: it is within its bound, or a fault that names it.

tests/api/test_fuzz.py draws combinations of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from mcad.api.appwrapper import parse
from mcad.api.durations import YEAR, YEAR_S, clamp_limit, clamp_seconds
from mcad.api.labels import MAX_ATTEMPT
from mcad.api.located_fields import MAX_COUNT, clamp_count
from mcad.api.pods import read_pod
from mcad.api.podspec import effective_request
from mcad.api.quotas import read_quota
from mcad.api.status import MAX_EPOCH, read_status
from mcad.api.wire import as_int, format_instant, parse_instant
from mcad.core.state.model import MAX_PRIORITY, POD_GRACE, Persisted, Workload
from mcad.core.state.quantity import QUANTITY_VALUE_MAX
from mcad.core.state.units import SECOND
from tests.api.builders import (
    CATALOG,
    Map,
    container,
    deployment,
    job,
    obj,
    pod,
    read,
    template,
    v1beta1,
    v1beta2,
)

INT32, INT64 = 2**31 - 1, 2**63 - 1
HUGE = 1 << 40_000
"""No JSON has it; Python does not write it, because it has too many digits."""


# -- the bounds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "given", "expected"),
    [
        (clamp_seconds, -1, 0),
        (clamp_seconds, 60, 60),
        (clamp_seconds, YEAR_S, YEAR_S),
        (clamp_seconds, INT64, YEAR_S),
        (clamp_limit, -1, 0),
        (clamp_limit, YEAR_S - 1, YEAR_S - 1),
        (clamp_limit, YEAR_S, 0),
        (clamp_limit, INT64, 0),
        (clamp_count, -1, 0),
        (clamp_count, MAX_COUNT, MAX_COUNT),
        (clamp_count, 2**31 - 1, MAX_COUNT),
        (as_int, -(10**20), -INT64 - 1),
        (as_int, 10**20, INT64),
        (as_int, 1e300, 0),
        (as_int, True, 0),
    ],
)
def test_a_number_is_within_its_bound(
    bound: Callable[[Any], int], given: Any, expected: int
) -> None:
    assert bound(given) == expected


# -- an AppWrapper -------------------------------------------------------------------------------


def with_grace(seconds: Any) -> Map:
    return v1beta1(pod(terminationGracePeriodSeconds=seconds))


def with_deadline(seconds: Any) -> Map:
    return v1beta1(job(activeDeadlineSeconds=seconds))


def with_ttl(seconds: Any) -> Map:
    return v1beta1(job(ttlSecondsAfterFinished=seconds))


def with_priority(value: Any) -> Map:
    return v1beta1(pod(), priority=value)


def with_slope(value: Any) -> Map:
    return v1beta1(pod(), priorityslope=value)


def with_wait(seconds: Any) -> Map:
    return v1beta1(pod(), schedulingSpec={"requeuing": {"timeInSeconds": seconds}})


def with_longest_wait(seconds: Any) -> Map:
    return v1beta1(pod(), schedulingSpec={"requeuing": {"maxTimeInSeconds": seconds}})


def with_limit(seconds: Any) -> Map:
    return v1beta1(pod(), schedulingSpec={"dispatchDuration": {"limit": seconds}})


def with_expected(seconds: Any) -> Map:
    return v1beta1(pod(), schedulingSpec={"dispatchDuration": {"expected": seconds}})


def with_cpu(value: Any) -> Map:
    return v1beta1(pod("p", container(value), container(value)))


def cpu_of(work: Workload) -> int:
    return dict(work.sets[0].request)["cpu"]


def ray_cluster(group: Map) -> Map:
    head = {"template": template(terminationGracePeriodSeconds=5)}
    spec = {"headGroupSpec": head, "workerGroupSpecs": [group]}
    return obj("ray.io/v1", "RayCluster", spec=spec)


READ: dict[str, tuple[Map, Callable[[Workload], Any], Any]] = {
    "grace": (with_grace(INT64), lambda work: work.grace, YEAR),
    "negative grace": (with_grace(-5), lambda work: work.grace, SECOND),
    "grace of 0": (with_grace(0), lambda work: work.grace, 0),
    "no grace": (with_grace("5"), lambda work: work.grace, POD_GRACE),
    "the longest grace counts": (
        v1beta1(
            pod("a", terminationGracePeriodSeconds=5), pod("b", terminationGracePeriodSeconds=90)
        ),
        lambda work: work.grace,
        90 * SECOND,
    ),
    "the longest grace of an item counts": (
        v1beta1(ray_cluster({"template": template(terminationGracePeriodSeconds=90)})),
        lambda work: work.grace,
        90 * SECOND,
    ),
    "deadline": (with_deadline(INT64), lambda work: work.attempt_limit, 0),
    "negative deadline": (with_deadline(-1), lambda work: work.attempt_limit, 0),
    "deadline below a year": (
        with_deadline(YEAR_S - 1),
        lambda work: work.attempt_limit,
        YEAR - SECOND,
    ),
    "time to live": (with_ttl(INT64), lambda work: work.items[0].ttl, YEAR),
    "negative time to live": (with_ttl(-1), lambda work: work.items[0].ttl, None),
    "wait": (with_wait(INT32), lambda work: work.requeuing.wait, YEAR),
    "longest wait": (with_longest_wait(INT32), lambda work: work.requeuing.wait_max, YEAR),
    "limit": (with_limit(INT32), lambda work: work.run_limit, 0),
    "expected": (with_expected(INT32), lambda work: work.run_expected, YEAR),
    "cpu": (with_cpu("8Ei"), cpu_of, QUANTITY_VALUE_MAX),
    "a sum of cpu": (with_cpu("5000000000000000"), cpu_of, QUANTITY_VALUE_MAX),
    "cpu of int64": (with_cpu(INT64), cpu_of, QUANTITY_VALUE_MAX),
    "cpu of almost nothing": (with_cpu("1e-40"), cpu_of, 2),
    "priority": (with_priority(MAX_PRIORITY), lambda work: work.priority, MAX_PRIORITY),
    "slope": (with_slope(-1_000_000), lambda work: work.slope, -(10**12)),
    "the bound of a worker group that KubeRay writes": (
        v1beta1(ray_cluster({"replicas": 3, "maxReplicas": INT32, "template": template()})),
        lambda work: work.sets[1].replicas,
        3,
    ),
    "completions beyond a cluster": (
        v1beta1(job(parallelism=3, completions=INT32)),
        lambda work: work.sets[0].replicas,
        3,
    ),
}


@pytest.mark.parametrize(("wrapper", "of", "expected"), READ.values(), ids=READ)
def test_an_extreme_is_read_within_its_bound(
    wrapper: Map, of: Callable[[Workload], Any], expected: Any
) -> None:
    parsed = read(wrapper)
    assert not parsed.problems
    assert of(parsed.workload) == expected


@pytest.mark.parametrize(
    ("wrapper", "field"),
    [
        (with_priority(INT32 + 1), "spec.priority"),
        (with_priority(1e300), "spec.priority"),
        (with_slope(1e300), "spec.priorityslope"),
        (with_slope(float("nan")), "spec.priorityslope"),
        (with_slope(HUGE), "spec.priorityslope"),
        (with_wait(-1), "spec.schedulingSpec.requeuing.timeInSeconds"),
        (with_wait(HUGE), "spec.schedulingSpec.requeuing.timeInSeconds"),
        (v1beta1(pod(), schedulingSpec={"minAvailable": -1}), "spec.schedulingSpec.minAvailable"),
        (
            v1beta1(pod(), schedulingSpec={"minAvailable": 2**31}),
            "spec.schedulingSpec.minAvailable",
        ),
        (
            v1beta1(deployment("d", INT64)),
            "spec.resources.GenericItems[0].generictemplate.spec.replicas",
        ),
        (
            v1beta1(deployment("d", -1)),
            "spec.resources.GenericItems[0].generictemplate.spec.replicas",
        ),
        (
            v1beta1(deployment("d", True)),
            "spec.resources.GenericItems[0].generictemplate.spec.replicas",
        ),
        (v1beta2(job(parallelism=1e300)), "spec.components[0].template.spec.parallelism"),
        (v1beta2(job(completions=-1)), "spec.components[0].template.spec.completions"),
        (
            with_cpu("-1"),
            "spec.resources.GenericItems[0].generictemplate.spec.containers[0].resources.requests"
            ".cpu",
        ),
        (
            with_cpu(10**20),
            "spec.resources.GenericItems[0].generictemplate.spec.containers[0].resources.requests"
            ".cpu",
        ),
        (
            v1beta1(pod(resources={"requests": {"cpu": -1}})),
            "spec.resources.GenericItems[0].generictemplate.spec.resources.requests.cpu",
        ),
    ],
)
def test_a_number_that_is_refused_is_named(wrapper: Map, field: str) -> None:
    parsed = read(wrapper)
    assert parsed.problems[0].field == field
    assert abs(parsed.workload.priority) <= MAX_PRIORITY
    assert all(0 <= one.replicas <= MAX_COUNT for one in parsed.workload.sets)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of each value that is no map and no list."""
    if isinstance(value, dict):
        return [at for key, one in value.items() for at in places(one, (*path, key))]
    if isinstance(value, list):
        return [at for key, one in enumerate(value) for at in places(one, (*path, key))]
    return [path]


WHOLE = v1beta1(
    job(activeDeadlineSeconds=5, parallelism=2, template=template(terminationGracePeriodSeconds=5)),
    priority=1,
    schedulingSpec={"minAvailable": 1},
)


@pytest.mark.parametrize("place", places(WHOLE), ids=lambda path: ".".join(map(str, path)))
def test_a_number_with_thousands_of_digits_does_not_raise(place: tuple[Any, ...]) -> None:
    """A hexadecimal number of a YAML file may have them, and Python refuses to write it."""
    wrapper = copy.deepcopy(WHOLE)
    *way, last = place
    found: Any = wrapper
    for step in way:
        found = found[step]
    found[last] = HUGE
    assert parse(wrapper, CATALOG).problems or place[0] != "spec"


# -- what is live --------------------------------------------------------------------------------


def test_a_live_pod_has_bounds() -> None:
    live = pod("p", container(INT64), container(INT64), terminationGracePeriodSeconds=INT64)
    live["metadata"]["labels"] = {"workload.codeflare.dev/attempt": "1"}
    found = read_pod(live)
    assert found.grace == YEAR
    assert dict(found.request) == {"cpu": QUANTITY_VALUE_MAX, "pods": 1}


def test_what_a_pod_asks_for_is_capped() -> None:
    asked = effective_request({"containers": [{"resources": {"requests": {"memory": "8Ei"}}}] * 3})
    assert dict(asked)["memory"] == QUANTITY_VALUE_MAX


def test_a_share_is_capped() -> None:
    spec = {"children": [{"name": "a", "quotas": {"requests": {"cpu": INT64}}}]}
    assert read_quota({"spec": spec}).children[0].nominal == (("cpu", QUANTITY_VALUE_MAX),)


# -- a status ------------------------------------------------------------------------------------


def status(**dispatch: Any) -> Map:
    record = {"attempt": 1, "epoch": 1, "phase": "dispatched", "inventory": [], **dispatch}
    return {"state": "Running", "dispatch": record}


def persisted(value: Map) -> Persisted:
    found = read_status(value)
    assert found is not None
    return found


def test_the_epoch_of_a_status_leaves_room_for_those_after_it() -> None:
    """The next leader's epoch is one more, and the API server stores 64 bits."""
    read_back = persisted(status(epoch=INT64)).dispatch
    assert read_back is not None
    assert read_back.epoch == MAX_EPOCH
    assert MAX_EPOCH + 1 <= INT64


def test_an_attempt_that_no_label_can_hold_is_not_understood() -> None:
    assert persisted(status(attempt=MAX_ATTEMPT)).dispatch is not None
    found = persisted(status(attempt=MAX_ATTEMPT + 1))
    assert (found.dispatch, found.unreadable) == (None, f"attempt {MAX_ATTEMPT + 1}")


@pytest.mark.parametrize(
    ("field", "of"),
    [
        ("numberOfRequeueings", lambda saved: saved.requeueings),
        ("resettingCount", lambda saved: saved.resets),
    ],
)
def test_a_count_of_a_status_can_be_increased(field: str, of: Callable[[Persisted], int]) -> None:
    """The API server stores 32 bits of it."""
    assert of(persisted(status() | {field: INT32})) == MAX_COUNT
    assert of(persisted(status() | {field: -1})) == 0


def test_a_count_of_evictions_can_be_increased() -> None:
    eviction = {"count": 2**31 - 1, "reason": "Preempting"}
    found = persisted(status() | {"eviction": eviction}).eviction
    assert found is not None
    assert found.count == MAX_COUNT


def test_a_wait_of_a_status_has_a_bound() -> None:
    saved = persisted(status() | {"requeueingTimeInSeconds": INT32})
    assert saved.requeueing_wait == YEAR


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0001-01-01T00:00:00Z", None),
        ("0999-12-31T23:59:59Z", None),
        ("1000-01-01T00:00:00Z", "1000-01-01T00:00:00.000000Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_a_time_is_written_with_four_digits_for_its_year(text: str, written: str | None) -> None:
    assert format_instant(parse_instant(text)) == written


def test_a_time_after_the_year_9999_is_its_end() -> None:
    last = parse_instant("9999-12-31T23:59:59.999999Z")
    assert format_instant(last + YEAR) == "9999-12-31T23:59:59.999999Z"
