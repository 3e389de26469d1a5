"""Live wrapped objects: their AppWrapper, and the pods they still want (more in live/)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcad.api import labels
from mcad.api.catalog import WELL_KNOWN, Resource
from mcad.api.children import child_item, read_child
from mcad.api.manifest import render
from mcad.core.state.model import Child, ItemState, ObjectRef, Wanted
from tests.api.builders import (
    WIDGET,
    Map,
    accepted,
    deployment,
    job,
    pod,
    pod_spec,
    template,
    v1beta1,
)
from tests.api.live.states import Pods, wants
from tests.api.test_podsets import group, jobset, kind, kubeflow, lws, ray_job, ray_spec

SERVED = {one.kind: one for one in (*WELL_KNOWN, WIDGET)}


def live(thing: Map, status: Map | None = None, **spec: Any) -> Child:
    """The object after its creation, with a status and perhaps a changed spec."""
    parsed = accepted(v1beta1(thing))
    made: Map = json.loads(render(parsed.manifests[0], parsed.workload, 0, 4))
    made["metadata"]["uid"] = "child"
    made["status"] = status or {}
    made.get("spec", {}).update(spec)
    return read_child(made, SERVED[thing["kind"]], parsed.workload.sets)


def condition(name: str, status: str = "True") -> Map:
    return {"conditions": [{"type": name, "status": status}]}


def test_a_child_of_ours() -> None:
    assert live(deployment()) == Child(
        uid="child",
        ref=ObjectRef("apps", "v1", "deployments", "Deployment", "team", "thing"),
        workload="0b1e",
        attempt=4,
        item=0,
        wants=(Wanted(2),),
        state=ItemState.PROGRESSING,
    )


def test_an_object_without_an_appwrapper() -> None:
    child = read_child(deployment(), SERVED["Deployment"])
    assert (child.workload, child.attempt, child.item, child.labelled) == ("", 0, -1, False)


def test_an_object_out_of_a_list_has_no_kind() -> None:
    thing = {key: value for key, value in deployment().items() if key not in ("apiVersion", "kind")}
    assert read_child(thing, SERVED["Deployment"]).ref.kind == "Deployment"


def owner(**changes: Any) -> Map:
    reference = {
        "apiVersion": "workload.codeflare.dev/v1beta1",
        "kind": "AppWrapper",
        "uid": "u",
        "controller": True,
    }
    return {"metadata": {"ownerReferences": [reference | changes]}}


@pytest.mark.parametrize(
    ("thing", "uid"),
    [
        (owner(), "u"),
        (owner(controller=False), ""),
        (owner(kind="Job"), ""),
        (owner(apiVersion="mcad.ibm.com/v1beta1"), ""),
        ({}, ""),
    ],
)
def test_the_controlling_appwrapper(thing: Map, uid: str) -> None:
    assert read_child(thing, WIDGET).workload == uid


def test_the_number_of_the_item() -> None:
    assert child_item({"metadata": {"labels": {labels.ITEM: "7"}}}) == 7
    assert child_item({}) == -1


def test_our_labels_are_the_uid_and_the_attempt() -> None:
    for missing in (labels.APPWRAPPER_UID, labels.ATTEMPT):
        tags = {labels.APPWRAPPER_UID: "u", labels.ATTEMPT: "1"}
        assert read_child({"metadata": {"labels": tags}}, WIDGET).labelled
        del tags[missing]
        assert not read_child({"metadata": {"labels": tags}}, WIDGET).labelled


MPI = {"mpiReplicaSpecs": {"Launcher": group(1), "Worker": group(3)}}
JOBSET = kind("JobSet", **jobset(("a", 3, {"parallelism": 2})))
RAY_JOB = ray_job(2)

WANTS: dict[str, tuple[Child, tuple[Pods, ...]]] = {
    "a pod until it ends": (live(pod(), {"phase": "Running"}), (1,)),
    "a pod that succeeded": (live(pod(), {"phase": "Succeeded"}), (0,)),
    "a pod that failed": (live(pod(), {"phase": "Failed"}), (0,)),
    "a deployment that was scaled": (live(deployment(), replicas=7), (7,)),
    "a job at its start": (live(job(parallelism=4, completions=6)), (4,)),
    "a job with three completions left": (
        live(job(parallelism=4, completions=6), {"succeeded": 3}),
        (3,),
    ),
    "a job with pods that failed": (live(job(parallelism=4, completions=6), {"failed": 3}), (4,)),
    "a complete job": (live(job(parallelism=4), condition("Complete")), (0,)),
    "a failed job": (live(job(parallelism=4), condition("Failed")), (0,)),
    "a job that is not complete": (live(job(parallelism=4), condition("Complete", "False")), (4,)),
    "a daemon set does not tell": (live(kind("DaemonSet", template=template())), (None,)),
    "a training job whose launcher succeeded": (
        live(
            kind("MPIJob", **MPI),
            {"replicaStatuses": {"Launcher": {"succeeded": 1}, "Worker": {"active": 3}}},
        ),
        (0, 3),
    ),
    "a training job that succeeded": (live(kind("MPIJob", **MPI), condition("Succeeded")), (0, 0)),
    "a job set with one job done": (
        live(JOBSET, {"replicatedJobsStatus": [{"name": "a", "succeeded": 1}]}),
        (4,),
    ),
    "a job set that completed": (live(JOBSET, condition("Completed")), (0,)),
    "groups that were scaled": (live(kind("LeaderWorkerSet", **lws(2, 3)), replicas=1), (3,)),
    "a Ray cluster that was scaled": (
        live(kind("RayCluster", **ray_spec(group(2))), workerGroupSpecs=[group(5, numOfHosts=2)]),
        (1, 10),
    ),
    "a Ray job, whose submitter comes later": (live(RAY_JOB), (1, 2, (0, 1))),
    "a Ray job that is over": (
        live(RAY_JOB, {"jobDeploymentStatus": "Complete"}, shutdownAfterJobFinishes=True),
        (0, 0, 0),
    ),
    "an unknown kind does not tell": (live(kind("Widget", **pod_spec())), (None,)),
    "an unknown kind does not tell even if it says Complete": (
        live(kind("Widget", **pod_spec()), condition("Complete")),
        (None,),
    ),
}


@pytest.mark.parametrize(("child", "pods"), WANTS.values(), ids=WANTS.keys())
def test_the_pods_that_a_child_still_wants(child: Child, pods: tuple[Pods, ...]) -> None:
    assert child.wants == wants([*pods])


def test_a_child_of_an_unknown_appwrapper_wants_nothing_in_particular() -> None:
    assert read_child(deployment(), SERVED["Deployment"]).wants == ()


def test_declared_demand_has_no_place_in_the_child() -> None:
    entry = {"replicas": 2, "requests": {"cpu": 1}}
    item = {"generictemplate": deployment(), "custompodresources": [entry]}
    sets = accepted(v1beta1(item)).workload.sets
    assert read_child(deployment(), SERVED["Deployment"], sets).wants == (None,)


MET = {
    "conditions with status True": (
        "Deployment",
        {"conditions": [{"type": "Available", "status": "True"}, {"type": "X", "status": "False"}]},
        {"available"},
    ),
    "the phase of a pod": ("Pod", {"phase": "Succeeded"}, {"succeeded"}),
    "the state of a Ray job": (
        "RayJob",
        {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"},
        {"succeeded", "complete"},
    ),
    "the state of a Spark application": (
        "SparkApplication",
        {"applicationState": {"state": "COMPLETED"}},
        {"completed"},
    ),
    "a try of a Ray job that is repeated": (
        "RayJob",
        {"jobStatus": "FAILED", "jobDeploymentStatus": "Retrying"},
        {"retrying"},
    ),
    "the phase of anything else is not a condition": ("Widget", {"phase": "Ready"}, set()),
}


@pytest.mark.parametrize(("of", "status", "met"), MET.values(), ids=MET.keys())
def test_what_counts_as_met(of: str, status: Map, met: set[str]) -> None:
    assert read_child({"status": status}, SERVED[of]).met == met


def test_a_child_on_its_way_out() -> None:
    thing = {"metadata": {"deletionTimestamp": "2023-07-21T11:18:27Z"}}
    assert read_child(thing, Resource("", "v1", "pods", "Pod")).terminating


def test_a_training_job_without_a_status_wants_all() -> None:
    thing = kubeflow("TFJob", "tf", Worker=group(4))
    assert live(thing).wants == (Wanted(4),)
