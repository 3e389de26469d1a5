"""What can never be dispatched is refused by the API server with a sentence; what slips through is
held by the dispatcher. On a real control plane with the chart."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.api.appwrapper import MAX_POD_SETS_ALL
from mcad.api.labels import GROUP
from tests.chart.cluster import PULLED_NOWHERE, Release
from tests.chart.helm import ROOT, Helm
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import condition
from tests.e2e.process import Dispatcher
from tests.manifests import config_map, deployment, generic, pod, wrapper

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

V1, V2 = "v1beta1", "v1beta2"
ITEM = "spec.resources.GenericItems[0]"
COMPONENT = "spec.components[0]"
CONTAINERS = "template.spec.template.spec.containers"
BINDING = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/mcad-manifests"
SAMPLES = sorted((ROOT / "samples").glob("aw-*.yaml"))
PREDECESSORS = ROOT / "tests" / "api" / "predecessors.yaml"
MERGE = "application/merge-patch+json"


def url(version: str = V2, name: str = "") -> str:
    path = f"/apis/{GROUP}/{version}/namespaces/default/appwrappers"
    return f"{path}/{name}" if name else path


def item_with(template: Json, **more: Any) -> Json:
    """The spec of one generic item."""
    return {"resources": {"GenericItems": [{"generictemplate": template, **more}]}}


def component_with(template: Json, **more: Any) -> Json:
    """The same in the other dialect."""
    return {"components": [{"template": template, **more}]}


def declaring(*paths: str, **more: Any) -> Json:
    """A Deployment with pod sets at these paths."""
    return component_with(deployment("x"), podSets=[{"path": path, **more} for path in paths])


def in_namespace(template: Json, namespace: str) -> Json:
    return template | {"metadata": {"name": "x", "namespace": namespace}}


def group_of_workers(*templates: Any) -> Json:
    """A RayCluster with these worker groups."""
    head = {"rayStartParams": {}, "template": {"spec": pod("x")["spec"]}}
    groups = [
        {"groupName": f"g{i}", "replicas": 1, "template": one} for i, one in enumerate(templates)
    ]
    spec = {"headGroupSpec": head, "workerGroupSpecs": groups}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "x"},
        "spec": spec,
    }


@dataclass(frozen=True, slots=True)
class Refused:
    """What the policy says, and where and what the dispatcher says if it is asked instead."""

    spec: Json
    said: str
    field: str
    advice: str
    version: str = V2


def path_of(number: int) -> str:
    return f"{COMPONENT}.podSets[{number}].path"


GRAMMAR = "' is not like template.spec.template or template.spec.workers[0].template; correct it."
ELSEWHERE = (
    "items live in the namespace of their AppWrapper, default, not in kube-system.",
    "items live beside their AppWrapper",
)
NESTED = ("an AppWrapper cannot wrap another one; wrap its items.",) * 2

REFUSED = {
    "no components": Refused(
        {"components": []},
        "spec.components is empty; list the objects to wrap.",
        "spec.components",
        "list the objects to wrap",
    ),
    "an item elsewhere": Refused(
        item_with(in_namespace(config_map("x"), "kube-system")),
        ELSEWHERE[0],
        f"{ITEM}.generictemplate.metadata.namespace",
        ELSEWHERE[1],
        V1,
    ),
    "a component elsewhere": Refused(
        component_with(in_namespace(pod("x"), "kube-system")),
        ELSEWHERE[0],
        f"{COMPONENT}.template.metadata.namespace",
        ELSEWHERE[1],
    ),
    **{
        f"an AppWrapper of {version} in {dialect}": Refused(
            holder(generic("inner", pod("x")) | {"apiVersion": f"{GROUP}/{version}"}),
            NESTED[0],
            f"{field}.kind",
            NESTED[1],
            dialect,
        )
        for version in (V1, V2, "v1")
        for dialect, holder, field in (
            (V1, item_with, f"{ITEM}.generictemplate"),
            (V2, component_with, f"{COMPONENT}.template"),
        )
    },
    **{
        f"the path {path!r}": Refused(
            declaring(path), f"the pod set path '{path}{GRAMMAR}", path_of(0), advice
        )
        for path, advice in {
            "": "must start with 'template'",
            "spec.template": "must start with 'template'",
            "template.": "comes neither '.field' nor '[number]'",
            "template..spec": "comes neither '.field' nor '[number]'",
            "templates.spec": "comes neither '.field' nor '[number]'",
            "template.spec[": "comes neither '.field' nor '[number]'",
            "template.spec[-1]": "comes neither '.field' nor '[number]'",
            "template.spec[*].template": "comes neither '.field' nor '[number]'",
            "template.spec.template]": "comes neither '.field' nor '[number]'",
        }.items()
    },
    **{
        f"the path {path!r} into nothing": Refused(
            declaring(path),
            f"the pod set path '{path}' leads to no pod template in the wrapped Deployment;",
            path_of(0),
            advice,
        )
        for path, advice in {
            "template.spec.temple": "there is nothing at 'template.spec.temple' in the template",
            f"{CONTAINERS}[1]": "there is nothing at",
            f"{CONTAINERS}.name": "there is nothing at",
            "template.spec[0]": "there is nothing at",
            "template.spec.replicas.x": "there is nothing at",
            "template.metadata": "does not lead to a pod template",
            CONTAINERS: "does not lead to a pod template",
            f"{CONTAINERS}[0]": "does not lead to a pod template",
            "template.kind": "does not lead to a pod template",
        }.items()
    },
    "the same path twice": Refused(
        declaring("template.spec.template", "template.spec.template"),
        "the pod set path 'template.spec.template' is given twice; each pod set needs a path",
        path_of(1),
        "each pod set needs a path of its own",
    ),
    "negative replicas of a pod set": Refused(
        declaring("template.spec.template", replicas=-1),
        "replicas of podSets and custompodresources must not be negative.",
        f"{COMPONENT}.podSets[0].replicas",
        "must not be negative",
    ),
    "negative replicas of custompodresources": Refused(
        item_with(pod("x"), custompodresources=[{"replicas": -1, "requests": {}}]),
        "replicas of podSets and custompodresources must not be negative.",
        f"{ITEM}.custompodresources[0].replicas",
        "must not be negative",
        V1,
    ),
}

FINE = {
    "the head of a RayCluster": component_with(
        group_of_workers(), podSets=[{"path": "template.spec.headGroupSpec.template"}]
    ),
    "a worker of many": component_with(
        group_of_workers(*[{"spec": pod("x")["spec"]}] * 12),
        podSets=[{"path": "template.spec.workerGroupSpecs[11].template", "replicas": 0}],
    ),
    "a pod": component_with(pod("x"), podSets=[{"path": "template"}]),
    "a path that is longer than the policy looks": declaring("template" + ".spec" * 9),
    "the own namespace": component_with(in_namespace(pod("x"), "default")),
    "an empty namespace": item_with(in_namespace(pod("x"), "")),
    "no items, as MCAD let in": {"resources": {"GenericItems": []}},
    "an item without a template": {"resources": {"GenericItems": [{"replicas": 1}]}},
    "another group's AppWrapper": item_with(config_map("AppWrapper")),
}


@pytest.fixture(scope="module")
def release(helm: Helm, control_plane: ControlPlane) -> Release:
    """The chart, its policies in force; without authorization, as they do not depend on it."""
    control_plane.add_node("node-1")
    one = Release(helm, control_plane)
    one.install(authorization="none", **PULLED_NOWHERE)
    in_force(control_plane)
    return one


def in_force(plane: ControlPlane) -> None:
    """A policy comes into force a moment after it is written."""
    plane.wait_for(
        lambda: submit(plane, wrapper("probe", {"components": []}, V2))[0] == 422, 30, "policy"
    )


def submit(plane: ControlPlane, one: Json, query: str = "?dryRun=All") -> tuple[int, Json]:
    version = one["apiVersion"].rpartition("/")[2]
    return plane.request("POST", url(version) + query, one)


@pytest.fixture
def plane(control_plane: ControlPlane, release: Release) -> ControlPlane:
    return control_plane


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_sentence(plane: ControlPlane, name: str) -> None:
    bad = REFUSED[name]
    for version in (V1, V2):  # either version takes both dialects
        code, answer = submit(plane, wrapper("bad", bad.spec, version))
        assert code in (403, 422), answer
        assert f"with binding 'mcad-manifests' denied request: {bad.said}" in answer["message"]


@pytest.mark.parametrize("name", FINE)
def test_let_in(plane: ControlPlane, name: str) -> None:
    for version in (V1, V2):
        code, answer = submit(plane, wrapper("fine", FINE[name], version))
        assert code == 201, answer["message"]


@pytest.mark.parametrize("version", [V1, V2])
def test_what_the_predecessors_took_is_let_in(plane: ControlPlane, version: str) -> None:
    """Strictly, with every field that they had."""
    for one in yaml.safe_load_all(PREDECESSORS.read_text(encoding="utf-8")):
        one["apiVersion"] = f"{GROUP}/{version}"
        code, answer = submit(plane, one, "?dryRun=All&fieldValidation=Strict")
        assert code == 201, answer["message"]


@pytest.mark.parametrize("sample", SAMPLES, ids=[one.stem for one in SAMPLES])
def test_samples_are_let_in(plane: ControlPlane, sample: Path) -> None:
    plane.kubectl("create", "--validate=strict", "--dry-run=server", "-f", str(sample))


def test_as_many_pod_sets_as_are_dispatched_can_be_judged(plane: ControlPlane) -> None:
    """Within the policy's budget, with long paths; and a wrong one behind all of them is found."""
    workers = 64
    one = group_of_workers(*[{"spec": pod("x")["spec"]}] * workers)
    ray_job = {**one, "kind": "RayJob", "spec": {"rayClusterSpec": one["spec"]}}
    where = "template.spec.rayClusterSpec.workerGroupSpecs[{}].template"
    good = {"template": ray_job, "podSets": [{"path": where.format(i)} for i in range(workers)]}
    full = [good] * (MAX_POD_SETS_ALL // workers)
    assert submit(plane, wrapper("full", {"components": full}, V2))[0] == 201
    bad = good | {"podSets": [*good["podSets"][1:], {"path": where.format(workers)}]}
    code, answer = submit(plane, wrapper("full", {"components": [*full[1:], bad]}, V2))
    assert code == 422
    assert f"'{where.format(workers)}' leads to no pod template" in answer["message"]


def test_what_is_too_much_to_judge_is_let_in(plane: ControlPlane) -> None:
    """The dispatcher looks at it; a policy that denied it would deny what is right, too."""
    paths = ["template.spec.template", *(f"template.spec.a{i}" for i in range(63))]
    one = declaring(*paths)["components"]
    assert submit(plane, wrapper("too-much", {"components": one * 256}, V2))[0] == 201


def test_the_api_server_finds_no_fault_with_the_expressions(plane: ControlPlane) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/mcad-manifests"

    def checked() -> Json | None:
        found = plane.request("GET", path)[1]
        status: Json = found.get("status", {})
        current = status.get("observedGeneration") == found["metadata"]["generation"]
        return status if current else None

    status = plane.wait_for(checked, 60, "the policy is type-checked")
    assert status.get("typeChecking", {}).get("expressionWarnings", []) == []


def test_not_even_an_unknown_key_of_a_template_is_exchanged(plane: ControlPlane) -> None:
    """The CRD's rule does not see it; the policy does."""
    made = wrapper("frozen", component_with(config_map("frozen")), V2)
    code, answer = submit(plane, made, "")
    assert code == 201, answer
    template = {**config_map("frozen"), "data": None, "binaryData": {"a": "YQ=="}}
    change = {"spec": {"components": [{"template": template}]}}
    code, answer = plane.request("PATCH", url(name="frozen"), change, content_type=MERGE)
    assert code == 422
    assert "templates of components cannot be changed" in answer["message"]
    infos = made["spec"]["components"][0] | {"podSetInfos": [{"labels": {"a": "b"}}]}
    change = {"spec": {"components": [infos]}}
    code, answer = plane.request("PATCH", url(name="frozen"), change, content_type=MERGE)
    assert code == 200, answer
    plane.request("DELETE", url(name="frozen"))


@pytest.fixture
def without_the_policy(plane: ControlPlane) -> Iterator[None]:
    """As on Kubernetes before 1.30, or where only ``mcad crd`` was applied."""
    _, binding = plane.request("GET", BINDING)
    plane.request("DELETE", BINDING)
    plane.wait_for(
        lambda: submit(plane, wrapper("probe", {"components": []}, V2))[0] == 201, 30, "no policy"
    )
    yield
    kept = {key: binding["metadata"][key] for key in ("name", "labels", "annotations")}
    plane.apply([binding | {"metadata": kept}])
    in_force(plane)


@pytest.mark.usefixtures("without_the_policy")
def test_what_slips_through_is_held(plane: ControlPlane, release: Release) -> None:
    """And stays as free as it was once the policy is there: what exists is not judged again."""
    names = {f"bad-{i}": one for i, one in enumerate(REFUSED.values())}
    with Dispatcher(plane, release.account(), "--config", str(release.config())):
        for name, bad in names.items():
            code, answer = submit(plane, wrapper(name, bad.spec, bad.version), "")
            assert code == 201, answer["message"]
        plane.wait_for(lambda: all(backoff(plane, name) for name in names), 30, "all verdicts")
        for name, bad in names.items():
            told = backoff(plane, name)
            assert told["status"] == "True"
            assert told["message"].startswith(f"{bad.field}: "), told["message"]
            assert bad.advice in told["message"]


def backoff(plane: ControlPlane, name: str) -> Json:
    """The condition Backoff of an AppWrapper, {} before there is one."""
    return condition(plane.request("GET", url(name=name))[1], "Backoff")


def test_what_was_there_before_the_policy_goes_on(plane: ControlPlane) -> None:
    """Those that slipped through may be labelled, suspended, finalized and told about."""
    _, listed = plane.request("GET", url())
    found = [one for one in listed["items"] if one["metadata"]["name"].startswith("bad-")]
    assert len(found) == len(REFUSED)
    for one in found:
        path = url(name=one["metadata"]["name"])
        for tail, change in (
            ("", {"metadata": {"labels": {"seen": "yes"}}}),
            ("", {"spec": {"suspend": True}}),
            ("", {"spec": {"priority": 7}}),
            ("/status", {"status": {"message": "still here"}}),
            ("", {"metadata": {"finalizers": ["example.com/mine"]}}),
            ("", {"metadata": {"finalizers": None}}),
        ):
            code, answer = plane.request("PATCH", path + tail, change, content_type=MERGE)
            assert code == 200, answer
        assert plane.request("DELETE", path)[0] == 200


def test_an_edit_of_what_is_wrapped_is_judged(plane: ControlPlane) -> None:
    made = wrapper("edited", item_with(config_map("edited")))
    assert submit(plane, made, "")[0] == 201
    spec = copy.deepcopy(made["spec"])
    spec["resources"]["GenericItems"][0]["generictemplate"]["metadata"]["namespace"] = "kube-system"
    code, answer = plane.request("PATCH", url(name="edited"), {"spec": spec}, content_type=MERGE)
    assert code == 403
    assert ELSEWHERE[0] in answer["message"]
    plane.request("DELETE", url(name="edited"))
