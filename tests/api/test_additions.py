"""What the configuration adds to pod templates: never over what a user wrote, and seen by the fit
test."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.api import labels
from mcad.api.appwrapper import Parsed, parse
from mcad.api.catalog import WELL_KNOWN, StaticCatalog
from mcad.api.config import Config, catalog_of
from mcad.api.sources import ConfigError, load
from mcad.core.state.model import Requirement, Toleration
from tests.api.builders import (
    Map,
    config_map,
    container,
    deployment,
    job,
    obj,
    pod,
    pod_spec,
    template,
    v1beta1,
    v1beta2,
)
from tests.api.strategies import JSON, mutated

GPU = "nvidia.com/gpu"
HEALTH = "autopilot.ibm.com/gpuhealth"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NOT_IN = {"key": HEALTH, "operator": "NotIn", "values": ["TESTING", "EVICT"]}
RATHER = {
    "weight": 50,
    "preference": {"matchExpressions": [{"key": HEALTH, "operator": "NotIn", "values": ["WARN"]}]},
}
AVOIDED = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [NOT_IN]}]}, PREFERRED: [RATHER]}


def catalog(*sets: str) -> StaticCatalog:
    return catalog_of(load(sets=sets), WELL_KNOWN)


def parsed(appwrapper: Map, *sets: str) -> Parsed:
    return parse(appwrapper, catalog(*sets), from_json=True)


def made(thing: Map, *sets: str) -> Map:
    """What would be created of an object."""
    found = parsed(v1beta2(thing), *sets)
    assert found.problems == ()
    (manifest,) = found.manifests
    result: Map = json.loads(manifest)
    return result


def gpus(count: Any = 1, key: str = "limits", **spec: Any) -> Map:
    """The pod spec of something that asks for GPUs."""
    return pod_spec({"name": "main", "resources": {key: {GPU: count}}}, **spec)


def gpu_pod(**spec: Any) -> Map:
    return obj("v1", "Pod", "thing", gpus(**spec))


def affinity(thing: Map) -> Any:
    return thing["spec"].get("affinity", {}).get("nodeAffinity")


# -- Autopilot --------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["requests", "limits"])
@pytest.mark.parametrize("count", [1, "8"])
def test_pods_that_ask_for_gpus_are_kept_away_from_nodes_with_unfit_ones(
    key: str, count: Any
) -> None:
    spec = gpus(count, key)
    assert affinity(made(obj("v1", "Pod", "thing", spec))) == AVOIDED
    (placed,) = parsed(v1beta2(obj("v1", "Pod", "thing", spec))).workload.sets
    assert placed.constraint.affinity == ((Requirement(HEALTH, "NotIn", ("TESTING", "EVICT")),),), (
        "the fit test sees it"
    )


def test_init_containers_count() -> None:
    spec = pod_spec(initContainers=[{"name": "i", "resources": {"limits": {GPU: 1}}}])
    assert affinity(made(obj("v1", "Pod", "thing", spec))) == AVOIDED


@pytest.mark.parametrize(
    "thing",
    [
        pod("thing", container("1")),
        gpu_pod(count=0),
        gpu_pod(count="0"),
        config_map(),
        obj(
            "v1",
            "Pod",
            "thing",
            pod_spec({"name": "m", "resources": {"limits": {"amd.com/gpu": 1}}}),
        ),
    ],
)
def test_other_pods_stay_as_they_are(thing: Map) -> None:
    assert made(thing) == thing


def test_every_template_of_a_bundle_that_asks_and_no_other() -> None:
    group: Map = {"rayStartParams": {}}
    cluster = obj(
        "ray.io/v1",
        "RayCluster",
        "ray",
        {
            "headGroupSpec": group | {"template": template()},
            "workerGroupSpecs": [
                group | {"groupName": "a", "template": {"spec": gpus()}},
                group | {"groupName": "b", "template": template()},
            ],
        },
    )
    spec = made(cluster)["spec"]
    assert "affinity" not in spec["headGroupSpec"]["template"]["spec"]
    one, other = spec["workerGroupSpecs"]
    assert affinity(one["template"]) == AVOIDED
    assert "affinity" not in other["template"]["spec"]


OWN = {"key": "zone", "operator": "In", "values": ["a"]}
FIELD = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
TERMS: dict[str, tuple[list[Map], list[Map]]] = {
    "every branch of an OR": (
        [{"matchExpressions": [OWN]}, {"matchExpressions": [OWN, OWN]}],
        [{"matchExpressions": [OWN, NOT_IN]}, {"matchExpressions": [OWN, OWN, NOT_IN]}],
    ),
    "a term of fields": (
        [{"matchFields": [FIELD]}],
        [{"matchFields": [FIELD], "matchExpressions": [NOT_IN]}],
    ),
    "a term that admits no node": ([{}], [{}]),
    "no term at all": ([], []),
    "what says the same": (
        [{"matchExpressions": [NOT_IN | {"values": ["EVICT", "ERR", "TESTING"]}]}],
        [{"matchExpressions": [NOT_IN | {"values": ["EVICT", "ERR", "TESTING"]}]}],
    ),
    "what says less": (
        [{"matchExpressions": [NOT_IN | {"values": ["EVICT"]}]}],
        [{"matchExpressions": [NOT_IN | {"values": ["EVICT"]}, NOT_IN]}],
    ),
}


@pytest.mark.parametrize(("terms", "expected"), TERMS.values(), ids=TERMS.keys())
def test_it_is_added_to_what_the_user_requires(terms: list[Map], expected: list[Map]) -> None:
    own = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}, PREFERRED: [{"weight": 1}]}}
    found = affinity(made(gpu_pod(affinity=own | {"podAffinity": {}})))
    assert found == {REQUIRED: {"nodeSelectorTerms": expected}, PREFERRED: [{"weight": 1}, RATHER]}


def test_what_is_added_can_be_configured_and_switched_off() -> None:
    assert made(gpu_pod(), "autopilot.injectAntiAffinities=false") == gpu_pod()
    assert made(gpu_pod(), "autopilot.resourceTaints={}") == gpu_pod()
    weighed = made(gpu_pod(), "autopilot.preferNoScheduleWeight=7")
    assert affinity(weighed)[PREFERRED][0]["weight"] == 7
    cpus = "autopilot.resourceTaints={cpu: [{key: a.b/c, value: bad, effect: NoExecute}]}"
    assert affinity(made(pod(), cpus)) == {
        REQUIRED: {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "a.b/c", "operator": "NotIn", "values": ["bad"]}]}
            ]
        }
    }
    assert made(gpu_pod(), cpus) == gpu_pod()


def test_only_what_evicts_is_watched_for() -> None:
    assert Config().autopilot.evictions == ((GPU, HEALTH, "EVICT"),)
    assert load(sets=["autopilot.monitorNodes=false"]).autopilot.evictions == ()


# -- inject and schedulerName -----------------------------------------------------------------

TAINTED = {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}
INJECT = (
    "inject={labels: {team: research}, annotations: {example.com/a: b}, "
    "nodeSelector: {pool: batch}, "
    "tolerations: [{key: dedicated, operator: Exists, effect: NoSchedule}], "
    "schedulingGates: [{name: example.com/gate}]}"
)


def test_everything_is_put_into_every_template() -> None:
    spec = made(deployment(), INJECT)["spec"]["template"]
    assert spec["metadata"] == {
        "labels": {"team": "research"},
        "annotations": {"example.com/a": "b"},
    }
    assert spec["spec"] == pod_spec(
        nodeSelector={"pool": "batch"},
        tolerations=[TAINTED],
        schedulingGates=[{"name": "example.com/gate"}],
    )
    (placed,) = parsed(v1beta1(deployment()), INJECT).workload.sets
    assert placed.constraint.selector == (("pool", "batch"),)
    assert placed.constraint.tolerations == (Toleration("dedicated", "Exists", "", "NoSchedule"),)


def test_templates_of_unknown_kinds_and_of_declared_sets() -> None:
    thing = obj("ray.io/v1", "RayService", "thing", {"more": {"template": template()}})
    found = made(thing, "inject.nodeSelector={pool: batch}")
    assert found["spec"]["more"]["template"]["spec"]["nodeSelector"] == {"pool": "batch"}
    declared = {"template": job(), "podSets": [{"path": "template.spec.template", "replicas": 1}]}
    (manifest,) = parsed(v1beta2(declared), "inject.nodeSelector={pool: batch}").manifests
    assert json.loads(manifest)["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "batch"}


def test_what_has_no_pods_stays_as_it_is() -> None:
    one = obj("v1", "PodTemplate") | {"template": template()}
    allowed = "wrappedResources=[{apiGroup: '', resources: [podtemplates, configmaps]}]"
    assert made({"template": one}, INJECT, allowed) == one
    assert made(config_map(), INJECT) == config_map()


def test_what_the_user_wrote_stays_and_is_not_doubled() -> None:
    own = template(
        labels={"team": "research", "app": "x"},
        nodeSelector={"pool": "batch", "zone": "a"},
        tolerations=[{"key": "mine"}],
        schedulingGates=[{"name": "example.com/gate"}],
    )
    found = made(obj("batch/v1", "Job", "thing", {"template": own}), INJECT)["spec"]["template"]
    assert found["metadata"]["labels"] == {"team": "research", "app": "x"}
    assert found["spec"]["nodeSelector"] == {"pool": "batch", "zone": "a"}
    assert found["spec"]["schedulingGates"] == [{"name": "example.com/gate"}]
    assert found["spec"]["tolerations"] == [{"key": "mine"}, TAINTED]


@pytest.mark.parametrize(
    ("own", "path"),
    [
        (template(labels={"team": "sales"}), "metadata.labels.team"),
        (template(nodeSelector={"pool": "other"}), "spec.nodeSelector.pool"),
        (
            template() | {"metadata": {"annotations": {"example.com/a": "c"}}},
            "metadata.annotations.example.com/a",
        ),
    ],
)
def test_a_contradiction_is_refused_and_names_the_setting(own: Map, path: str) -> None:
    for appwrapper, base in (
        (v1beta1, "spec.resources.GenericItems[0].generictemplate"),
        (v1beta2, "spec.components[0].template"),
    ):
        thing = appwrapper(obj("batch/v1", "Job", "thing", {"template": own}))
        (problem,) = parsed(thing, INJECT).problems
        assert problem.field == f"{base}.spec.template.{path}"
        field = path.split(".")[1]
        assert f"pod (inject.{field}); remove it, or ask an administrator." in problem.message


def test_a_quota_system_is_contradicted_as_well() -> None:
    component = {"template": pod(), "podSetInfos": [{"nodeSelector": {"pool": "other"}}]}
    (problem,) = parsed(v1beta2(component), INJECT).problems
    assert problem.field == "spec.components[0].template.spec.nodeSelector.pool"


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        ({"spec": pod_spec(nodeSelector="x")}, "spec.nodeSelector"),
        ({"spec": pod_spec(tolerations={})}, "spec.tolerations"),
        ({"spec": pod_spec(), "metadata": []}, "metadata"),
        ({"spec": pod_spec(), "metadata": {"labels": []}}, "metadata.labels"),
    ],
)
def test_malformed_fields_are_reported_and_not_replaced(broken: Map, path: str) -> None:
    thing = v1beta2(obj("batch/v1", "Job", "thing", {"template": broken}))
    problems = parsed(thing, INJECT).problems
    assert f"spec.components[0].template.spec.template.{path}" in [one.field for one in problems]
    infos = {"template": thing["spec"]["components"][0]["template"]}
    infos["podSetInfos"] = [{"labels": {"a": "b"}, "nodeSelector": {"a": "b"}}]
    told = [one.field for one in parsed(v1beta2(infos)).problems]
    assert path == "spec.tolerations" or told, "nor by a quota system"


@pytest.mark.parametrize("given", [None, ""])
def test_a_scheduler_for_templates_that_name_none(given: Any) -> None:
    blank = {} if given is None else {"schedulerName": given}
    found = made(pod("thing", **blank), "schedulerName=coscheduler")
    assert found["spec"]["schedulerName"] == "coscheduler"
    own = made(pod("thing", schedulerName="mine"), "schedulerName=coscheduler")
    assert own["spec"]["schedulerName"] == "mine"


ORIGINALS = [
    v1beta2(gpu_pod(affinity={"nodeAffinity": AVOIDED})),
    v1beta1(obj("batch/v1", "Job", "thing", {"template": template(labels={"a": "b"})})),
]
EVERYTHING = catalog(INJECT, "schedulerName=other")


@given(mutated(ORIGINALS) | st.builds(lambda spec: v1beta2(obj("v1", "Pod", "x", spec)), JSON))
def test_no_manifest_raises_and_none_is_changed_in_place(appwrapper: Any) -> None:
    before = copy.deepcopy(appwrapper)
    parse(appwrapper, EVERYTHING)
    assert repr(appwrapper) == repr(before)


@given(mutated(ORIGINALS))
def test_all_values_of_the_manifest_are_still_there(appwrapper: Any) -> None:
    """Every value of the manifest, wherever an addition went."""
    found = parse(appwrapper, EVERYTHING)
    if found.problems:
        return
    spec = appwrapper["spec"]
    for entry, manifest in zip(
        spec.get("components") or spec["resources"]["GenericItems"], found.manifests, strict=True
    ):
        assert contains(json.loads(manifest), entry.get("template") or entry["generictemplate"])


def contains(more: Any, less: Any) -> bool:
    """Whether all of a value is in another one; lists may be longer at their end."""
    if less is None:
        return True  # absent
    if isinstance(less, dict):
        return isinstance(more, dict) and all(contains(more.get(key), less[key]) for key in less)
    if isinstance(less, list):
        return (
            isinstance(more, list)
            and all(map(contains, more[: len(less)], less))
            and len(more) >= len(less)
        )
    return bool(more == less) or (less == "" and bool(more))


# -- the configuration ------------------------------------------------------------------------

WRONG = {
    f"inject={{labels: {{{labels.ITEM}: a}}}}": f"{labels.ITEM} is set by the dispatcher itself",
    "inject={labels: {-a: b}}": "inject.labels: '-a' is not a key like team or example.com/team.",
    "inject={nodeSelector: {a: b c}}": "inject.nodeSelector: 'b c' is not a valid label value",
    "inject={annotations: {a b: c}}": "inject.annotations: 'a b' is not a key",
    "inject={labels: {a: 1}}": "inject.labels.a: must be a string, not 1.",
    "inject={tolerations: [{key: a, operator: In}]}": "'In' is not an operator: use Equal",
    "inject={tolerations: [{key: a, effect: no}]}": "inject.tolerations.0.effect:",
    "inject={tolerations: [{keys: a}]}": "inject.tolerations.0.keys: is unknown.",
    "inject={schedulingGates: [{name: a b}]}": "inject.schedulingGates.0.name: 'a b' is not a key",
    "schedulerName=a b": "schedulerName: 'a b' is not the name of a scheduler; \"\" names none.",
    "autopilot={preferNoScheduleWeight: 0}": "preferNoScheduleWeight: must be at least 1, not 0.",
    "autopilot={resourceTaints: {gpu: [{key: a, value: b, effect: Evict}]}}": "effect: must be "
    "'NoSchedule', 'NoExecute' or 'PreferNoSchedule', not the string 'Evict'.",
    "autopilot={resourceTaints: {gpu: [{key: a b, value: b, effect: NoExecute}]}}": "'a b' is not",
    "autopilot={slackQueueName: a}": "autopilot.slackQueueName: is unknown.",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_a_wrong_configuration_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(sets=[text])
    assert message in str(caught.value)


def test_it_can_be_written_down_and_read_again() -> None:
    config = load(sets=[INJECT, "autopilot.monitorNodes=false", "schedulerName=x"])
    assert Config.model_validate(config.model_dump(mode="json", by_alias=True)) == config
