"""What the API server adds to pods: defaults of LimitRanges, and what RuntimeClasses say."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mcad.api.appwrapper import Parsed
from mcad.api.defaults import PodDefaults, read_limit_range, read_priority_class, read_runtime_class
from mcad.core.state.model import Constraint, PodSet, Toleration
from mcad.core.state.waiting_reason import WaitingReason
from tests.api.builders import (
    CATALOG,
    Gi,
    Mi,
    accepted,
    config_map,
    container,
    deployment,
    generic,
    job,
    obj,
    parse,
    pod,
    template,
    v1beta1,
    v1beta2,
)

BARE = {"name": "main", "image": "busybox"}


def limit_range(*limits: dict[str, Any]) -> dict[str, Any]:
    return obj("v1", "LimitRange", "limits", {"limits": list(limits)})


def container_limit(**said: Any) -> dict[str, Any]:
    return {"type": "Container"} | said


def admitted(parsed: Parsed, pod_defaults: PodDefaults) -> tuple[PodSet, ...]:
    work = pod_defaults.with_defaults(parsed.workload, parsed.manifests)
    assert replace(work, sets=()) == replace(parsed.workload, sets=()), "only the demand changes"
    return work.sets


def limited(*limits: dict[str, Any], namespace: str = "team") -> PodDefaults:
    pod_defaults = PodDefaults()
    pod_defaults.put_range(namespace, "u1", read_limit_range(limit_range(*limits)))
    return pod_defaults


def request(*containers: dict[str, Any], **spec: Any) -> dict[str, int]:
    """What a pod of these containers requests where 200m and 1Gi are the defaults."""
    pod_defaults = limited(
        container_limit(
            default={"cpu": "400m", "memory": "1Gi"}, defaultRequest={"cpu": "200m"}, max={}
        )
    )
    [one] = admitted(accepted(v1beta1(pod("x", *containers, **spec))), pod_defaults)
    return dict(one.request)


def test_a_container_without_requests_gets_the_defaults() -> None:
    assert request(BARE) == {"cpu": 200, "memory": Gi, "pods": 1}


@pytest.mark.parametrize(
    ("resources", "cpu"),
    [
        pytest.param({"requests": {"cpu": "1"}}, 1000, id="its request counts"),
        pytest.param({"limits": {"cpu": "2"}}, 2000, id="so does its limit"),
        pytest.param({"requests": {"cpu": "0"}}, 0, id="nothing is a request as well"),
        pytest.param({"requests": {"memory": "1Gi"}}, 200, id="per resource"),
    ],
)
def test_resources_of_a_container_override_the_defaults(
    resources: dict[str, Any], cpu: int
) -> None:
    assert request(BARE | {"resources": resources}).get("cpu", 0) == cpu


def test_every_container_gets_them_init_containers_too() -> None:
    sidecar = BARE | {"restartPolicy": "Always"}
    assert request(BARE, BARE)["cpu"] == 400
    assert request(BARE, initContainers=[sidecar])["cpu"] == 400
    assert request(container("50m", "1Mi"), initContainers=[BARE])["cpu"] == 200


def test_a_pod_that_limits_itself_as_a_whole_does_so_before_its_containers_get_them() -> None:
    whole = {"resources": {"limits": {"cpu": "8"}}}
    assert request(BARE, **whole) == {"cpu": 8000, "memory": Gi, "pods": 1}


def test_limits_of_pods_and_claims_are_no_defaults() -> None:
    said = {"default": {"cpu": "7"}, "max": {"cpu": "9"}}
    assert read_limit_range(limit_range({"type": "Pod"} | said, {"type": "Weird"} | said)) == {}
    assert read_limit_range(limit_range(container_limit(max={"cpu": "9"}))) == {}
    assert read_limit_range({"spec": {"limits": [7, None]}}) == {}


def test_of_several_ranges_the_largest_default_counts() -> None:
    pod_defaults = limited(container_limit(defaultRequest={"cpu": "1", "memory": "1Mi"}))
    more = read_limit_range(limit_range(container_limit(defaultRequest={"cpu": "2"})))
    assert pod_defaults.put_range("team", "u2", more)
    assert not pod_defaults.put_range("team", "u2", more)
    assert pod_defaults.of_namespace("team") == {"cpu": 2000, "memory": 1000 * Mi}
    assert pod_defaults.drop_range("team", "u2")
    assert not pod_defaults.drop_range("team", "u2")
    assert pod_defaults.of_namespace("team") == {"cpu": 1000, "memory": 1000 * Mi}
    assert pod_defaults.drop_range("team", "u1")
    assert pod_defaults.of_namespace("team") == {}


def test_a_range_of_another_namespace_does_not_matter() -> None:
    pod_defaults = limited(container_limit(defaultRequest={"cpu": "9"}), namespace="other")
    parsed = accepted(v1beta1(pod()))
    assert not pod_defaults.concerns(parsed.workload, parsed.manifests)
    assert admitted(parsed, pod_defaults) == parsed.workload.sets


KATA = obj("node.k8s.io/v1", "RuntimeClass", "kata") | {
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
    "scheduling": {
        "nodeSelector": {"kata": "yes"},
        "tolerations": [{"key": "kata", "operator": "Exists"}],
    },
}


def test_a_runtime_class_adds_its_overhead_and_narrows_the_choice_of_nodes() -> None:
    pod_defaults = PodDefaults()
    pod_defaults.put_class("kata", read_runtime_class(KATA))
    parsed = accepted(v1beta1(pod(runtimeClassName="kata", nodeSelector={"zone": "a"})))
    assert pod_defaults.concerns(parsed.workload, parsed.manifests)
    [one] = admitted(parsed, pod_defaults)
    assert dict(one.request) == {"cpu": 1250, "memory": 120 * Mi, "pods": 1}
    assert one.constraint == Constraint(
        selector=(("kata", "yes"), ("zone", "a")),
        tolerations=(Toleration("kata", "Exists", "", ""),),
    )


def test_an_overhead_that_the_template_states_is_not_added_twice() -> None:
    pod_defaults = PodDefaults()
    pod_defaults.put_class("kata", read_runtime_class(KATA))
    said = KATA["overhead"]["podFixed"]
    parsed = accepted(v1beta1(pod(runtimeClassName="kata", overhead=said)))
    assert admitted(parsed, pod_defaults)[0].request == parsed.workload.sets[0].request


def test_a_class_that_is_not_there_adds_nothing() -> None:
    pod_defaults = PodDefaults()
    parsed = accepted(v1beta1(pod(runtimeClassName="gone")))
    assert pod_defaults.put_class("gone", read_runtime_class(KATA))
    assert not pod_defaults.put_class("gone", read_runtime_class(KATA))
    assert admitted(parsed, pod_defaults) != parsed.workload.sets
    assert pod_defaults.drop_class("gone")
    assert not pod_defaults.drop_class("gone")
    assert admitted(parsed, pod_defaults) == parsed.workload.sets


RAY = obj(
    "ray.io/v1",
    "RayCluster",
    "ray",
    {
        "enableInTreeAutoscaling": True,
        "headGroupSpec": {"template": template(BARE)},
        "workerGroupSpecs": [{"groupName": "a", "replicas": 2, "template": template(BARE)}],
    },
)
MANIFESTS = {
    "a deployment": v1beta1(deployment("a", 2, BARE)),
    "several items": v1beta1(config_map(), deployment(), job("j", parallelism=2), pod("p", BARE)),
    "what an operator completes": v1beta2(RAY),
    "an unknown kind": v1beta1(
        obj("example.com/v1", "Widget", "w", {"replicas": 2, "template": template(BARE)})
    ),
    "sets by path": v1beta2(
        {
            "template": deployment("d", 3, BARE),
            "podSets": [{"path": "template.spec.template", "replicas": 3}],
        }
    ),
    "a declaration": v1beta1(
        generic(deployment(), custompodresources=[{"replicas": 2, "requests": {"cpu": 2}}])
    ),
}


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_without_any_of_it_the_demand_is_what_was_read(manifest: dict[str, Any]) -> None:
    """So what was added can be taken away again, however often."""
    parsed = accepted(manifest)
    assert admitted(parsed, PodDefaults()) == parsed.workload.sets
    more = limited(container_limit(defaultRequest={"memory": "1Gi", "cpu": "1"}))
    work = more.with_defaults(parsed.workload, parsed.manifests)
    assert PodDefaults().with_defaults(work, parsed.manifests) == parsed.workload
    declared = "custompodresources" in str(manifest)
    assert (work.sets == parsed.workload.sets) is declared, "what is declared counts"


def test_what_an_operator_adds_to_a_template_gets_the_defaults_as_well() -> None:
    more = limited(container_limit(defaultRequest={"cpu": "1"}))
    head, workers = admitted(accepted(v1beta2(RAY)), more)
    assert dict(head.request)["cpu"] == 1500, "the autoscaler says what it wants"
    assert dict(workers.request)["cpu"] == 1000


# -- pods that never preempt ---------------------------------------------------------------------


def priority(name: str, **said: Any) -> dict[str, Any]:
    return obj("scheduling.k8s.io/v1", "PriorityClass", name) | {"value": 5} | said


def ranked(*classes: dict[str, Any]) -> PodDefaults:
    pod_defaults = PodDefaults()
    for one in classes:
        pod_defaults.put_priority(one["metadata"]["name"], read_priority_class(one))
    return pod_defaults


def scaled(replicas: int, **spec: Any) -> dict[str, Any]:
    said = {"replicas": replicas, "template": template(**spec)}
    return obj("apps/v1", "Deployment", "d", said)


def never_preempts(manifest: dict[str, Any], *classes: dict[str, Any]) -> bool:
    return ranked(*classes).completed(accepted(manifest)).workload.never_preempts


GENTLE = priority("gentle", preemptionPolicy="Never")
RUDE = priority("rude")
BY_DEFAULT = priority("base", preemptionPolicy="Never", globalDefault=True)
SAYS_NEVER = {"preemptionPolicy": "Never"}
SAYS_OTHERWISE = {"preemptionPolicy": "PreemptLowerPriority"}
IS_GENTLE = {"priorityClassName": "gentle"}
COUNTED = {"custompodresources": [{"replicas": 2, "requests": {"cpu": 2}}]}
NEVER: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing said": (pod(), False),
    "the pod says so": (pod(**SAYS_NEVER), True),
    "the pod says otherwise": (pod(**SAYS_OTHERWISE), False),
    "its class says so": (pod(**IS_GENTLE), True),
    "its class does not": (pod(priorityClassName="rude"), False),
    "its class is not there": (pod(priorityClassName="gone"), False),
    "the pod goes before its class": (pod(**IS_GENTLE, **SAYS_OTHERWISE), False),
    "a template": (scaled(2, **IS_GENTLE), True),
    "a template without pods": (scaled(0, **IS_GENTLE), False),
    "no pods": (config_map(), False),
}


@pytest.mark.parametrize("dialect", [v1beta1, v1beta2])
@pytest.mark.parametrize(("manifest", "never"), NEVER.values(), ids=NEVER.keys())
def test_pods_that_never_preempt(manifest: dict[str, Any], never: bool, dialect: Any) -> None:
    """As admission reads it: the pod, else its class, else the class for all others."""
    assert never_preempts(dialect(manifest), GENTLE, RUDE) is never


def test_pods_that_name_no_class_are_of_the_one_for_all_others() -> None:
    assert never_preempts(v1beta1(pod()), BY_DEFAULT)
    assert not never_preempts(v1beta1(pod(priorityClassName="rude")), BY_DEFAULT, RUDE)
    assert not never_preempts(v1beta1(pod(**SAYS_OTHERWISE)), BY_DEFAULT)


def test_all_pods_need_the_policy_never() -> None:
    """One that does not would have others preempted for it by kube-scheduler as well."""
    assert never_preempts(
        v1beta1(pod("a", **SAYS_NEVER), config_map(), pod("b", **IS_GENTLE)), GENTLE
    )
    assert not never_preempts(v1beta1(pod("a", **SAYS_NEVER), pod("b")), GENTLE)


def test_of_declared_pods_the_template_has_the_policy_never() -> None:
    assert never_preempts(v1beta1(generic(scaled(2, **IS_GENTLE), **COUNTED)), GENTLE)
    assert not never_preempts(v1beta1(generic(deployment(), **COUNTED)), GENTLE)


def test_a_change_of_a_priority_class_matters_if_it_concerns_never() -> None:
    pod_defaults = ranked(RUDE)
    assert not pod_defaults.put_priority("rude", read_priority_class(RUDE | {"value": 9}))
    assert not pod_defaults.put_priority(
        "rude", read_priority_class(RUDE | {"globalDefault": True})
    )
    assert not pod_defaults.drop_priority("rude")
    for said, differs in ((GENTLE, True), (GENTLE | {"globalDefault": True}, True), (RUDE, True)):
        assert pod_defaults.put_priority("one", read_priority_class(said)) is differs
    pod_defaults.put_priority("one", read_priority_class(GENTLE))
    assert pod_defaults.drop_priority("one")
    assert not pod_defaults.drop_priority("one")


def test_never_preempts_changes_with_the_priority_class() -> None:
    parsed = ranked(GENTLE).completed(accepted(v1beta1(pod(**IS_GENTLE))))
    work = PodDefaults().with_defaults(parsed.workload, parsed.manifests)
    assert (parsed.workload.never_preempts, work.never_preempts) == (True, False)


# -- devices -------------------------------------------------------------------------------------

DEVICES = pod("p", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}])


@pytest.mark.parametrize("manifest", [v1beta1(DEVICES), v1beta2(DEVICES)], ids=["old", "new"])
def test_pods_with_claims_for_devices_are_named(manifest: dict[str, Any]) -> None:
    problem = parse(manifest, CATALOG).workload.problem
    assert problem.kind is WaitingReason.UNSUPPORTED_DRA
    assert "ignoreResourceClaims" in problem.message


def test_pods_with_claims_are_dispatched_with_ignore_resource_claims() -> None:
    work = parse(v1beta1(DEVICES), replace(CATALOG, ignores_claims=True)).workload
    assert work.problem is None
    assert work.sets[0].unmodelled == ("resourceClaims",)
