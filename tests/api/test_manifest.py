"""What is really created: owner, name, labels, and nothing else that the user did not write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcad.api import labels
from mcad.api.manifest import render
from mcad.core.state.model import NodeRules
from tests.api.builders import (
    Map,
    accepted,
    config_map,
    container,
    deployment,
    generic,
    job,
    obj,
    pod,
    pod_spec,
    template,
    v1beta1,
    v1beta2,
)
from tests.api.test_podsets import KINDS, component, group, ray_spec

OURS = {
    labels.APPWRAPPER: "aw",
    labels.APPWRAPPER_UID: "0b1e",
    labels.ATTEMPT: "4",
    labels.ITEM: "0",
}
LEGACY = {labels.LEGACY_APPWRAPPER: "aw", labels.LEGACY_RESOURCE: "thing"}


def created(appwrapper: Map, item: int = 0) -> Map:
    parsed = accepted(appwrapper)
    made: Map = json.loads(render(parsed.manifests[item], parsed.workload, item, 4))
    return made


def test_a_config_map() -> None:
    assert created(v1beta1(config_map())) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "thing",
            "namespace": "team",
            "labels": OURS | LEGACY,
            "ownerReferences": [
                {
                    "apiVersion": "workload.codeflare.dev/v1beta2",
                    "kind": "AppWrapper",
                    "name": "aw",
                    "uid": "0b1e",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "data": {"a": "b"},
    }


def test_v1beta2_is_owned_in_its_version_and_has_no_labels_of_mcad() -> None:
    meta = created(v1beta2(config_map()))["metadata"]
    assert meta["ownerReferences"][0]["apiVersion"] == "workload.codeflare.dev/v1beta2"
    assert meta["labels"] == OURS


ENTRY = {"replicas": 2, "requests": {"cpu": 1}}
SPARK = KINDS["a Spark application in Python: 40 % overhead"][0]
RAY = obj("ray.io/v1", "RayCluster", "ray", ray_spec(group(1), group(2)))
BARE = obj("example.com/v1", "Widget", spec={"pod": {"spec": {"nodeName": "n"}}})
DEEP = obj("example.com/v1", "Widget", spec={"a": [{"b": {"spec": pod_spec()}}]})
HINTS: dict[str, tuple[Map, list[tuple[str, str]]]] = {
    "a template": (v1beta1(deployment()), [("spec.template.metadata.labels", "0.0")]),
    "a bare pod is its own template": (v1beta1(pod()), [("metadata.labels", "0.0")]),
    "every template of a Ray cluster": (
        v1beta1(RAY),
        [
            ("spec.headGroupSpec.template.metadata.labels", "0.0"),
            ("spec.workerGroupSpecs.0.template.metadata.labels", "0.1"),
            ("spec.workerGroupSpecs.1.template.metadata.labels", "0.2"),
        ],
    ),
    "the roles of a Spark application": (
        v1beta1(SPARK),
        [("spec.driver.labels", "0.0"), ("spec.executor.labels", "0.1")],
    ),
    "one declared set has all pods of its item": (
        v1beta1(generic(deployment(), custompodresources=[ENTRY])),
        [("spec.template.metadata.labels", "0.0")],
    ),
    "a declared template without containers": (
        v1beta2(component(BARE, {"path": "template.spec.pod"})),
        [("spec.pod.metadata.labels", "0.0")],
    ),
    "a template deep inside an unknown kind": (
        v1beta1(DEEP),
        [("spec.a.0.b.metadata.labels", "0.0")],
    ),
}


@pytest.mark.parametrize(("aw", "hints"), HINTS.values(), ids=HINTS.keys())
def test_pods_say_which_set_they_are_of(aw: Map, hints: list[tuple[str, str]]) -> None:
    made = created(aw)
    for path, hint in hints:
        found: Any = made
        for key in path.split("."):
            found = found[int(key) if key.isdecimal() else key]
        assert found[labels.PODSET] == hint
        assert {key: found[key] for key in OURS} == OURS
        assert (labels.LEGACY_APPWRAPPER in found) == ("resources" in aw["spec"])
    assert labels.PODSET not in made["metadata"]["labels"] or made["kind"] == "Pod"


@pytest.mark.parametrize("name", KINDS)
def test_rendering_changes_only_metadata_and_labels(name: str) -> None:
    """A status is that of another object."""
    ours = ("metadata", "labels", "status", "submitterPodTemplate")  # the latter below

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in ours}
        return [strip(one) for one in value] if isinstance(value, list) else value

    thing, _ = KINDS[name]
    assert strip(created(v1beta1(thing))) == strip(thing)


def test_several_declared_sets_leave_it_open() -> None:
    entry = {"replicas": 1, "requests": {"cpu": 1}}
    made = created(v1beta1(generic(deployment(), custompodresources=[entry, entry])))
    tags = made["spec"]["template"]["metadata"]["labels"]
    assert labels.PODSET not in tags
    assert tags[labels.ITEM] == "0"


def test_the_users_labels_stay() -> None:
    tags = {"app": "x", labels.LEGACY_APPWRAPPER: "copied-from-elsewhere"}
    thing = obj("apps/v1", "Deployment", spec={"template": template(labels=tags)})
    made = created(v1beta1(thing))["spec"]["template"]["metadata"]["labels"]
    assert made["app"] == "x"
    assert made[labels.LEGACY_APPWRAPPER] == "copied-from-elsewhere", "a selector may depend on it"


@pytest.mark.parametrize("given", [{"app": "t", "of": "template"}, {}, None])
def test_labels_of_an_object_of_v1beta1_are_those_of_its_pods_too(given: Map | None) -> None:
    thing = deployment()
    thing["metadata"]["labels"] = {"app": "d", "tier": "web"}
    if given is None:
        thing["spec"]["template"].pop("metadata", None)
    else:
        thing["spec"]["template"]["metadata"] = {"labels": given}
    copied = {"app": "d", "tier": "web"} if given is not None else {}
    for aw, theirs in ((v1beta1(thing), (given or {}) | copied), (v1beta2(thing), given or {})):
        found = created(aw)["spec"]["template"]["metadata"]["labels"]
        assert {key: found[key] for key in found if key in ("app", "tier", "of")} == theirs


def test_what_a_server_had_written_is_left_out() -> None:
    exported = {
        "name": "thing",
        "uid": "x",
        "resourceVersion": "7",
        "creationTimestamp": None,
        "generation": 2,
        "managedFields": [],
        "annotations": {"kept": "yes"},
    }
    made = created(v1beta1(config_map() | {"metadata": exported, "status": {"a": 1}}))
    assert made["metadata"].keys() == {
        "name",
        "namespace",
        "labels",
        "ownerReferences",
        "annotations",
    }
    assert "status" not in made


def test_a_generated_name_is_spelled_out() -> None:
    made = created(v1beta1(pod() | {"metadata": {"generateName": "w-"}}))
    assert made["metadata"]["name"].startswith("w-")
    assert "generateName" not in made["metadata"]


def test_long_names_become_label_values() -> None:
    aw = v1beta1(config_map("c" * 200))
    aw["metadata"]["name"] = "a" * 200
    tags = created(aw)["metadata"]["labels"]
    assert all(len(value) <= 63 for value in tags.values())
    assert tags[labels.APPWRAPPER] != tags[labels.LEGACY_RESOURCE]
    assert labels.label_value("a" * 200) != labels.label_value("a" * 201)


def test_rendering_does_not_touch_the_manifest() -> None:
    parsed = accepted(v1beta1(job()))
    before = bytes(parsed.manifests[0])
    first = render(parsed.manifests[0], parsed.workload, 0, 1)
    assert parsed.manifests[0] == before
    assert render(parsed.manifests[0], parsed.workload, 0, 1) == first
    assert render(parsed.manifests[0], parsed.workload, 0, 2) != first


def ray_job(**spec: Any) -> Map:
    """A RayJob with a cluster that has a head with an image."""
    head = {"template": {"spec": {"containers": [{"name": "head", "image": "ray:2"}]}}}
    return obj("ray.io/v1", "RayJob", spec={"rayClusterSpec": {"headGroupSpec": head}, **spec})


def submitter(aw: Map) -> Map | None:
    """The template of the pod that submits it."""
    found: Map | None = created(aw)["spec"].get("submitterPodTemplate")
    return found


def test_the_submitter_of_a_ray_job_is_written_out_so_that_it_has_our_labels() -> None:
    """KubeRay would make the same pod, but without a label, so its AppWrapper would be unknown."""
    resources = {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "200Mi"},
    }
    name = {"name": "ray-job-submitter", "image": "ray:2"}
    assert submitter(v1beta2(component(ray_job()))) == {
        "metadata": {"labels": OURS | {labels.PODSET: "0.1"}},
        "spec": {"restartPolicy": "Never", "containers": [{**name, "resources": resources}]},
    }


def test_a_submitter_of_ones_own_stays() -> None:
    own = template(container("3"))
    made = submitter(v1beta2(component(ray_job(submitterPodTemplate=own))))
    assert made["spec"] == own["spec"]


@pytest.mark.parametrize(
    "spec",
    [
        {"submissionMode": "HTTPMode"},
        {"rayClusterSpec": None, "clusterSelector": {"ray.io/cluster": "c"}},
        {"rayClusterSpec": {"headGroupSpec": {"template": {"spec": {"containers": [{}]}}}}},
    ],
    ids=["none is made", "a cluster of others", "no image"],
)
def test_no_submitter_is_written_out(spec: Map) -> None:
    assert submitter(v1beta2(component(ray_job(**spec)))) is None


@pytest.mark.parametrize(
    ("thing", "path"),
    [
        (pod(), ("spec",)),
        (deployment(), ("spec", "template", "spec")),
        (job(), ("spec", "template", "spec")),
    ],
)
def test_nodes_to_avoid_are_a_wish_of_every_pod(thing: Map, path: tuple[str, ...]) -> None:
    parsed = accepted(v1beta1(thing))
    made = json.loads(render(parsed.manifests[0], parsed.workload, 0, 4, NodeRules(("n1", "n2"))))
    for key in path:
        made = made[key]
    (wish,) = made["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert wish == {
        "weight": 100,
        "preference": {
            "matchFields": [
                {"key": "metadata.name", "operator": "NotIn", "values": [name]}
                for name in ("n1", "n2")
            ]
        },
    }


def test_nodes_to_exclude_are_forbidden_to_every_pod_whatever_else_is_required() -> None:
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
                    {},  # admits no node, and has to stay so
                ]
            }
        }
    }
    off = {"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}
    for given in ({}, {"affinity": affinity}):
        thing = pod()
        thing["spec"] |= given
        parsed = accepted(v1beta1(thing))
        reserved = NodeRules(exclude=("n2",))
        made = json.loads(render(parsed.manifests[0], parsed.workload, 0, 4, reserved))
        nodes = made["spec"]["affinity"]["nodeAffinity"]
        (required,) = nodes.values()
        terms = required["nodeSelectorTerms"]
        if given:
            assert [off in term.get("matchFields", ()) for term in terms] == [True, True, False]
            assert terms[0]["matchExpressions"] == [{"key": "zone", "operator": "Exists"}]
        else:
            assert terms == [{"matchFields": [off]}]


def test_planned_nodes_are_a_wish_each() -> None:
    parsed = accepted(v1beta1(pod()))
    rules = NodeRules(avoid=("n3",), planned=("n1", "n2"))
    made = json.loads(render(parsed.manifests[0], parsed.workload, 0, 4, rules))
    nodes = made["spec"]["affinity"]["nodeAffinity"]
    wishes = nodes["preferredDuringSchedulingIgnoredDuringExecution"]
    found = [
        (one["operator"], one["values"]) for w in wishes for one in w["preference"]["matchFields"]
    ]
    assert found == [("NotIn", ["n3"]), ("In", ["n1"]), ("In", ["n2"])]
    assert [one["weight"] for one in wishes] == [100, 100, 100]


def test_without_nodes_to_avoid_nothing_is_added() -> None:
    assert "affinity" not in json.dumps(created(v1beta1(pod())))
