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
from tests.chart.cluster import PULLED_NOWHERE, Release, expression_warnings
from tests.chart.helm import ROOT, Helm
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher
from tests.e2e.support import condition
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
    "items are created in the namespace of their AppWrapper, default, not in kube-system.",
    "items are created in the namespace of their AppWrapper",
)
NESTED = ("an AppWrapper cannot wrap another one; wrap its items.",) * 2

ANY_STEP = "expected '.field' or '[number]' after"
NO_TEMPLATE = "does not lead to a pod template"
NEGATIVE = "replicas of podSets and custompodresources must not be negative."

MALFORMED = {
    **dict.fromkeys(("", "spec.template"), "must start with 'template'"),
    **dict.fromkeys(("template.", "template..spec", "templates.spec", "template.spec["), ANY_STEP),
    **dict.fromkeys(("template.spec[-1]", "template.spec[*].template"), ANY_STEP),
    "template.spec.template]": ANY_STEP,
}
LOST = {
    "template.spec.temple": "there is nothing at 'template.spec.temple' in the template",
    **dict.fromkeys((f"{CONTAINERS}[1]", f"{CONTAINERS}.name"), "there is nothing at"),
    **dict.fromkeys(("template.spec[0]", "template.spec.replicas.x"), "there is nothing at"),
    **dict.fromkeys(("template.metadata", CONTAINERS, f"{CONTAINERS}[0]"), NO_TEMPLATE),
    "template.kind": NO_TEMPLATE,
}
ITEM_OF_V1 = (V1, item_with, f"{ITEM}.generictemplate")
COMPONENT_OF_V2 = (V2, component_with, f"{COMPONENT}.template")

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
        for dialect, holder, field in (ITEM_OF_V1, COMPONENT_OF_V2)
    },
    **{
        f"the path {path!r}": Refused(
            declaring(path), f"the pod set path '{path}{GRAMMAR}", path_of(0), advice
        )
        for path, advice in MALFORMED.items()
    },
    **{
        f"the path {path!r} into nothing": Refused(
            declaring(path),
            f"the pod set path '{path}' leads to no pod template in the wrapped Deployment;",
            path_of(0),
            advice,
        )
        for path, advice in LOST.items()
    },
    "the same path twice": Refused(
        declaring("template.spec.template", "template.spec.template"),
        "the pod set path 'template.spec.template' is given twice; each pod set needs its own path",
        path_of(1),
        "each pod set needs its own path",
    ),
    "negative replicas of a pod set": Refused(
        declaring("template.spec.template", replicas=-1),
        NEGATIVE,
        f"{COMPONENT}.podSets[0].replicas",
        "must not be negative",
    ),
    "negative replicas of custompodresources": Refused(
        item_with(pod("x"), custompodresources=[{"replicas": -1, "requests": {}}]),
        NEGATIVE,
        f"{ITEM}.custompodresources[0].replicas",
        "must not be negative",
        V1,
    ),
}


def of_kind(api_version: str, kind: str, **spec: Any) -> Json:
    """An object of which only its pod sets matter."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def workers(count: int) -> Json:
    """The spec of a Ray cluster with so many groups of workers."""
    spec: Json = group_of_workers(*[{"spec": pod("x")["spec"]}] * count)["spec"]
    return spec


def roles(word: str, *names: str) -> Json:
    """The spec of a training job with these roles."""
    return {f"{word}ReplicaSpecs": {name: {"template": pod("x")} for name in names}}


JOBS = [{"name": f"j{i}"} for i in range(9)]
PYTORCH = of_kind("kubeflow.org/v1", "PyTorchJob", **roles("pytorch", "Master", "Worker"))
TF = of_kind("kubeflow.org/v1", "TFJob", **roles("tf", "Chief", "PS", "Worker", "Evaluator"))
MPI = of_kind("kubeflow.org/v1", "MPIJob", **roles("mpi", "Launcher", "Worker"))
LEADERS = of_kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")


def replicated(count: int) -> Json:
    return of_kind("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=JOBS[:count])


def declared(count: int) -> Json:
    """A component of an unknown kind, with so many pod sets."""
    template = of_kind("example.com/v1", "Gang", parts=[pod("x")] * count)
    paths = [{"path": f"template.spec.parts[{i}]"} for i in range(count)]
    return {"template": template, "podSets": paths}


POD_SETS = {
    8: {
        "Deployments and what has none": [deployment("x")] * 8 + [config_map("x")] * 3,
        "Pods and Jobs": [pod("x")] * 4 + [of_kind("batch/v1", "Job")] * 4,
        "a JobSet": [replicated(8)],
        "a RayCluster": [of_kind("ray.io/v1", "RayCluster", **workers(7))],
        "a RayJob": [of_kind("ray.io/v1", "RayJob", rayClusterSpec=workers(7))],
        "a RayService": [of_kind("ray.io/v1", "RayService", rayClusterConfig=workers(7))],
        "training jobs": [PYTORCH, TF, MPI],
        "LeaderWorkerSets": [LEADERS] * 4,
        "declared ones": [declared(8)],
        "declared ones and a Deployment": [declared(7), deployment("x")],
    },
    9: {
        "Deployments": [deployment("x")] * 9,
        "StatefulSets and a DaemonSet": [of_kind("apps/v1", "StatefulSet")] * 8
        + [of_kind("apps/v1", "DaemonSet")],
        "a JobSet": [replicated(9)],
        "a JobSet of which one is declared": [
            {
                "template": replicated(9),
                "podSets": [{"path": "template.spec.replicatedJobs[0]", "replicas": 1}],
            }
        ],
        "a RayCluster": [of_kind("ray.io/v1", "RayCluster", **workers(8))],
        "a RayJob": [of_kind("ray.io/v1", "RayJob", rayClusterSpec=workers(8))],
        "a RayService": [of_kind("ray.io/v1", "RayService", rayClusterConfig=workers(8))],
        "training jobs": [PYTORCH, TF, MPI, pod("x")],
        "LeaderWorkerSets": [*[LEADERS] * 4, pod("x")],
        "declared ones": [declared(9)],
        "declared ones and a Deployment": [declared(8), deployment("x")],
    },
}
"""Components, or templates of ones, by how many pod sets they have together."""


def components(parts: list[Json]) -> Json:
    return {"components": [one if "template" in one else {"template": one} for one in parts]}


FINE = {
    "nothing with pods in MCAD's dialect": item_with(config_map("x")),
    "an unknown kind": component_with(of_kind("example.com/v1", "Gang")),
    "a Service of another group": component_with(of_kind("serving.knative.dev/v1", "Service")),
    "a CronJob": component_with(of_kind("batch/v1", "CronJob")),
    "many items in MCAD's dialect": {
        "resources": {"GenericItems": [{"generictemplate": pod("x")}] * 9}
    },
    "the head of a RayCluster": component_with(
        group_of_workers(), podSets=[{"path": "template.spec.headGroupSpec.template"}]
    ),
    "a worker of many": component_with(
        group_of_workers(*[{"spec": pod("x")["spec"]}] * 7),
        podSets=[{"path": "template.spec.workerGroupSpecs[6].template", "replicas": 0}],
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


@pytest.mark.parametrize("name", POD_SETS[8])
def test_eight_pod_sets_are_let_in(plane: ControlPlane, name: str) -> None:
    code, answer = submit(plane, wrapper("many", components(POD_SETS[8][name]), V2))
    assert code == 201, answer["message"]


@pytest.mark.parametrize("name", POD_SETS[9])
def test_nine_pod_sets_are_refused(plane: ControlPlane, name: str) -> None:
    for version in (V1, V2):
        code, answer = submit(plane, wrapper("many", components(POD_SETS[9][name]), version))
        assert code == 422
        assert answer["message"].endswith(
            "spec.components has 9 pod sets, and 8 are allowed (maxPodSets of the chart); "
            "use several AppWrappers."
        )


WITHOUT = [
    of_kind(version, kind)
    for version, kind in (
        ("v1", "ConfigMap"),
        ("v1", "Service"),
        ("policy/v1", "PodDisruptionBudget"),
        ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    )
]


@pytest.mark.parametrize("parts", [*([one] for one in WITHOUT), WITHOUT])
def test_what_has_no_pods_at_all_is_refused(plane: ControlPlane, parts: list[Json]) -> None:
    code, answer = submit(plane, wrapper("none", components(parts), V2))
    assert code == 422
    assert "nothing in spec.components has pods" in answer["message"]
    code, answer = submit(plane, wrapper("some", components([*parts, pod("x")]), V2))
    assert code == 201, answer["message"]


@pytest.fixture
def many_pod_sets(plane: ControlPlane, release: Release) -> Iterator[None]:
    """Where the administrator lets in what the dispatcher takes."""
    nine = wrapper("nine", components(POD_SETS[9]["Deployments"]), V2)

    def allow(most: int, code: int) -> None:
        release.upgrade(authorization="none", maxPodSets=most, **PULLED_NOWHERE)
        plane.wait_for(lambda: submit(plane, nine)[0] == code, 30, f"{most} pod sets are allowed")

    allow(MAX_POD_SETS_ALL, 201)
    yield
    allow(8, 422)


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


@pytest.mark.usefixtures("many_pod_sets")
def test_as_many_pod_sets_as_are_dispatched_can_be_judged(plane: ControlPlane) -> None:
    """Within the policy's budget, with long paths; and a wrong one behind all of them is found."""
    groups = 63  # and the head
    one = group_of_workers(*[{"spec": pod("x")["spec"]}] * groups)
    ray_job = {**one, "kind": "RayJob", "spec": {"rayClusterSpec": one["spec"]}}
    where = "template.spec.rayClusterSpec.workerGroupSpecs[{}].template"
    good = {"template": ray_job, "podSets": [{"path": where.format(i)} for i in range(groups)]}
    full = [good] * (MAX_POD_SETS_ALL // (groups + 1))
    assert submit(plane, wrapper("full", {"components": full}, V2))[0] == 201
    bad = good | {"podSets": [*good["podSets"][1:], {"path": where.format(groups)}]}
    code, answer = submit(plane, wrapper("full", {"components": [*full[1:], bad]}, V2))
    assert code == 422
    assert f"'{where.format(groups)}' leads to no pod template" in answer["message"]


def test_what_is_too_much_to_judge_is_not_denied_for_that(plane: ControlPlane) -> None:
    """The dispatcher looks at it; a policy that denied it would deny what is right, too. What can
    be judged is: there are far more pod sets than are allowed."""
    paths = ["template.spec.template", *(f"template.spec.a{i}" for i in range(63))]
    one = declaring(*paths)["components"]
    code, answer = submit(plane, wrapper("too-much", {"components": one * 256}, V2))
    assert code == 422
    assert "has 16384 pod sets" in answer["message"]


def test_the_api_server_finds_no_fault_with_the_expressions(plane: ControlPlane) -> None:
    assert expression_warnings(plane, "mcad-manifests") == []


def test_not_even_an_unknown_key_of_a_template_is_exchanged(plane: ControlPlane) -> None:
    """The CRD's rule does not see it; the policy does."""
    made = wrapper("frozen", components([config_map("frozen"), pod("frozen")]), V2)
    code, answer = submit(plane, made, "")
    assert code == 201, answer
    template = {**config_map("frozen"), "data": None, "binaryData": {"a": "YQ=="}}
    change = {"spec": components([template, pod("frozen")])}
    code, answer = plane.request("PATCH", url(name="frozen"), change, content_type=MERGE)
    assert code == 422
    assert "templates of components cannot be changed" in answer["message"]
    infos = made["spec"]["components"][1] | {"podSetInfos": [{"labels": {"a": "b"}}]}
    change = {"spec": {"components": [made["spec"]["components"][0], infos]}}
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
def test_appwrappers_that_the_policy_did_not_see_are_held(
    plane: ControlPlane, release: Release
) -> None:
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


def test_appwrappers_from_before_the_policy_can_be_edited(plane: ControlPlane) -> None:
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
