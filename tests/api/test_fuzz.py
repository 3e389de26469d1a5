"""No object that an API server can store makes the reading of it raise, whatever its numbers are.

What is read is within the bounds of the core, and a journal can hold it.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcad.api import labels
from mcad.api.appwrapper import Parsed, parse
from mcad.api.catalog import WELL_KNOWN
from mcad.api.children import child_item, read_child
from mcad.api.durations import YEAR
from mcad.api.located_fields import MAX_COUNT
from mcad.api.manifest import render
from mcad.api.pods import read_node, read_pod
from mcad.api.quotas import read_quota, read_quota_status
from mcad.api.status import read_status
from mcad.api.tolerance import PREFIX
from mcad.core.events import AppWrapperSeen, ChildSeen, Event, NodeSeen, PodSeen, QuotaSeen
from mcad.core.state.model import MAX_PRIORITY, Resources, Workload
from mcad.core.state.quantity import QUANTITY_VALUE_MAX
from mcad.core.state.quotation import BEGIN
from mcad.journal import codec
from tests import budget
from tests.api.builders import (
    CATALOG,
    container,
    generic,
    job,
    obj,
    pod,
    template,
    v1beta1,
    v1beta2,
)
from tests.api.strategies import JSON, extreme, mutated, shaped
from tests.api.test_podsets import KINDS, component

OBJECTS = [thing for thing, _ in KINDS.values()]
WRAPPED = [v1beta1(one) for one in OBJECTS] + [v1beta2(one) for one in OBJECTS]
WRAPPED += [
    v1beta1(
        generic(
            OBJECTS[1],
            custompodresources=[
                {"replicas": 2, "requests": {"cpu": 1}, "limits": {"memory": "1Gi"}}
            ],
            completionstatus="Complete",
        ),
        priority=3,
        priorityslope=0.5,
        schedulingSpec={"minAvailable": 1, "requeuing": {"timeInSeconds": 3}},
    ),
    v1beta2(
        component(
            OBJECTS[1],
            {"path": "template.spec.template", "replicas": 2},
            podSetInfos=[{"labels": {"a": "b"}, "tolerations": [{"key": "k"}]}],
        ),
        suspend=True,
    ),
]
KEYS = (
    *("metadata", "spec", "status", "resources", "components", "GenericItems", "generictemplate"),
    *("template", "apiVersion", "kind", "name", "podSets", "path", "custompodresources"),
)


def sound(parsed: Parsed) -> None:
    """What holds for every outcome; items without a fault can be created."""
    work = parsed.workload
    assert work.problem == (parsed.problems[0] if parsed.problems else None)
    assert len(work.items) == len(parsed.manifests)
    assert all(0 <= one.item < len(work.items) for one in work.sets)
    assert all(value > 0 for one in work.sets for _, value in one.request)
    for problem in parsed.problems:
        assert problem.field
        assert problem.message
    if work.problem is None:
        for index, manifest in enumerate(parsed.manifests):
            assert isinstance(json.loads(render(manifest, work, index, 1)), dict)
    hash(work)  # a list that slipped into a record would show here


@given(st.dictionaries(st.text(max_size=8) | st.sampled_from(KEYS), shaped(*KEYS), max_size=5))
def test_arbitrary_objects(obj: dict[str, Any]) -> None:
    sound(parse(obj, CATALOG))


@settings(max_examples=budget.examples(600))
@given(mutated(WRAPPED))
def test_mutated_manifests(obj: Any) -> None:
    sound(parse(obj, CATALOG))


@settings(max_examples=budget.examples(300))
@given(mutated(OBJECTS), st.sampled_from(WELL_KNOWN))
def test_mutated_live_objects(obj: Any, resource: Any) -> None:
    child_item(obj)
    sets = parse(v1beta1(obj), CATALOG).workload.sets
    assert len(read_child(obj, resource, sets).wants) == len(sets)


@given(JSON)
def test_arbitrary_status(value: Any) -> None:
    read_status(value)


# -- extremes ------------------------------------------------------------------------------------

GRACEFUL = {"terminationGracePeriodSeconds": 30, "overhead": {"memory": "1Mi"}}
SIZED = container("1", "1Gi", ports=[{"containerPort": 80, "hostPort": 80}])
ENDING = {"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 60}
NUMBERED = [
    job(**ENDING, parallelism=2, completions=2, template=template(SIZED, **GRACEFUL)),
    pod("p", SIZED, SIZED, **GRACEFUL, resources={"limits": {"cpu": "3"}}),
    obj(
        "ray.io/v1",
        "RayJob",
        spec={
            "ttlSecondsAfterFinished": 60,
            "deletionStrategy": {
                "deletionRules": [
                    {"policy": "DeleteSelf", "condition": {"jobStatus": word, "ttlSeconds": 60}}
                    for word in ("SUCCEEDED", "FAILED")
                ]
            },
            "rayClusterSpec": {"headGroupSpec": {"template": template(SIZED, **GRACEFUL)}},
        },
    ),
]
ANNOTATIONS = {
    f"{PREFIX}{name}": text
    for name, text in {
        "admissionGracePeriodDuration": "60s",
        "warmupGracePeriodDuration": "300s",
        "failureGracePeriodDuration": "60s",
        "retryPausePeriodDuration": "90s",
        "retryLimit": "3",
        "forcefulDeletionGracePeriodDuration": "600s",
        "deletionOnFailureGracePeriodDuration": "1s",
        "successTTLDuration": "24h",
        "terminalExitCodes": "3,10",
        "retryableExitCodes": "3,10",
    }.items()
}
RULES = {
    "minAvailable": 1,
    "requeuing": {
        "timeInSeconds": 5,
        "initialTimeInSeconds": 5,
        "maxTimeInSeconds": 60,
        "maxNumRequeuings": 3,
    },
    "dispatchDuration": {"limit": 600, "expected": 300},
}
DECLARED = [{"replicas": 2, "requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"memory": "1Gi"}}]
TIME = "2023-07-21T11:18:27.082148Z"
TIMES = {"since": TIME, "until": TIME, "start": TIME, "at": TIME}
STATUS = {
    "state": "Running",
    "controllerfirsttimestamp": TIME,
    "controllerfirstdispatchtimestamp": TIME,
    "numberOfRequeueings": 1,
    "requeueingTimeInSeconds": 300,
    "resettingCount": 1,
    "pending": 1,
    "running": 1,
    "Succeeded": 1,
    "failed": 1,
    "totalcpu": 1000,
    "totalmemory": 1000,
    "totalgpu": 1,
    "observedGeneration": 3,
    "conditions": [{"type": "Init", "status": "True", "lastTransitionMicroTime": TIME}],
    "pendingpodconditions": [{"podname": "p", "conditions": [{"lastTransitionTime": TIME}]}],
    "dispatch": {
        "uid": "0b1e",
        "attempt": 1,
        "epoch": 1,
        "phase": "dispatched",
        "inventory": [],
        **dict.fromkeys(
            ("intentTime", "confirmTime", "phaseTime", "limitSince", "placedTime"), TIME
        ),
        "finished": [0],
        "suspendedPodSets": [0],
        "domains": [{"item": 0, "index": 0, "label": "rack", "value": "r1"}],
    },
    "reservation": {"reason": "Preempting", "placement": [{"node": "n1", "pods": [1]}], **TIMES},
    "eviction": {"reason": "Preempting", "count": 1, **TIMES},
}


def numbered(wrapped: Any) -> Any:
    """An AppWrapper with every number that is read of one."""
    wrapped["metadata"]["annotations"] = ANNOTATIONS
    return wrapped | {"status": STATUS}


BY_KIND = [v1beta1(one) for one in OBJECTS]
EXTREME = [
    numbered(make(one, priority=5, priorityslope=0.5, schedulingSpec=RULES))
    for make in (v1beta1, v1beta2)
    for one in NUMBERED
] + [
    numbered(v1beta1(generic(NUMBERED[0], custompodresources=DECLARED), schedulingSpec=RULES)),
    numbered(
        v1beta2(
            component(OBJECTS[1], {"path": "template.spec.template", "replicas": 2}),
            schedulingSpec={"dispatchDuration": {"expected": 300}},
        )
    ),
]


def recorded(event: Event) -> None:
    """A journal gives it back as it was, but for the words of others."""
    payload = codec.join_steps(0, 1, [codec.encode_step(0, event, b"")])
    (step,) = codec.split_steps(payload)
    assert step.event == event or BEGIN in repr(event)


def amounts_in_bounds(*sizes: Resources) -> None:
    assert all(0 <= n <= QUANTITY_VALUE_MAX for size in sizes for _, n in size)


def in_bounds(work: Workload) -> None:
    """No duration is longer than a year, and no count larger than a cluster."""
    rules, mercy = work.requeuing, work.tolerance
    spans = [work.run_limit, work.run_expected, work.attempt_limit, work.grace]
    spans += [rules.wait, rules.wait_max, mercy.retry_pause, mercy.deletion_on_failure_grace]
    spans += [mercy.admission_grace, mercy.warmup_grace, mercy.failure_grace]
    spans += [mercy.forceful_deletion_grace or 0, mercy.success_ttl or 0]
    spans += [one.ttl or 0 for one in work.items]
    if work.persisted is not None:
        spans.append(work.persisted.requeueing_wait)
    assert all(0 <= span <= YEAR for span in spans)
    assert all(0 <= one.replicas <= MAX_COUNT for one in work.sets)
    assert 0 <= work.min_available <= MAX_COUNT
    assert abs(work.priority) <= MAX_PRIORITY
    amounts_in_bounds(*(one.request for one in work.sets))


@settings(max_examples=budget.examples(800))
@given(extreme(EXTREME) | extreme(BY_KIND))
def test_extreme_appwrappers(wrapped: Any) -> None:
    parsed = parse(wrapped, CATALOG)
    sound(parsed)
    in_bounds(parsed.workload)
    recorded(AppWrapperSeen(parsed.workload))


LIVE_POD = {
    "metadata": {
        "uid": "u",
        "name": "p",
        "creationTimestamp": TIME,
        "labels": {labels.ATTEMPT: "1", labels.PODSET: "0.0"},
    },
    "spec": NUMBERED[1]["spec"] | {"initContainers": [SIZED | {"restartPolicy": "Always"}]},
    "status": {
        "phase": "Pending",
        "conditions": [
            {"type": "PodScheduled", "reason": "Unschedulable", "lastTransitionTime": TIME}
        ],
        "resources": {"requests": {"cpu": "2"}},
        "containerStatuses": [
            {
                "name": "main",
                "resources": {"requests": {"cpu": "2", "memory": "1Gi"}},
                "allocatedResources": {"cpu": "2"},
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 3}},
            }
        ],
    },
}
FAILED = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}
NODE = {
    "metadata": {"name": "n1", "labels": {"slots": "8"}},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", "example.com/x": 1}},
}
QUOTA = {
    "metadata": {"uid": "u", "creationTimestamp": TIME, "generation": 1},
    "spec": {"children": [{"name": "a", "quotas": {"requests": {"cpu": "8", "memory": 1}}}]},
    "status": {
        "observedGeneration": 1,
        "conditions": [{"type": "Ready", "lastTransitionTime": TIME}],
        "children": [{"name": "a", "nominal": {"cpu": "8"}, "waiting": {"memory": "1Gi"}}],
    },
}


@settings(max_examples=budget.examples(500))
@given(extreme([LIVE_POD, LIVE_POD | {"status": FAILED}]))
def test_extreme_pods(value: Any) -> None:
    read = read_pod(value, "aw-uid")
    assert 0 <= read.grace <= YEAR
    amounts_in_bounds(read.request)
    recorded(PodSeen(read))


@given(extreme([NODE]))
def test_extreme_nodes(value: Any) -> None:
    read = read_node(value)
    amounts_in_bounds(read.allocatable)
    recorded(NodeSeen(read))


@given(extreme([QUOTA]))
def test_extreme_quotas(value: Any) -> None:
    read = read_quota(value)
    amounts_in_bounds(*(one.nominal for one in read.children))
    recorded(QuotaSeen(read, read_quota_status(value["status"])))


@settings(max_examples=budget.examples(300))
@given(extreme([*OBJECTS, *NUMBERED]), st.sampled_from(WELL_KNOWN))
def test_extreme_live_objects(value: Any, resource: Any) -> None:
    sets = parse(v1beta1(value), CATALOG).workload.sets
    recorded(ChildSeen(read_child(value, resource, sets)))
