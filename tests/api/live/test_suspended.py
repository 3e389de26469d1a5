"""Objects that are suspended: by which field and client, and in the manifest already."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.api.live import suspended_by
from tests.api.builders import Map, accepted, deployment, generic, job, v1beta1, v1beta2
from tests.api.live.states import AT, State, read, written_by
from tests.api.test_podsets import group, jobset, kind, ray_job, ray_spec

_SUSPEND = {"suspend": True}
_LATER = "2026-03-02T10:00:00Z"


def suspended(*entries: Map) -> str:
    """How a Job is suspended that these clients have written."""
    metadata = {"managedFields": list(entries)}
    return read(State(job(), {}, [0], spec=_SUSPEND, metadata=metadata)).suspended


def entry(manager: Any, **more: Any) -> Map:
    (one,) = written_by(manager, "spec", "suspend")["managedFields"]
    return {**one, **more}


TOLD = {
    "nothing is known of clients": ((), ""),
    "a client": ((entry("kubectl-patch"),), ", set by kubectl-patch"),
    "the last of two clients": (
        (entry("b", time=_LATER), entry("a", time=AT)),
        ", set by b",
    ),
    "another field was written later": (
        (entry("a"), entry("b", time=_LATER, fieldsV1={"f:spec": {"f:parallelism": {}}})),
        ", set by a",
    ),
    "the status was written later": (
        (entry("a"), entry("b", time=_LATER, subresource="status")),
        ", set by a",
    ),
    "the whole spec was written": ((entry("a", fieldsV1={"f:spec": {}}),), ", set by a"),
    "the dispatcher wrote it": ((entry("mcad"),), ", as in the manifest"),
    "entries without a meaning": ((entry(7, fieldsV1=[]), entry(None, time={})), ""),
}


@pytest.mark.parametrize(("entries", "by"), TOLD.values(), ids=TOLD.keys())
def test_by_which_client_it_is_suspended(entries: tuple[Map, ...], by: str) -> None:
    assert suspended(*entries) == f"spec.suspend is true{by}"


def test_a_field_that_is_not_true_does_not_suspend() -> None:
    for value in (False, None, "true", 1):
        assert not read(State(job(), {}, [1], spec={"suspend": value})).suspended


def test_all_suspended_groups_are_named() -> None:
    groups = [group(1, suspend=True), group(1), group(1, suspend=True)]
    thing = kind("RayCluster", **ray_spec(*groups))
    told = read(State(thing, {}, [])).suspended
    assert told == (
        "spec.workerGroupSpecs[0].suspend is true, spec.workerGroupSpecs[2].suspend is true"
    )


SUBMITTED: dict[str, tuple[Map, str]] = {
    "a Job": (job(suspend=True), "spec.suspend"),
    "a Job that is paused": (job(parallelism=0), "spec.parallelism"),
    "a Job that runs": (job(suspend=False), ""),
    "a CronJob": (
        kind("CronJob", suspend=True, jobTemplate={"spec": job()["spec"]}),
        "spec.suspend",
    ),
    "a JobSet": (kind("JobSet", **jobset(("a", 1, {})), suspend=True), "spec.suspend"),
    "a RayCluster": (kind("RayCluster", **ray_spec(group(1)), suspend=True), "spec.suspend"),
    "a RayCluster with a suspended group": (
        kind("RayCluster", **ray_spec(group(1, suspend=True))),
        "",
    ),
    "a RayJob": (ray_job(1, suspend=True), "spec.suspend"),
    "a RayJob with a suspended cluster": (
        kind("RayJob", rayClusterSpec=ray_spec(group(1), suspend=True)),
        "spec.rayClusterSpec.suspend",
    ),
    "a RayService": (
        kind("RayService", rayClusterConfig=ray_spec(group(1), suspend=True)),
        "spec.rayClusterConfig.suspend",
    ),
    **{
        f"a {name}": (
            kind(name, **{f"{role}ReplicaSpecs": {"Worker": group(1)}, "runPolicy": _SUSPEND}),
            "spec.runPolicy.suspend",
        )
        for name, role in (
            *(("PyTorchJob", "pytorch"), ("TFJob", "tf"), ("XGBoostJob", "xgb")),
            *(("PaddleJob", "paddle"), ("JAXJob", "jax"), ("MPIJob", "mpi")),
        )
    },
    "a TrainJob": (kind("TrainJob", trainer={"numNodes": 1}, suspend=True), "spec.suspend"),
    "a SparkApplication": (
        kind("SparkApplication", driver={}, executor={}, suspend=True),
        "spec.suspend",
    ),
    "a Deployment that is paused": (
        {**deployment(), "spec": {**deployment()["spec"], "paused": True}},
        "spec.paused",
    ),
    "an unknown kind": (kind("Widget", suspend=True, template={"spec": {"containers": []}}), ""),
}


@pytest.mark.parametrize(("thing", "field"), SUBMITTED.values(), ids=SUBMITTED.keys())
def test_an_item_that_is_submitted_suspended_is_told(thing: Map, field: str) -> None:
    parsed = accepted(v1beta1(thing))
    warnings = [one for one in parsed.workload.warnings if "until a client resumes it" in one]
    assert parsed.workload.items[0].suspended == field
    assert len(warnings) == bool(field)
    assert all(field in one for one in warnings)


def test_the_words_of_the_warning() -> None:
    said = "spec.suspend is true: its controller makes no pods until a client resumes it; "
    said += "remove the field."
    one, two = accepted(v1beta1(job(suspend=True))), accepted(v1beta2(job(suspend=True)))
    assert one.workload.warnings == (f"spec.resources.GenericItems[0].generictemplate.{said}",)
    assert two.workload.warnings == (f"spec.components[0].template.{said}",)


def test_what_is_submitted_suspended_is_declared_in_full() -> None:
    (only,) = accepted(v1beta1(generic(job(parallelism=4, suspend=True)))).workload.sets
    assert only.replicas == 4


def test_a_suspended_group_declares_no_pods() -> None:
    groups = [group(2), group(3, suspend=True)]
    for thing in (
        kind("RayCluster", **ray_spec(*groups)),
        kind("RayJob", rayClusterSpec=ray_spec(*groups)),
        kind("RayService", rayClusterConfig=ray_spec(*groups)),
    ):
        sets = accepted(v1beta1(thing)).workload.sets
        assert [one.replicas for one in sets][:3] == [1, 2, 0]


def test_a_manifest_of_an_unknown_kind_is_not_suspended() -> None:
    assert suspended_by({"spec": _SUSPEND}, "example.com", "Widget") is None
