"""Gangs of the coscheduler and of Kubernetes: items without pods, and what is said of one that can
never be whole."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.api.builders import Map, accepted, deployment, obj, pod, v1beta1, v1beta2

NATIVE = "scheduling.k8s.io"
TODAYS, OLD = "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"
LABEL_OF = {TODAYS: "scheduling.x-k8s.io/pod-group", OLD: "pod-group.scheduling.sigs.k8s.io"}


def pod_group(least: int, group: str = TODAYS, name: str = "gang") -> Map:
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": least, "scheduleTimeoutSeconds": 60},
    }


def labelled(template: Map, key: str = LABEL_OF[TODAYS], name: str = "gang") -> Map:
    template.setdefault("metadata", {}).setdefault("labels", {})[key] = name
    return template


def member(replicas: int, key: str = LABEL_OF[TODAYS], name: str = "gang") -> Map:
    made = deployment(replicas=replicas)
    labelled(made["spec"]["template"], key, name)
    return made


@pytest.mark.parametrize("group", [TODAYS, OLD])
@pytest.mark.parametrize("dialect", [v1beta1, v1beta2])
def test_a_pod_group_is_an_item_like_any_other_and_asks_for_nothing(
    dialect: Callable[..., Map], group: str
) -> None:
    workload = accepted(dialect(pod_group(3, group), member(3, LABEL_OF[group]))).workload
    assert str(workload.items[0].ref) == "PodGroup team/gang"
    assert [(one.item, one.replicas) for one in workload.sets] == [(1, 3)]
    assert workload.warnings == ()


def native_group(least: int, version: str = "v1alpha2") -> Map:
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    return obj(f"{NATIVE}/{version}", "PodGroup", "gang", spec)


def native_member(replicas: int, name: str = "gang") -> Map:
    made = deployment("native", replicas)
    made["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": name}
    return made


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1"])
@pytest.mark.parametrize("dialect", [v1beta1, v1beta2])
def test_a_native_pod_group_and_what_names_it_are_created_as_they_are(
    dialect: Callable[..., Map], version: str
) -> None:
    items = [native_group(3, version), native_member(3)]
    parsed = accepted(dialect(*items))
    assert [json.loads(one) for one in parsed.manifests] == items
    assert [(one.item, one.replicas) for one in parsed.workload.sets] == [(1, 3)]
    assert parsed.workload.warnings == ()


@pytest.mark.parametrize(
    ("items", "there"),
    [([native_member(2)], 2), ([native_member(3, "another")], 0), ([member(3)], 0)],
)
def test_a_native_gang_that_can_never_be_whole_is_reported(items: list[Map], there: int) -> None:
    (warning,) = accepted(v1beta2(native_group(3), *items)).workload.warnings
    assert warning == (
        f"PodGroup gang has minCount 3, but {there} pods of this AppWrapper have "
        "schedulingGroup.podGroupName: gang, so none of them may ever be scheduled."
    )


def test_a_native_group_that_is_no_gang_waits_for_nothing() -> None:
    group = obj(f"{NATIVE}/v1alpha2", "PodGroup", "gang", {"schedulingPolicy": {"basic": {}}})
    assert accepted(v1beta2(group, deployment())).workload.warnings == ()


def test_the_two_kinds_of_group_have_different_members() -> None:
    both = [pod_group(3), native_group(2), member(3), native_member(2)]
    assert accepted(v1beta2(*both)).workload.warnings == ()
    crossed = [pod_group(3), native_group(2), member(2), native_member(3)]
    assert len(accepted(v1beta2(*crossed)).workload.warnings) == 1


@pytest.mark.parametrize(
    ("items", "there"),
    [
        ([member(2)], 2),
        ([member(1), labelled(pod())], 2),
        ([member(5, name="another")], 0),
        ([deployment(replicas=5)], 0),
        ([], 0),
    ],
)
def test_a_gang_that_can_never_be_whole_is_reported(items: list[Map], there: int) -> None:
    (warning,) = accepted(v1beta2(pod_group(3), *items)).workload.warnings
    assert warning == (
        f"PodGroup gang has minMember 3, but {there} pods of this AppWrapper have the label "
        "scheduling.x-k8s.io/pod-group: gang, so none of them may ever be scheduled."
    )


def test_declared_pods_count_as_they_are_declared() -> None:
    obj = v1beta1(pod_group(4), member(1))
    requests = {"cpu": "1"}
    obj["spec"]["resources"]["GenericItems"][1]["custompodresources"] = [
        {"replicas": 1, "requests": requests},
        {"replicas": 3, "requests": requests},
    ]
    warnings = accepted(obj).workload.warnings
    assert not any("PodGroup" in one for one in warnings)


@pytest.mark.parametrize(("least", "told"), [(0, False), (3, False), (4, True)])
def test_min_available_beyond_the_pods_is_reported(least: int, told: bool) -> None:
    rules = {"minAvailable": least}
    warnings = accepted(v1beta1(deployment(replicas=3), schedulingSpec=rules)).workload.warnings
    message = (
        "spec.schedulingSpec.minAvailable: is 4, but the items have 3 pods; unless "
        "there are more, the AppWrapper is requeued again and again."
    )
    assert warnings == ((message,) if told else ())


def test_pods_of_unknown_number_are_enough() -> None:
    daemons = deployment(replicas=1)
    daemons["kind"] = "DaemonSet"
    del daemons["spec"]["replicas"]
    rules = {"minAvailable": 4}
    assert accepted(v1beta1(daemons, schedulingSpec=rules)).workload.warnings == ()
    widget = obj("example.com/v1", "Widget")  # of unknown pods
    assert accepted(v1beta1(deployment(), widget, schedulingSpec=rules)).workload.warnings == ()
