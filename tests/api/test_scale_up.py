"""Scale-up requests: what is created for them, and what the autoscaler's answers mean."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mcad.api import labels
from mcad.api.scale_up.answers import BOOKED, NOT_READY, Sight, asked_by, read, together
from mcad.api.scale_up.objects import Ask, Made, consuming, is_placeholder, made_for
from mcad.api.scale_up.settings import Via
from mcad.api.scale_up.templates import Wanted, wanted
from mcad.core.state.scale_up import ScaleUpState
from mcad.core.state.units import SECOND
from tests.api.builders import (
    Map,
    accepted,
    container,
    generic,
    job,
    obj,
    template,
    v1beta1,
    v1beta2,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
CREATED = 1_690_000_000 * SECOND


def asked(appwrapper: Map, *pods: tuple[int, int, int]) -> list[Wanted]:
    parsed = accepted(appwrapper)
    return wanted(parsed.workload, parsed.manifests, pods)


def spec_of(thing: Map) -> Map:
    (one,) = asked(v1beta2(thing), (0, 0, 3))
    assert one.count == 3
    found: Map = one.template["spec"]
    return found


def replicated(*templates: Map) -> Map:
    """A JobSet with one job per template."""
    jobs = [
        {"name": f"j{at}", "replicas": 1, "template": {"spec": {"parallelism": 4, "template": one}}}
        for at, one in enumerate(templates)
    ]
    return obj("jobset.x-k8s.io/v1alpha2", "JobSet", spec={"replicatedJobs": jobs})


def test_a_pod_asks_for_what_the_fit_test_counts() -> None:
    side = container("250m", "1Gi", name="side", restartPolicy="Always")
    gpu = {"requests": {"cpu": 3, "memory": "4Gi"}, "limits": {"example.com/chip": 2}}
    main = {"name": "main", "image": "x", "resources": gpu, "env": [{"name": "SECRET"}]}
    found = spec_of(job(template=template(main, initContainers=[side])))
    assert found == {
        "containers": [
            {
                "name": "placeholder",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {
                    "requests": {"cpu": "3250m", "memory": "5Gi", "example.com/chip": "2"},
                    "limits": {"cpu": "3250m", "memory": "5Gi", "example.com/chip": "2"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65535,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def test_a_pod_goes_where_the_pods_of_the_manifest_may_go() -> None:
    affinity = {
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                ]
            }
        },
        "podAntiAffinity": {
            REQUIRED: [{"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "db"}}}]
        },
    }
    spread = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    tolerations = [
        {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "a"},
    ]
    found = spec_of(
        job(
            template=template(
                labels={"app": "db"},
                affinity=affinity,
                nodeSelector={"disk": "ssd"},
                tolerations=tolerations,
                topologySpreadConstraints=spread,
            )
        )
    )
    assert found["affinity"] == affinity
    assert found["nodeSelector"] == {"disk": "ssd"}
    assert found["tolerations"] == tolerations
    assert found["topologySpreadConstraints"] == spread


def test_labels_that_rules_about_other_pods_select_by_are_kept_and_our_own_are_not() -> None:
    (one,) = asked(v1beta2(job(template=template(labels={"app": "db"}))), (0, 0, 1))
    assert one.template["metadata"]["labels"] == {"app": "db", labels.SCALE_UP_UID: "0b1e"}


def test_ports_of_the_node() -> None:
    ports = [{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]
    found = spec_of(job(template=template(container(ports=ports))))
    (port,) = found["containers"][0]["ports"]
    assert port == {
        "containerPort": 8080,
        "hostPort": 8080,
        "hostIP": "0.0.0.0",
        "protocol": "UDP",
    }


def test_pods_that_were_declared_without_a_template() -> None:
    entry = {"replicas": 3, "requests": {"cpu": "2", "memory": "1Gi"}}
    thing = obj("example.com/v1", "Widget", spec={"size": 3})
    (one,) = asked(v1beta1(generic(thing, custompodresources=[entry])), (0, 0, 3))
    amounts = {"cpu": "2", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    assert one.template["spec"]["containers"][0]["resources"] == resources


@pytest.mark.parametrize(("group", "label"), [("", "0.0"), ("ring", labels.short_hash("ring"))])
def test_a_required_topology_is_asked_for_as_one_domain(group: str, label: str) -> None:
    notes = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    notes |= {"kueue.x-k8s.io/podset-group-name": group} if group else {}
    thing = job(template=template() | {"metadata": {"annotations": notes}})
    (one,) = asked(v1beta2(thing), (0, 0, 2))
    mine = {labels.SCALE_UP_UID: "0b1e", labels.SCALE_UP_GROUP: label}
    assert one.template["metadata"]["labels"] == mine
    assert one.template["spec"]["affinity"] == {
        "podAffinity": {REQUIRED: [{"labelSelector": {"matchLabels": mine}, "topologyKey": "rack"}]}
    }


def test_equal_pods_are_asked_for_together_and_sets_without_missing_pods_not_at_all() -> None:
    thing = replicated(template(), template(), template(container("2")), template(container("3")))
    found = asked(v1beta2(thing), (0, 0, 4), (0, 1, 2), (0, 2, 1), (0, 3, 0))
    assert [one.count for one in found] == [1, 6]


def made(via: Via, version: str = "v1", attempt: int = 3) -> Made:
    parsed = accepted(v1beta2(replicated(template(), template(container("2")))))
    pods = wanted(parsed.workload, parsed.manifests, [(0, 0, 4), (0, 1, 2)])
    return made_for(via, version, Ask(parsed.workload, attempt, tuple(pods), 900))


def named(objects: tuple[Map, ...]) -> list[str]:
    return [f"{one['apiVersion']} {one['kind']} {one['metadata']['name']}" for one in objects]


BASE = f"aw-{labels.short_hash('0b1e')}-3"


def test_a_provisioning_request_and_its_templates() -> None:
    found = made(Via.PROVISIONING_REQUEST)
    assert named(found.templates) == [f"v1 PodTemplate {BASE}-0", f"v1 PodTemplate {BASE}-1"]
    (request,) = found.requests
    name = f"{BASE}-{found.requests[0]['metadata']['name'][-5:]}"
    assert named(found.requests) == [f"autoscaling.x-k8s.io/v1 ProvisioningRequest {name}"]
    assert request["spec"] == {
        "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
        "parameters": {"ValidUntilSeconds": "900"},
        "podSets": [
            {"count": 2, "podTemplateRef": {"name": f"{BASE}-0"}},
            {"count": 4, "podTemplateRef": {"name": f"{BASE}-1"}},
        ],
    }
    assert consuming(BASE) == {
        "autoscaling.x-k8s.io/consume-provisioning-request": BASE,
        "autoscaling.x-k8s.io/provisioning-class-name": request["spec"]["provisioningClassName"],
    }


GPUS = container(name="gpu") | {"resources": {"limits": {"example.com/gpu": 1}}}
APART: dict[str, tuple[Map, int]] = {
    "more of the same": (template(container("4", "8Gi")), 1),
    "another label": (template(labels={"role": "b"}), 1),
    "another selector": (template(nodeSelector={"zone": "b"}), 2),
    "a toleration": (template(tolerations=[{"operator": "Exists"}]), 2),
    "devices": (template(GPUS), 2),
}


@pytest.mark.parametrize("case", APART)
def test_pods_of_another_placement_have_a_request_of_their_own(case: str) -> None:
    """A request is served from one node group."""
    other, count = APART[case]
    parsed = accepted(v1beta2(replicated(template(container("1", "1Gi")), other)))
    pods = wanted(parsed.workload, parsed.manifests, [(0, 0, 4), (0, 1, 2)])
    found = made_for(Via.PROVISIONING_REQUEST, "v1", Ask(parsed.workload, 3, tuple(pods), 900))
    assert len(found.requests) == len({*named(found.requests)}) == count
    assert sum(len(one["spec"]["podSets"]) for one in found.requests) == len(found.templates) == 2
    assert {labels.labels_of(one)[labels.SCALE_UP_OBJECTS] for one in found.requests} == {
        str(count)
    }


def test_a_capacity_buffer_per_template() -> None:
    found = made(Via.CAPACITY_BUFFER, "v1beta1")
    assert [one["metadata"]["name"] for one in found.templates] == [f"{BASE}-0", f"{BASE}-1"]
    kind = "autoscaling.x-k8s.io/v1beta1 CapacityBuffer"
    assert named(found.requests) == [f"{kind} {BASE}-0", f"{kind} {BASE}-1"]
    assert [one["spec"] for one in found.requests] == [
        {"podTemplateRef": {"name": f"{BASE}-0"}, "replicas": 2},
        {"podTemplateRef": {"name": f"{BASE}-1"}, "replicas": 4},
    ]


def test_placeholder_pods_give_way_and_get_no_requests() -> None:
    found = made(Via.PLACEHOLDER_PODS)
    assert not found.templates
    assert [one["metadata"]["name"] for one in found.requests] == [
        *(f"{BASE}-0-{at}" for at in range(2)),
        *(f"{BASE}-1-{at}" for at in range(4)),
    ]
    for pod in found.requests:
        assert is_placeholder(pod)
        assert pod["spec"]["priorityClassName"] == "mcad-placeholder"
        assert pod["spec"]["readinessGates"]
        assert pod["spec"]["terminationGracePeriodSeconds"] == 0
        assert not labels.labels_of(pod).keys() & {*labels.OURS}


@pytest.mark.parametrize("via", [one for one in Via if one not in {Via.OFF, Via.AUTO}])
def test_all_of_it_is_owned_and_found_again_and_its_content_is_marked(via: Via) -> None:
    found, later = made(via), made(via, attempt=4)
    for one in (*found.templates, *found.requests):
        assert asked_by(one) == ("0b1e", 3)
        (owner,) = one["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("AppWrapper", "0b1e", True)
        assert one["metadata"]["namespace"] == "team"
    names = {one["metadata"]["name"] for one in (*found.templates, *found.requests)}
    assert not names & {one["metadata"]["name"] for one in (*later.templates, *later.requests)}
    assert made(via) == found
    marks = [labels.labels_of(one)[labels.SCALE_UP_CONTENT] for one in found.requests]
    assert len({*marks}) == len({str(one["spec"]) for one in found.requests})


def test_a_long_name_is_cut_at_a_letter() -> None:
    appwrapper = v1beta2(job())
    appwrapper["metadata"]["name"] = "a" * 39 + "." + "b" * 200
    parsed = accepted(appwrapper)
    assert Ask(parsed.workload, 1, (), 9).name == "a" * 39 + f"-{labels.short_hash('0b1e')}-1"


@pytest.mark.parametrize(
    "tags", [{}, {labels.SCALE_UP_UID: "u"}, {labels.SCALE_UP_UID: 1, labels.SCALE_UP_ATTEMPT: "1"}]
)
def test_what_has_not_both_labels_is_not_ours(tags: Map) -> None:
    assert asked_by({"metadata": {"labels": tags}}) == ("", 0)


def told(*conditions: tuple[str, str] | tuple[str, str, str], **more: Any) -> Map:
    """An object with conditions (type, status, reason), five minutes after its creation."""
    meta = {"namespace": "team", "name": "r", "creationTimestamp": "2023-07-22T04:26:40Z"}
    return {
        "metadata": meta,
        "status": {
            "conditions": [
                {
                    "type": one[0],
                    "status": one[1],
                    "reason": one[2] if len(one) > 2 else "Because",
                    "message": f"{one[0]} is {one[1]}",
                    "lastTransitionTime": "2023-07-22T04:31:40Z",
                }
                for one in conditions
            ]
        },
    } | more


ACCEPTED, PROVISIONED = ("Accepted", "True"), ("Provisioned", "True")
ANSWERS: dict[str, tuple[Via, Map, ScaleUpState, str, tuple[int, ScaleUpState] | None]] = {
    "nothing yet": (Via.PROVISIONING_REQUEST, told(), ScaleUpState.ASKED, "", None),
    "accepted": (
        Via.PROVISIONING_REQUEST,
        told(ACCEPTED),
        ScaleUpState.ACCEPTED,
        "Accepted is True",
        None,
    ),
    "provisioned": (
        Via.PROVISIONING_REQUEST,
        told(ACCEPTED, PROVISIONED),
        ScaleUpState.PROVISIONED,
        "Provisioned is True",
        (300 * SECOND + BOOKED, ScaleUpState.EXPIRED),
    ),
    "no capacity": (
        Via.PROVISIONING_REQUEST,
        told(ACCEPTED, ("Provisioned", "False", "CapacityIsNotFound")),
        ScaleUpState.FAILED,
        "Provisioned is False",
        None,
    ),
    "failed": (
        Via.PROVISIONING_REQUEST,
        told(ACCEPTED, ("Failed", "True")),
        ScaleUpState.FAILED,
        "Failed is True",
        None,
    ),
    "revoked": (
        Via.PROVISIONING_REQUEST,
        told(PROVISIONED, ("CapacityRevoked", "True")),
        ScaleUpState.REVOKED,
        "CapacityRevoked is True",
        None,
    ),
    "expired": (
        Via.PROVISIONING_REQUEST,
        told(PROVISIONED, ("BookingExpired", "True", "CapacityReservationTimeExpired")),
        ScaleUpState.EXPIRED,
        "BookingExpired is True",
        None,
    ),
    "used": (
        Via.PROVISIONING_REQUEST,
        told(PROVISIONED, ("BookingExpired", "True", "CapacityBookingConsumed")),
        ScaleUpState.PROVISIONED,
        "Provisioned is True",
        None,
    ),
    "a buffer without an answer": (Via.CAPACITY_BUFFER, told(), ScaleUpState.ASKED, "", None),
    "a buffer that is ready": (
        Via.CAPACITY_BUFFER,
        told(("ReadyForProvisioning", "True"), ("LimitedByQuotas", "False")),
        ScaleUpState.ACCEPTED,
        "ReadyForProvisioning is True",
        None,
    ),
    "a buffer that counts": (
        Via.CAPACITY_BUFFER,
        told(("ReadyForProvisioning", "True"), PROVISIONED, ("Provisioning", "True")),
        ScaleUpState.ACCEPTED,
        "Provisioning is True",
        None,
    ),
    "a buffer whose template is not read yet": (
        Via.CAPACITY_BUFFER,
        told(("ReadyForProvisioning", "False")),
        ScaleUpState.ASKED,
        "ReadyForProvisioning is False",
        (300 * SECOND + NOT_READY, ScaleUpState.FAILED),
    ),
    "a buffer for which Karpenter adds nodes": (
        Via.CAPACITY_BUFFER,
        told(("ReadyForProvisioning", "True"), ("Provisioning", "False", "RequiresNewCapacity")),
        ScaleUpState.ACCEPTED,
        "Provisioning is False",
        None,
    ),
    "a buffer that quotas cut": (
        Via.CAPACITY_BUFFER,
        told(("ReadyForProvisioning", "True"), ("LimitedByQuotas", "True")),
        ScaleUpState.FAILED,
        "LimitedByQuotas is True",
        None,
    ),
    "a pod without a node": (
        Via.PLACEHOLDER_PODS,
        told(("PodScheduled", "False")),
        ScaleUpState.ASKED,
        "PodScheduled is False",
        None,
    ),
    "a pod with a node": (
        Via.PLACEHOLDER_PODS,
        told(spec={"nodeName": "n"}),
        ScaleUpState.PROVISIONED,
        "",
        None,
    ),
    "not what it should be": (
        Via.PROVISIONING_REQUEST,
        {"metadata": {"creationTimestamp": "2023-07-22T04:26:40Z"}, "status": {"conditions": [3]}},
        ScaleUpState.ASKED,
        "",
        None,
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_the_autoscaler_says(case: str) -> None:
    via, obj_, state, words, later = ANSWERS[case]
    found = read(via, obj_)
    assert (found.state, found.since) == (state, CREATED)
    assert found.message.strip("\"'") == words or words in found.message
    if later is None:
        assert found.at(CREATED + 10**15) == found
    else:
        due, then = later
        assert found.at(CREATED + due - 1).state is state
        assert found.at(CREATED + due).state is then


def sight(state: ScaleUpState, name: str, since: int = 5, later: int = 0) -> Sight:
    return Sight(state, f"words of {name}", since, f"CapacityBuffer a/{name}", later)


def test_a_request_of_which_a_part_is_missing_has_to_be_made_anew() -> None:
    one = replace(sight(ScaleUpState.ACCEPTED, "x"), objects=2)
    assert together([one]).state is ScaleUpState.EXPIRED
    assert together([one, one]).state is ScaleUpState.ACCEPTED


def test_several_objects_are_one_request() -> None:
    done, open_ = sight(ScaleUpState.ACCEPTED, "x"), sight(ScaleUpState.ASKED, "y", 3, later=9)
    one = together([done, open_])
    assert (one.state, one.message, one.since) == (ScaleUpState.ASKED, "words of y", 3)
    assert one.title == "CapacityBuffer a/y and 1 other"
    assert one.at(9).state is ScaleUpState.FAILED
    failed = together([done, sight(ScaleUpState.FAILED, "z"), done])
    assert (failed.state, failed.message) == (ScaleUpState.FAILED, "words of z")
    assert failed.title == "CapacityBuffer a/z and 2 others"
    assert together([done]) == done
