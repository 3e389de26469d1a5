"""spec.scaleUp.keepPods: annotations that keep autoscalers from moving pods, in both dialects."""

from __future__ import annotations

import json

import pytest

from mcad.api.manifest import render
from mcad.api.scale_up.kept import ANNOTATIONS
from tests.api.builders import Map, accepted, config_map, job, read, v1beta1, v1beta2

EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def annotated(**given: str) -> Map:
    thing = job()
    thing["spec"]["template"]["metadata"] = {"annotations": given}
    return thing


@pytest.mark.parametrize("dialect", [v1beta1, v1beta2])
def test_pods_are_kept_if_the_appwrapper_asks(dialect: object) -> None:
    assert callable(dialect)
    parsed = accepted(dialect(annotated(a="b"), config_map("c"), scaleUp={"keepPods": True}))
    made = json.loads(render(parsed.manifests[0], parsed.workload, 0, 1))
    assert made["spec"]["template"]["metadata"]["annotations"] == {"a": "b"} | ANNOTATIONS
    assert b"annotations" not in parsed.manifests[1]


@pytest.mark.parametrize("scale_up", [{}, {"keepPods": False}])
def test_nothing_keeps_a_node_unless_asked(scale_up: Map) -> None:
    parsed = accepted(v1beta2(job(), scaleUp=scale_up))
    assert b"annotations" not in parsed.manifests[0]
    assert parsed.workload.payload == accepted(v1beta2(job())).workload.payload


def test_another_value_in_the_template_is_refused_and_never_overwritten() -> None:
    (problem,) = read(v1beta2(annotated(**{EVICT: "true"}), scaleUp={"keepPods": True})).problems
    assert str(problem) == (
        f"spec.components[0].template.spec.template.metadata.annotations.{EVICT}: is 'true', but "
        "spec.scaleUp.keepPods sets 'false'; remove one of them."
    )


def test_a_wrong_type_and_an_unknown_field_are_told() -> None:
    (problem,) = read(v1beta2(job(), scaleUp={"keepPods": "yes"})).problems
    assert str(problem).startswith("spec.scaleUp.keepPods: must be true or false")
    warnings = accepted(v1beta2(job(), scaleUp={"keepPod": True})).workload.warnings
    assert warnings == ("spec.scaleUp.keepPod: unknown field, ignored.",)
