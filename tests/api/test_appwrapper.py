"""Both dialects, and every fault with the field and what to do about it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from mcad.api import labels
from mcad.api.appwrapper import MAX_PAYLOAD, parse
from mcad.api.catalog import StaticCatalog
from mcad.api.models import MAX_ITEMS
from mcad.core.state.model import Cascade, Dialect, Item, ObjectRef, Problem
from mcad.core.state.waiting_reason import WaitingReason
from tests.api.builders import (
    CATALOG,
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
    read,
    template,
    v1beta1,
    v1beta2,
    wrapper,
)

ITEMS = "spec.resources.GenericItems"
ITEM = f"{ITEMS}[0]"
T = f"{ITEM}.generictemplate"


def tutorial(name: str, replicas: int, cpu: str, **spec: Any) -> Map:
    """The manifests of MCAD's tutorial."""
    tags = {"app": name}
    limits = {
        "requests": {"cpu": cpu, "memory": "256Mi"},
        "limits": {"cpu": cpu, "memory": "256Mi"},
    }
    main = {"name": name, "image": "kicbase/echo-server:1.0", "resources": limits}
    inner = {"metadata": {"labels": tags}, "spec": {"containers": [main]}}
    outer = {"selector": {"matchLabels": tags}, "replicas": replicas, "template": inner}
    thing = obj("apps/v1", "Deployment", name, outer)
    thing["metadata"]["labels"] = tags
    return v1beta1(generic(thing, replicas=1), **spec)


def test_the_tutorials_manifest() -> None:
    work = accepted(tutorial("aw-1", 2, "75m", schedulingSpec={"minAvailable": 2})).workload
    assert (work.uid, work.namespace, work.name, work.generation) == ("0b1e", "team", "aw", 3)
    assert work.dialect is Dialect.V1BETA1
    assert work.created == 1_689_938_307_000_000
    assert work.min_available == 2
    assert work.items == (
        Item(ObjectRef("apps", "v1", "deployments", "Deployment", "team", "aw-1")),
    )
    (one,) = work.sets
    assert (one.path, one.replicas) == ("template.spec.template", 2)
    assert one.request == (("cpu", 75), ("memory", 256 << 20), ("pods", 1))
    assert work.warnings == ()


def test_components() -> None:
    work = accepted(v1beta2(pod("a"), deployment("b", 3))).workload
    assert work.dialect is Dialect.V1BETA2
    assert [(item.ref.kind, item.ref.name) for item in work.items] == [
        ("Pod", "a"),
        ("Deployment", "b"),
    ]
    assert [(one.item, one.index, one.replicas) for one in work.sets] == [(0, 0, 1), (1, 0, 3)]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_the_dialect_follows_from_the_shape_not_from_the_api_version(version: str) -> None:
    components = wrapper({"components": [{"template": pod()}]}, version)
    assert accepted(components).workload.dialect is Dialect.V1BETA2
    resources = wrapper({"resources": {"GenericItems": [generic(pod())]}}, version)
    assert accepted(resources).workload.dialect is Dialect.V1BETA1


def test_manifests_are_what_the_user_wrote() -> None:
    thing = deployment()
    (manifest,) = accepted(v1beta1(thing)).manifests
    assert json.loads(manifest) == thing
    assert b" " not in manifest


def test_the_payload_does_not_depend_on_the_order_of_keys() -> None:
    def turn(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turn(value[key]) for key in reversed(value)}
        return [turn(one) for one in value] if isinstance(value, list) else value

    plain, turned = v1beta1(deployment()), v1beta1(turn(deployment()))
    assert accepted(plain).workload == accepted(turned).workload


def test_the_payload_covers_what_is_created_and_nothing_else() -> None:
    base = accepted(v1beta1(deployment())).workload.payload
    assert accepted(v1beta1(deployment(), priority=5)).workload.payload == base
    assert accepted(v1beta1(deployment(replicas=3))).workload.payload != base
    assert accepted(v1beta1(deployment(), config_map())).workload.payload != base


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        ({"priority": 5}, "priority", 5),
        ({"priority": -5}, "priority", -5),
        ({"priority": 5.0}, "priority", 5),
        ({"priority": None}, "priority", 0),
        ({"priorityslope": 0.25}, "slope", 250_000),
        ({"priorityslope": 1e-6}, "slope", 1),
        ({"priorityslope": 2}, "slope", 2_000_000),
        ({"suspend": True}, "suspended", True),
        ({"suspend": False}, "suspended", False),
        ({"managedBy": "kueue.x-k8s.io/multikueue"}, "managed", False),
        ({"managedBy": "workload.codeflare.dev/appwrapper-controller"}, "managed", True),
        ({"managedBy": None}, "managed", True),
        ({"schedulingSpec": {}}, "min_available", 0),
        ({"schedulingSpec": {"requeuing": {"timeInSeconds": 5}}}, "min_available", 0),
    ],
)
def test_fields_of_the_spec(spec: Map, field: str, value: Any) -> None:
    assert getattr(accepted(v1beta1(pod(), **spec)).workload, field) == value


def test_what_claims_an_appwrapper_counts_even_if_the_rest_is_wrong() -> None:
    assert not read(wrapper({"managedBy": "x", "resources": 7})).workload.managed


def test_completion_words() -> None:
    item = generic(job(), completionstatus="Complete, Failed,,complete")
    assert accepted(v1beta1(item)).workload.items[0].completion == ("complete", "failed")


def test_a_deleted_appwrapper() -> None:
    aw = v1beta1(pod())
    aw["metadata"]["deletionTimestamp"] = "2023-07-21T11:18:27Z"
    assert accepted(aw).workload.deleting


@pytest.mark.parametrize(
    ("finalizers", "cascade"),
    [
        (None, Cascade.BACKGROUND),
        (["example.com/mine"], Cascade.BACKGROUND),
        (["example.com/mine", "foregroundDeletion"], Cascade.FOREGROUND),
        (["orphan"], Cascade.ORPHAN),
    ],
)
def test_what_its_deletion_does_to_its_objects(finalizers: Any, cascade: Cascade) -> None:
    aw = v1beta1(pod())
    aw["metadata"]["finalizers"] = finalizers
    assert accepted(aw).workload.cascade is cascade


@pytest.mark.parametrize(
    ("labels", "granted", "may_start"),
    [
        ({}, None, True),
        ({}, "another", True),
        ({"workload.codeflare.dev/hub": "east"}, None, False),
        ({"workload.codeflare.dev/hub": "east"}, "another", False),
        ({"workload.codeflare.dev/hub": "east"}, "its own", True),
    ],
)
def test_a_copy_starts_if_it_is_granted(labels: Any, granted: str | None, may_start: bool) -> None:
    aw = v1beta1(pod())
    uid = aw["metadata"]["uid"] if granted == "its own" else granted
    aw["metadata"] |= {"labels": labels, "annotations": {"workload.codeflare.dev/granted": uid}}
    assert accepted(aw).workload.granted is may_start


@pytest.mark.parametrize(
    ("finalizers", "keeper"),
    [
        (["foregroundDeletion"], ""),
        (["workload.codeflare.dev/finalizer"], ""),
        (["example.com/mine", "orphan"], ""),
        (["foregroundDeletion", "example.com/mine", "example.com/other"], "example.com/mine"),
    ],
)
def test_what_keeps_it_after_its_deletion(finalizers: list[str], keeper: str) -> None:
    aw = v1beta1(pod())
    aw["metadata"]["finalizers"] = finalizers
    assert accepted(aw).workload.kept_by == ""
    aw["metadata"]["deletionTimestamp"] = "2023-07-21T11:18:27Z"
    assert accepted(aw).workload.kept_by == keeper


def test_a_generated_name_stays_the_same_for_ever() -> None:
    thing = pod()
    thing["metadata"] = {"generateName": "worker-"}
    first, second = accepted(v1beta1(thing, config_map())), accepted(v1beta1(thing, pod("b")))
    name = first.workload.items[0].ref.name
    assert name == second.workload.items[0].ref.name
    assert name.startswith("worker-")
    assert len(name) == len("worker-") + 10
    other = v1beta1(thing)
    other["metadata"]["uid"] = "0b1f"
    assert accepted(other).workload.items[0].ref.name != name


def test_generated_names_differ_between_items_and_fit_into_a_label() -> None:
    thing = pod()
    thing["metadata"] = {"generateName": "w" * 80}
    items = accepted(v1beta1(thing, thing)).workload.items
    assert len({item.ref.name for item in items}) == 2
    assert max(len(item.ref.name) for item in items) == 63


# What old manifests carry


def test_leftovers_of_old_manifests_are_answered_with_warnings() -> None:
    aw = v1beta1(generic(pod(), metadata={}), service={"spec": {}}, selector={"a": "b"})
    aw["spec"]["resources"]["Items"] = []
    aw["spec"]["schedSpec"] = {"minAvailable": 2}
    window, clusters = {"start": {}}, {"clusters": [{"name": "a"}]}
    aw["spec"]["schedulingSpec"] = {
        "nodeSelector": {"a": "b"},
        "clusterScheduling": clusters,
        "dispatchingWindow": window,
    }
    fields = [warning.partition(":")[0] for warning in accepted(aw).workload.warnings]
    assert fields == [
        "spec.resources.Items",
        f"{ITEM}.metadata",
        "spec.service",
        "spec.selector",
        "spec.schedSpec",
        "spec.schedulingSpec.nodeSelector",
        "spec.schedulingSpec.clusterScheduling",
        "spec.schedulingSpec.dispatchingWindow",
    ]


def test_unknown_fields_are_answered_with_warnings() -> None:
    aw = v1beta1(generic(pod(), replica=2), prioritty=3)
    assert accepted(aw).workload.warnings == (
        "spec.prioritty: unknown field, ignored.",
        f"{ITEM}.replica: unknown field, ignored.",
    )


def test_ignored_fields_of_an_item() -> None:
    numbers = {
        "replicas": 7,
        "minavailable": 1,
        "allocated": 0,
        "priority": 1.5,
        "priorityslope": 0.5,
    }
    assert accepted(v1beta1(generic(pod(), **numbers))).workload.sets[0].replicas == 1


# Faults


def meta(thing: Map, **more: Any) -> Map:
    return thing | {"metadata": thing["metadata"] | more}


def without(thing: Map, key: str) -> Map:
    return {name: value for name, value in thing.items() if name != key}


def nested(levels: int) -> Map:
    deep: Map = {}
    for _ in range(levels):
        deep = {"a": deep}
    return deep


def with_resources(resources: Any) -> Map:
    return deployment("thing", 2, {"name": "main", "resources": resources})


P = f"{T}.spec.template.spec"
R = f"{P}.containers[0].resources"


def items(**spec: Any) -> Map:
    return {"resources": {"GenericItems": [generic(pod())]}} | spec


def declaring(thing: Map, **entry: Any) -> Map:
    return generic(thing, custompodresources=[entry])


def pods_of(spec: Map) -> Map:
    return obj("apps/v1", "Deployment", spec={"template": {"spec": spec}})


OURS = {"metadata": {"labels": {labels.PODSET: "0.0"}}, "spec": pod_spec()}

FAULTS: list[tuple[str, Any]] = [
    ("spec: must be a map, not null", None),
    ("spec: must be a map, not a list", []),
    ("spec: has neither resources nor components", {}),
    ("spec: has both resources and components", items(components=[])),
    (f"{ITEMS}: is empty", {"resources": {"GenericItems": []}}),
    (f"{ITEMS}: is empty", {"resources": {"Items": [{}]}}),
    ("spec.components: is empty", {"components": []}),
    (
        f"{ITEMS}: has 257 entries; 256 are",
        {"resources": {"GenericItems": [generic(config_map())] * (MAX_ITEMS + 1)}},
    ),
    (f"{ITEMS}: must be a list, not a", {"resources": {"GenericItems": {}}}),
    (f"{ITEM}: must be a map, not the string 'x'", {"resources": {"GenericItems": ["x"]}}),
    (f"{T}: is required: put the object to create here", generic(None)),
    ("spec.components[0].template: is required", {"components": [{}]}),
    (f"{T}: must be a map, not the string 'x'", generic("x")),
    (f"{T}.apiVersion: must be like v1 or apps/v1", without(pod(), "apiVersion")),
    (f"{T}.apiVersion: must be like v1 or apps/v1", obj("a/b/c", "Pod")),
    (f"{T}.kind: is required", without(pod(), "kind")),
    (f"{T}.metadata.name: is required", without(pod(), "metadata")),
    (f"{T}.metadata: must be a map, not a list", pod() | {"metadata": []}),
    (f"{T}.metadata.name: is required", meta(pod(), name="")),
    (f"{T}.metadata.name: must be a string, not 5;", meta(pod(), name=5)),
    (f"{T}.metadata.name: 'Thing' is not a DNS name", pod("Thing")),
    (f"{T}.metadata.name: 'a.' is not a DNS name", pod("a.")),
    (f"{T}.metadata.name: 'a\\n' is not a DNS name", pod("a\n")),
    (f"{T}.metadata.name: has 254 characters; 253 are", pod("a" * 254)),
    (f"{T}.metadata.generateName: 'Thing-", pod() | {"metadata": {"generateName": "Thing-"}}),
    (f"{T}.metadata.namespace: must be absent or 'team'", meta(pod(), namespace="other")),
    (f"{T}.metadata.ownerReferences: must be absent", meta(pod(), ownerReferences=[{}])),
    (f"{T}.metadata.finalizers: must be absent", meta(pod(), finalizers=["a/b"])),
    (f"{T}.metadata.labels.a: must be a string, not 5; quote it", meta(pod(), labels={"a": 5})),
    (f"{T}.metadata.labels: must be a map", meta(pod(), labels=[])),
    (
        f"{T}.metadata.labels.{labels.APPWRAPPER}: is set by the dispatcher; remove it",
        meta(pod(), labels={labels.APPWRAPPER: "other"}),
    ),
    (
        f"{T}.spec.template.metadata.labels.{labels.PODSET}: is set by the dispatcher; remove it",
        obj("apps/v1", "Deployment", spec={"template": OURS}),
    ),
    (f"{T}.kind: Namespace is cluster-scoped", obj("v1", "Namespace")),
    (
        f"{T}.kind: an AppWrapper cannot wrap another one",
        obj("workload.codeflare.dev/v1beta1", "AppWrapper"),
    ),
    (f"{R}.requests.cpu: '100q' is not a quantity", with_resources({"requests": {"cpu": "100q"}})),
    (f"{R}.requests.cpu: a list is not a quantity", with_resources({"requests": {"cpu": []}})),
    (f"{R}.requests.memory: '-1Gi' is negative", with_resources({"requests": {"memory": "-1Gi"}})),
    (f"{R}.limits.cpu: true is not a quantity", with_resources({"limits": {"cpu": True}})),
    (f"{R}.requests: must be a map of quantities", with_resources({"requests": ["cpu"]})),
    (f"{R}: must be a map", with_resources("1")),
    (f"{P}.containers[0]: must be a container", pods_of({"containers": ["x"]})),
    (f"{P}.containers: must be a list", pods_of({"containers": {"a": {}}})),
    (
        f"{P}.nodeSelector.a: must be a string, not 1; quote it",
        pods_of(pod_spec(nodeSelector={"a": 1})),
    ),
    (f"{P}.tolerations: must be a list", pods_of(pod_spec(tolerations={}))),
    (f"{T}.spec: must be a pod spec, not null", obj("v1", "Pod")),
    (f"{T}.spec.replicas: must not be negative", deployment(replicas=-1)),
    (f"{T}.spec.replicas: is 2000000; at most 1000000 is allowed", deployment(replicas=2_000_000)),
    (f"{T}.spec.replicas: must be a whole number", deployment(replicas="2")),
    (f"{T}.spec.parallelism: must not be negative", job(parallelism=-1)),
    (f"{ITEM}.custompodresources[0].replicas: is required", declaring(config_map(), requests={})),
    (f"{ITEM}.custompodresources[0].requests: is required", declaring(config_map(), replicas=1)),
    (
        f"{ITEM}.custompodresources[0].requests.cpu: 'x' is not a quantity",
        declaring(deployment(), replicas=1, requests={"cpu": "x"}),
    ),
    (
        f"{ITEM}.custompodresources[0].replicas: must not be negative",
        declaring(deployment(), replicas=-1, requests={}),
    ),
    (
        "spec.schedulingSpec.minAvailable: must not be negative",
        items(schedulingSpec={"minAvailable": -1}),
    ),
    ("spec.priority: must be a whole number, not the string 'high'", items(priority="high")),
    ("spec.priority: must be a whole number, not 1.5", items(priority=1.5)),
    ("spec.priority: must be within", items(priority=2**40)),
    ("spec.priorityslope: must be a number within", items(priorityslope=float("inf"))),
    (
        "spec.components[0].podSets[0].replicas: must not be negative",
        {"components": [{"template": pod(), "podSets": [{"path": "template", "replicas": -2}]}]},
    ),
    (
        "spec.components[0].podSets[0].path: is required",
        {"components": [{"template": pod(), "podSets": [{}]}]},
    ),
    (
        f"{T}: holds a value that JSON cannot express",
        config_map() | {"data": {"when": float("nan")}},
    ),
    (
        f"{ITEMS}[2].generictemplate: Pod 'a' is wrapped twice, first in {T}",
        {"resources": {"GenericItems": [generic(pod("a")), generic(config_map("a"))] * 2}},
    ),
    ("spec: is nested too deeply", config_map() | {"data": nested(5000)}),
    (f"{T}: is nested too deeply; 200", config_map() | {"data": nested(250)}),
]


def as_wrapper(given: Any) -> Map:
    """A complete spec, an item, or the object of one."""
    if not isinstance(given, dict) or given.keys() & {"resources", "components"} or not given:
        return wrapper(given)
    return v1beta1(given)


@pytest.mark.parametrize(("message", "given"), FAULTS)
def test_a_fault_names_the_field_and_what_to_do(message: str, given: Any) -> None:
    problem = read(as_wrapper(given)).workload.problem
    assert problem.kind is WaitingReason.INVALID
    assert f"{problem.field}: {problem.message}".startswith(message)
    assert problem.message.endswith(".")
    assert "\n" not in problem.message


def test_limits_below_requests_are_the_api_servers_affair() -> None:
    accepted(v1beta1(with_resources({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})))


def test_a_declared_demand_makes_the_template_the_operators_affair() -> None:
    thing = obj("example.com/v1", "Widget", spec=pod_spec(container("{{ inputs.cpu }}")))
    entry = {"replicas": 1, "requests": {"cpu": 1}}
    accepted(v1beta1(generic(thing, custompodresources=[entry])))


def test_what_makes_no_pods_holds_no_room() -> None:
    """Who may create ConfigMaps only could otherwise keep a cluster empty by declaring pods."""
    entry = {"replicas": 1000, "requests": {"cpu": 7}}
    work = accepted(v1beta1(generic(config_map(), custompodresources=[entry]))).workload
    assert work.sets == ()
    assert work.warnings == (
        "spec.resources.GenericItems[0].custompodresources: ignored; a ConfigMap has no pods.",
    )
    holder = obj("v1", "PodTemplate") | {"template": template()}
    declared = [{"path": "template.template", "replicas": 7}]
    work = accepted(v1beta2({"template": holder, "podSets": declared})).workload
    assert work.sets == ()
    assert work.warnings == ("spec.components[0].podSets: ignored; a PodTemplate has no pods.",)


def test_a_kind_that_may_not_be_wrapped() -> None:
    catalog = StaticCatalog.of(CATALOG.installed.values(), [("", "pods")])
    problem = parse(v1beta1(deployment()), catalog).workload.problem
    assert problem == Problem(
        WaitingReason.NOT_WRAPPED,
        f"{T}.kind",
        "deployments.apps may not be wrapped; an administrator can allow it with the chart's value "
        'wrappedResources: {apiGroup: "apps", resources: {deployments: Deployment}}.',
    )


def test_a_namespace_that_is_not_served() -> None:
    catalog = StaticCatalog.of(CATALOG.installed.values(), CATALOG.allowed, ["kube-system"])
    obj = v1beta1(deployment())
    assert parse(obj, catalog).workload.problem is None
    obj["metadata"]["namespace"] = "kube-system"
    assert parse(obj, catalog).workload.problem == Problem(
        WaitingReason.NOT_SERVED,
        "metadata.namespace",
        "AppWrappers are not served in kube-system; an administrator can remove it from "
        "excludedNamespaces.",
    )


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        ("acme.io/v1 Rocket", "install its CRD, or correct apiVersion and kind"),
        ("sparkoperator.k8s.io/v9 SparkApplication", "install its CRD"),
        (
            "apps/v1beta1 Deployment",
            "correct apiVersion and kind, or enable this API in Kubernetes",
        ),
        ("scheduling.k8s.io/v1alpha9 PodGroup", "correct apiVersion and kind, or enable this API"),
        ("v2 Pod", "correct apiVersion and kind, or enable this API"),
    ],
)
def test_a_kind_or_a_version_that_is_not_installed(version: str, remedy: str) -> None:
    problem = read(v1beta1(obj(*version.split()))).workload.problem
    assert (problem.kind, problem.field) == (WaitingReason.NOT_INSTALLED, f"{T}.kind")
    assert f"{version} is not installed" in problem.message
    assert f"in the cluster; {remedy}" in problem.message


def test_too_large_a_payload() -> None:
    big = config_map() | {"data": {"a": "x" * MAX_PAYLOAD}}
    problem = read(v1beta1(big)).workload.problem
    assert "Split the AppWrapper" in problem.message


def test_too_many_pod_sets() -> None:
    job_set = {"replicatedJobs": [{"template": {"spec": {"template": {"spec": pod_spec()}}}}] * 130}
    things = [obj("jobset.x-k8s.io/v1alpha2", "JobSet", f"j{i}", job_set) for i in range(4)]
    problem = read(v1beta1(*things)).workload.problem
    assert "520 pod sets; 512 are allowed" in problem.message


def test_all_faults_are_found_and_the_first_one_is_the_problem() -> None:
    aw = v1beta1(pod("Bad"), deployment("b", -1), schedulingSpec={"minAvailable": -1})
    parsed = read(aw)
    assert [problem.field for problem in parsed.problems] == [
        "spec.schedulingSpec.minAvailable",
        f"{T}.metadata.name",
        "spec.resources.GenericItems[1].generictemplate.spec.replicas",
    ]
    assert parsed.workload.problem == parsed.problems[0]


def test_items_with_a_fault_keep_their_numbers() -> None:
    """One that cannot be named takes all others out, or numbers would not agree with the spec."""
    unnamed, faulty = (
        read(v1beta1(pod("a"), pod("Bad"))),
        read(v1beta1(pod("a"), deployment("b", -1))),
    )
    assert unnamed.workload.items == ()
    assert [item.ref.name for item in faulty.workload.items] == ["a", "b"]
    assert len(faulty.manifests) == 2


def test_an_appwrapper_out_of_a_file() -> None:
    aw = v1beta1(pod())
    aw["metadata"] = {"name": "aw"}
    work = accepted(aw).workload
    assert (work.uid, work.namespace, work.created) == ("", "default", 0)


def test_an_appwrapper_without_a_name() -> None:
    problem = read({"spec": {"components": [{"template": pod()}]}}).workload.problem
    assert problem.field == "metadata.name"


# -- a record of another object ------------------------------------------------------------------

RECORD = {"attempt": 1, "phase": "dispatched", "inventory": []}
AFTER, BEFORE = "2023-07-21T11:18:27.5Z", "2023-07-20T11:18:27.5Z"
RECORDS: dict[str, tuple[Map, bool]] = {
    "its own": ({"uid": "0b1e", "intentTime": AFTER}, True),
    "its own, by a wrong clock": ({"uid": "0b1e", "intentTime": BEFORE}, True),
    "a restored backup": ({"uid": "ffff", "intentTime": BEFORE}, False),
    "copied into a new object": ({"uid": "ffff", "intentTime": AFTER}, False),
    "an older version": ({"intentTime": AFTER}, True),
    "an older version, a restored backup": ({"intentTime": BEFORE}, False),
    "of a later version, a restored backup": ({"uid": "ffff", "format": 9}, False),
}


@pytest.mark.parametrize("state", ["Running", "Completed", "Failed"])
@pytest.mark.parametrize(("record", "own"), RECORDS.values(), ids=RECORDS.keys())
def test_the_status_of_another_object_is_ignored(record: Map, own: bool, state: str) -> None:
    """Else it would be finished without having run, or count as running without an object."""
    status = {"state": state, "controllerfirsttimestamp": BEFORE, "dispatch": RECORD | record}
    saved = accepted(v1beta1(pod()) | {"status": status}).workload.persisted
    assert (saved is not None) is own
    if saved is not None:
        assert (saved.state, saved.dispatch is not None) == (state, True)


# -- what must not be evicted -------------------------------------------------------------------

NEVER_PREEMPT = "workload.codeflare.dev/never-preempt"
PERMITTED: dict[str, tuple[Any, set[str], bool, str]] = {
    "nothing said": ({}, {"*"}, False, ""),
    "false": ({NEVER_PREEMPT: "false"}, set(), False, ""),
    "permitted": ({NEVER_PREEMPT: "true"}, {"other", "team"}, True, ""),
    "permitted everywhere": ({NEVER_PREEMPT: "true"}, {"*"}, True, ""),
    "not permitted": (
        {NEVER_PREEMPT: "true"},
        {"other"},
        False,
        "has no effect in namespace team; an administrator can add it to neverPreempt.",
    ),
    "neither": (
        {NEVER_PREEMPT: "yes"},
        {"*"},
        False,
        'must be "true" or "false", not the string \'yes\'; ignored.',
    ),
}


@pytest.mark.parametrize("dialect", [v1beta1, v1beta2])
@pytest.mark.parametrize(
    ("annotations", "permitted", "never", "warning"), PERMITTED.values(), ids=PERMITTED.keys()
)
def test_an_annotation_keeps_it_from_being_evicted_where_that_is_permitted(
    annotations: Any, permitted: set[str], never: bool, warning: str, dialect: Any
) -> None:
    """Whoever may set it keeps room for good."""
    manifest = dialect(pod())
    manifest["metadata"]["annotations"] = annotations
    work = parse(manifest, replace(CATALOG, never_preempt=frozenset(permitted))).workload
    assert work.never_preempted is never
    expected = (f"metadata.annotations.{NEVER_PREEMPT}: {warning}",) if warning else ()
    assert work.warnings == expected
    assert work.problem is None
