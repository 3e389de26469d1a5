"""The annotations of topology: read from templates and podSets, refused, and injected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcad.api.manifest import render
from mcad.core.state.model import ChosenDomain, NodeRules, Topology
from tests.api.builders import Map, accepted, generic, job, obj, pod_spec, read, v1beta1

RACK = "cloud.provider.com/topology-rack"
PREFIX = "kueue.x-k8s.io/podset-"


def _job(**annotations: Any) -> Map:
    found = job(template=_template(annotations))
    return v1beta1(generic(found))


def _template(annotations: Map) -> Map:
    named = {PREFIX + name.replace("_", "-"): value for name, value in annotations.items()}
    return {"metadata": {"annotations": named}, "spec": pod_spec()}


@pytest.mark.parametrize(
    ("annotations", "topology"),
    [
        ({}, None),
        ({"required_topology": RACK}, Topology((RACK,))),
        ({"preferred_topology": RACK}, Topology((RACK,), required=False)),
        ({"required_topology": RACK, "group_name": "g"}, Topology((RACK,), group="g")),
    ],
)
def test_a_template_says_how_close_together_its_pods_are(
    annotations: Map, topology: Topology | None
) -> None:
    (one,) = accepted(_job(**annotations)).workload.sets
    assert one.topology == topology


def test_a_daemon_set_is_on_every_node_whatever_it_says() -> None:
    thing = obj("apps/v1", "DaemonSet", spec={"template": _template({"required_topology": RACK})})
    (one,) = accepted(v1beta1(generic(thing))).workload.sets
    assert one.topology is None


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"required_topology": "a rack"}, "must be the label of nodes"),
        ({"required_topology": RACK, "preferred_topology": RACK}, "beside the required topology"),
        ({"required_topology": RACK, "slice_size": "2"}, "is not supported"),
    ],
)
def test_what_cannot_be_honoured_is_refused(annotations: Map, message: str) -> None:
    problem = read(_job(**annotations)).workload.problem
    assert problem is not None
    assert message in problem.message
    assert f"annotations.{PREFIX}" in problem.field


@pytest.mark.parametrize(
    "other", [{"preferred_topology": RACK}, {"required_topology": "topology.kubernetes.io/zone"}]
)
def test_a_group_has_one_topology(other: Map) -> None:
    templates = ({"required_topology": RACK}, {}, {"required_topology": RACK}, other)
    jobs = [
        job(f"j{number}", template=_template(one | {"group_name": "g"} if one else one))
        for number, one in enumerate(templates)
    ]
    problem = read(v1beta1(*map(generic, jobs))).workload.problem
    assert problem is not None
    assert "group 'g' asks for another topology" in problem.message
    at = "spec.resources.GenericItems[3].generictemplate.spec.template.metadata.annotations"
    assert problem.field == f"{at}.{PREFIX}group-name"


def test_the_chosen_domain_is_required_of_every_pod() -> None:
    parsed = accepted(_job(required_topology=RACK))
    path = parsed.workload.sets[0].path
    reserved = NodeRules(domains=(ChosenDomain(0, 0, path, (RACK, "r7")),))
    made = json.loads(render(parsed.manifests[0], parsed.workload, 0, 1, reserved))
    affinity = made["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": RACK, "operator": "In", "values": ["r7"]}]}


def test_the_preferred_domain_is_added_to_what_the_template_prefers() -> None:
    own = {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    prefers = "preferredDuringSchedulingIgnoredDuringExecution"
    template = _template({})
    template["spec"]["affinity"] = {"nodeAffinity": {prefers: [own]}}
    parsed = accepted(v1beta1(generic(obj("batch/v1", "Job", spec={"template": template}))))
    rules = NodeRules(prefers=(RACK, "r7"))
    made = json.loads(render(parsed.manifests[0], parsed.workload, 0, 1, rules))
    ours = {"key": RACK, "operator": "In", "values": ["r7"]}
    assert made["spec"]["template"]["spec"]["affinity"]["nodeAffinity"] == {
        prefers: [own, {"weight": 100, "preference": {"matchExpressions": [ours]}}]
    }
