"""The time to live of an object: read from its manifest, and left out of what is created."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcad.api.durations import YEAR
from mcad.api.manifest import render
from mcad.core.state.units import SECOND
from tests.api.builders import Map, accepted, job, obj, template, v1beta1, v1beta2

AFTER = {"ttlSecondsAfterFinished": 60}
POLICY = {"runPolicy": AFTER | {"cleanPodPolicy": "None"}}
WITHOUT = {"runPolicy": {"cleanPodPolicy": "None"}}
WORKERS = {"replicas": 1, "template": template()}
JOBSET = {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": template()}}}]}
SPARK: Map = {"driver": {"cores": 1, "memory": "1g"}, "executor": {"instances": 1, "cores": 1}}
RAY: Map = {
    "shutdownAfterJobFinishes": True,
    "submissionMode": "HTTPMode",
    "rayClusterSpec": {"headGroupSpec": {"template": template()}},
}
TO_LIVE = {"timeToLiveSeconds": 60}
OWN = "DeleteSelf"


def training(kind: str, roles: str, version: str = "v1") -> tuple[str, str, Map]:
    return f"kubeflow.org/{version}", kind, {roles: {"Worker": WORKERS}}


TRAINING = [
    training("PyTorchJob", "pytorchReplicaSpecs"),
    training("TFJob", "tfReplicaSpecs"),
    training("XGBoostJob", "xgbReplicaSpecs"),
    training("PaddleJob", "paddleReplicaSpecs"),
    training("JAXJob", "jaxReplicaSpecs"),
    training("MPIJob", "mpiReplicaSpecs"),
    training("MPIJob", "mpiReplicaSpecs", "v2beta1"),
]


def rule(policy: str, seconds: int | None, **condition: str) -> Map:
    limit = {} if seconds is None else {"ttlSeconds": seconds}
    return {"policy": policy, "condition": condition | limit}


GONE = [rule(OWN, 30, jobStatus="SUCCEEDED"), rule(OWN, 90, jobStatus="FAILED")]
REST = [rule("DeleteCluster", 10, jobStatus="SUCCEEDED")]


def ray(**spec: Any) -> Map:
    return obj("ray.io/v1", "RayJob", spec=RAY | spec)


def ray_rules(*rules: Map) -> Map:
    return ray(deletionStrategy={"deletionRules": list(rules)})


TAKEN: dict[str, tuple[Map, Map, int]] = {
    "Job": (job(**AFTER), job(), 60),
    "at once": (job(ttlSecondsAfterFinished=0), job(), 0),
    "JobSet": (
        obj("jobset.x-k8s.io/v1alpha2", "JobSet", spec=JOBSET | AFTER),
        obj("jobset.x-k8s.io/v1alpha2", "JobSet", spec=JOBSET),
        60,
    ),
    **{
        f"{kind} {version}": (
            obj(version, kind, spec=spec | POLICY),
            obj(version, kind, spec=spec | WITHOUT),
            60,
        )
        for version, kind, spec in TRAINING
    },
    "SparkApplication": (
        obj("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec=SPARK | TO_LIVE),
        obj("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec=SPARK),
        60,
    ),
    "RayJob, 1.4": (ray(deletionPolicy=OWN, **AFTER), ray(**AFTER), 60),
    "RayJob, both outcomes": (
        ray(deletionStrategy={"onSuccess": {"policy": OWN}, "onFailure": {"policy": OWN}}),
        ray(),
        0,
    ),
    "RayJob, rules": (ray_rules(*GONE), ray(), 90),
    "RayJob, among other rules": (ray_rules(*REST, *GONE), ray_rules(*REST), 90),
    "RayJob, a submission that failed": (
        ray_rules(GONE[0], rule(OWN, None, jobDeploymentStatus="Failed")),
        ray(),
        30,
    ),
}


@pytest.mark.parametrize("dialect", [v1beta1, v1beta2])
@pytest.mark.parametrize(("given", "made", "seconds"), TAKEN.values(), ids=TAKEN.keys())
def test_the_dispatcher_takes_over_the_time_to_live(
    given: Map, made: Map, seconds: int, dialect: Any
) -> None:
    parsed = accepted(dialect(given))
    assert parsed.workload.items[0].ttl == seconds * SECOND
    assert json.loads(parsed.manifests[0]) == given, "what was dispatched before stays the same"
    created = json.loads(render(parsed.manifests[0], parsed.workload, 0, 1))
    assert unlabelled(created["spec"]) == unlabelled(made["spec"])


def unlabelled(value: Any) -> Any:
    """Without what the dispatcher adds to pod templates."""
    if isinstance(value, dict):
        kept = {key: unlabelled(one) for key, one in value.items() if key != "labels"}
        return {key: one for key, one in kept.items() if (key, one) != ("metadata", {})}
    return [unlabelled(one) for one in value] if isinstance(value, list) else value


LEFT: dict[str, Map] = {
    "none": job(),
    "negative": job(ttlSecondsAfterFinished=-1),
    "not a number": job(ttlSecondsAfterFinished="60"),
    "true": job(ttlSecondsAfterFinished=True),
    "null": job(ttlSecondsAfterFinished=None),
    "no run policy": obj("kubeflow.org/v1", "PyTorchJob", spec=TRAINING[0][2]),
    "that of the RayCluster": ray(**AFTER),
    "another policy": ray(deletionPolicy="DeleteWorkers"),
    "a RayJob that is kept after a failure": ray_rules(*REST, GONE[0]),
    "Jobs of a CronJob": obj(
        "batch/v1",
        "CronJob",
        spec={"schedule": "@daily", "jobTemplate": {"spec": {"template": template()} | AFTER}},
    ),
    "another kind": obj("example.com/v1", "Widget", spec={"template": template()} | AFTER),
}


@pytest.mark.parametrize("given", LEFT.values(), ids=LEFT.keys())
def test_what_is_not_taken_over_is_created_as_it_is(given: Map) -> None:
    parsed = accepted(v1beta2(given))
    assert parsed.workload.items[0].ttl is None
    created = json.loads(render(parsed.manifests[0], parsed.workload, 0, 1))
    assert unlabelled(created["spec"]) == unlabelled(given["spec"])


def test_a_time_to_live_is_a_year_at_most() -> None:
    parsed = accepted(v1beta2(job(ttlSecondsAfterFinished=2**31 - 1)))
    assert parsed.workload.items[0].ttl == YEAR


def test_the_payload_hash_covers_the_field_as_before() -> None:
    """Else everything that runs would be another edit after an upgrade."""
    parsed = accepted(v1beta2(job(ttlSecondsAfterFinished=60)))
    assert parsed.workload.payload == PAYLOAD
    assert accepted(v1beta2(job())).workload.payload != PAYLOAD


PAYLOAD = "3c26c019948974b55281fc6adb9da8b3bd0507f360d601555a4d4936d3c15e29"
