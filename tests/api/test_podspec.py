"""kube-scheduler's formula and what it looks at, figure by figure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.api.pods import read_pod
from mcad.api.podspec import effective_request, placement, quantity
from mcad.core.state.model import Constraint, HostPort, Requirement, Toleration
from mcad.core.state.not_checked import OTHERS_PODS
from tests.api.builders import Gi, Mi, container, pod_spec, template

SIDECAR = {"restartPolicy": "Always"}


def request(spec: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, int]:
    return dict(effective_request(spec, status))


FORMULA = {
    "one container and one slot": (pod_spec(container("2", "1Gi")), {"cpu": 2000, "memory": Gi}),
    "regular containers add up": (pod_spec(container("1"), container("500m")), {"cpu": 1500}),
    "init containers run one by one, so the largest counts": (
        pod_spec(container("1"), initContainers=[container("2"), container("3")]),
        {"cpu": 3000},
    ),
    "an init container below the sum changes nothing": (
        pod_spec(container("2"), container("2"), initContainers=[container("3")]),
        {"cpu": 4000},
    ),
    "each resource has its own peak": (
        pod_spec(container("2", "1Gi"), initContainers=[container("1", "4Gi")]),
        {"cpu": 2000, "memory": 4 * Gi},
    ),
    "a sidecar runs beside the containers": (
        pod_spec(container("1"), initContainers=[container("2", **SIDECAR)]),
        {"cpu": 3000},
    ),
    "an init container after a sidecar runs beside it": (
        pod_spec(container("1"), initContainers=[container("2", **SIDECAR), container("5")]),
        {"cpu": 7000},
    ),
    "an init container before a sidecar runs alone": (
        pod_spec(container("1"), initContainers=[container("5"), container("2", **SIDECAR)]),
        {"cpu": 5000},
    ),
    "sidecars that start one after the other add up": (
        pod_spec(
            container("1"),
            initContainers=[
                container("2", **SIDECAR),
                container("3"),
                container("4", **SIDECAR),
                container("1"),
            ],
        ),
        {"cpu": 7000},  # 1 + 2 + 4 running; 2 + 3 and 2 + 4 + 1 while starting
    ),
    "the overhead of the runtime comes on top": (
        pod_spec(container("1", "1Gi"), overhead={"cpu": "250m", "memory": "120Mi"}),
        {"cpu": 1250, "memory": Gi + 120 * Mi},
    ),
    "a limit stands in for a missing request": (
        pod_spec({"resources": {"limits": {"cpu": "2", "nvidia.com/gpu": 4}}}),
        {"cpu": 2000, "nvidia.com/gpu": 4},
    ),
    "a request of zero is a request": (
        pod_spec({"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "0"}}}),
        {},
    ),
    "pod-level requests replace the sum": (
        pod_spec(container("4", "1Gi"), resources={"requests": {"cpu": "6"}}),
        {"cpu": 6000, "memory": Gi},
    ),
    "a pod-level limit counts where no container requests": (
        pod_spec(container("1"), resources={"limits": {"cpu": "8", "memory": "2Gi"}}),
        {"cpu": 1000, "memory": 2 * Gi},
    ),
    "pod-level extended resources are not supported by Kubernetes": (
        pod_spec(container("1"), resources={"requests": {"nvidia.com/gpu": 1}}),
        {"cpu": 1000},
    ),
    "overhead also comes on top of pod-level requests": (
        pod_spec(container("1"), resources={"requests": {"cpu": "2"}}, overhead={"cpu": "1"}),
        {"cpu": 3000},
    ),
    "a pod-level limit does not count where an init container requests nothing": (
        pod_spec(
            {"name": "a"}, initContainers=[container("0")], resources={"limits": {"cpu": "8"}}
        ),
        {},
    ),
    "fractions of bytes are added up before they are rounded": (
        pod_spec(container("1", "100m"), container("1", "1.3Ki"), container("1", "1300m")),
        {"cpu": 3000, "memory": 1333},  # 0.1 + 1331.2 + 1.3
    ),
    "nothing is finer than a thousandth": (
        pod_spec(container("1n", "1n"), container("1n", "1n")),
        {"cpu": 2, "memory": 1},
    ),
    "every resource name counts": (
        pod_spec({"resources": {"requests": {"ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}}}),
        {"ephemeral-storage": Gi, "hugepages-2Mi": 4 * Mi},
    ),
    "a number without quotes is a quantity": (
        pod_spec(container(0.5, 1024)),
        {"cpu": 500, "memory": 1024},
    ),
    "nothing requested is one slot": (pod_spec({"name": "a"}), {}),
}


@pytest.mark.parametrize(("spec", "expected"), FORMULA.values(), ids=FORMULA.keys())
def test_effective_request(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert request(spec) == expected | {"pods": 1}


def status_of(*, resources: Any = None, allocated: Any = None, reason: str = "") -> dict[str, Any]:
    one = {"name": "main", "resources": resources, "allocatedResources": allocated}
    conditions = [{"type": "PodResizePending", "reason": reason}] if reason else []
    return {"containerStatuses": [one], "conditions": conditions}


LIVE = {
    "a pod that was never resized": (status_of(), 2000),
    "shrinking counts in full until it is done": (
        status_of(resources={"requests": {"cpu": "3"}}, allocated={"cpu": "2"}),
        3000,
    ),
    "growing counts as soon as it is wanted": (
        status_of(resources={"requests": {"cpu": "1"}}, allocated={"cpu": "1"}),
        2000,
    ),
    "what the node has promised counts": (
        status_of(resources={"requests": {"cpu": "1"}}, allocated={"cpu": "4"}),
        4000,
    ),
    "an infeasible wish does not count": (
        status_of(
            resources={"requests": {"cpu": "1"}}, allocated={"cpu": "1"}, reason="Infeasible"
        ),
        1000,
    ),
    "a deferred wish counts": (
        status_of(resources={"requests": {"cpu": "1"}}, allocated={"cpu": "1"}, reason="Deferred"),
        2000,
    ),
}


@pytest.mark.parametrize(("status", "cpu"), LIVE.values(), ids=LIVE.keys())
def test_effective_request_of_a_live_pod(status: dict[str, Any], cpu: int) -> None:
    assert request(pod_spec(container("2")), status)["cpu"] == cpu


def pending(*reasons: str) -> dict[str, Any]:
    return {"conditions": [{"type": "PodResizePending", "reason": reason} for reason in reasons]}


def test_of_two_conditions_of_a_resize_the_first_counts() -> None:
    small = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    status = {"containerStatuses": [small]} | pending("Deferred", "Infeasible")
    assert request(pod_spec(container("2")), status)["cpu"] == 2000


RESIZED_AS_A_WHOLE = {
    "the largest counts": (
        {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}},
        {"cpu": 3000, "memory": Mi},
    ),
    "an infeasible wish does not, nor do its containers": (
        {"resources": {"requests": {}}, **pending("Infeasible")},
        {"memory": Mi},
    ),
    "what it does not request as a whole is its containers'": (
        {"resources": {"requests": {"cpu": "3", "memory": "1Gi"}}},
        {"cpu": 3000, "memory": Mi},
    ),
}


@pytest.mark.parametrize(
    ("status", "expected"), RESIZED_AS_A_WHOLE.values(), ids=RESIZED_AS_A_WHOLE.keys()
)
def test_a_pod_resized_as_a_whole(status: dict[str, Any], expected: dict[str, int]) -> None:
    spec = pod_spec(container("1", "1Mi"), resources={"requests": {"cpu": "2"}})
    assert request(spec, status) == expected | {"pods": 1}


def test_requests_are_sorted_and_shared_between_equal_pods() -> None:
    first = effective_request(pod_spec(container("1", "1Gi")))
    second = effective_request(pod_spec(container("1000m", "1024Mi")))
    assert [name for name, _ in first] == ["cpu", "memory", "pods"]
    assert first is second


@given(st.dictionaries(st.text(max_size=6), st.none() | st.booleans() | st.text(max_size=5)))
def test_garbage_counts_as_nothing(spec: dict[str, Any]) -> None:
    assert request(spec) == {"pods": 1}


@pytest.mark.parametrize(
    "value", [None, True, "", "1x", "-1", [], {}, "1 Gi", float("nan"), 10**30]
)
def test_what_is_not_a_quantity(value: Any) -> None:
    assert quantity("memory", value) is None


# Where a pod may go


def affinity(**required: Any) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": required}


def test_node_selector_affinity_tolerations_and_node_name() -> None:
    terms = [
        {
            "matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a100", "h100"]}],
            "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}],
        },
        {"matchExpressions": [{"key": "cpu", "operator": "Exists"}]},
    ]
    made = placement(
        template(
            nodeSelector={"b": "2", "a": "1"},
            affinity={"nodeAffinity": affinity(nodeSelectorTerms=terms)},
            tolerations=[{"key": "k", "value": "v"}, {"operator": "Exists"}],
            nodeName="n7",
        )
    )
    assert made.constraint == Constraint(
        selector=(("a", "1"), ("b", "2")),
        affinity=(
            (
                Requirement("gpu", "In", ("a100", "h100")),
                Requirement("metadata.name", "NotIn", ("n1",), field=True),
            ),
            (Requirement("cpu", "Exists", ()),),
        ),
        tolerations=(Toleration("k", "Equal", "v", ""), Toleration("", "Exists", "", "")),
        node_name="n7",
    )


@pytest.mark.parametrize(
    ("node_affinity", "expected"),
    [
        pytest.param({}, None, id="none required"),
        pytest.param(affinity(nodeSelectorTerms=[]), (), id="no term matches no node"),
        pytest.param(affinity(nodeSelectorTerms=[{}]), (), id="an empty term matches no node"),
        pytest.param(
            {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]},
            None,
            id="a preference is no constraint",
        ),
    ],
)
def test_required_node_affinity(node_affinity: dict[str, Any], expected: Any) -> None:
    made = placement(template(affinity={"nodeAffinity": node_affinity}))
    assert made.constraint.affinity == expected


def apart(selector: Any, key: str = "kubernetes.io/hostname", **more: Any) -> dict[str, Any]:
    term = {"topologyKey": key, **more} | ({} if selector is None else {"labelSelector": selector})
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": rule}}


MINE = {"matchLabels": {"app": "x"}}
CAPS = {
    "nothing said": ({}, 0, ()),
    "itself, by label": (apart(MINE), 1, (OTHERS_PODS,)),
    "itself, by an empty selector": (apart({}), 1, (OTHERS_PODS,)),
    "itself, by expressions": (
        apart(
            {
                "matchExpressions": [
                    {"key": "app", "operator": "In", "values": ["x", "y"]},
                    {"key": "tier", "operator": "DoesNotExist"},
                ]
            }
        ),
        1,
        (OTHERS_PODS,),
    ),
    "other pods, perhaps of another set": (
        apart({"matchLabels": {"app": "other"}}),
        0,
        (OTHERS_PODS,),
    ),
    "no pods": (apart(None), 0, ("podAntiAffinity",)),
    "itself, but per zone": (apart(MINE, "topology.kubernetes.io/zone"), 0, ("podAntiAffinity",)),
    "itself, in other namespaces": (apart(MINE, namespaces=["b"]), 0, ("podAntiAffinity",)),
    "itself, of one revision": (apart({}, matchLabelKeys=["pod-template-hash"]), 1, ()),
    "itself, by a key that it has": (apart({}, matchLabelKeys=["app"]), 1, (OTHERS_PODS,)),
    "itself, by a key that nothing is known of": (
        apart({}, matchLabelKeys=["app", "made"]),
        0,
        ("podAntiAffinity",),
    ),
    "what has another value": (apart({}, mismatchLabelKeys=["app"]), 0, (OTHERS_PODS,)),
    "what has another value of a key that nothing is known of": (
        apart({}, mismatchLabelKeys=["made"]),
        0,
        ("podAntiAffinity",),
    ),
    "near others": (
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
        0,
        ("podAffinity",),
    ),
    "spread strictly": ({"topologySpreadConstraints": [{"maxSkew": 1}]}, 0, ("topologySpread",)),
    "spread if possible": (
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]},
        0,
        (),
    ),
    "a claimed volume": (
        {"volumes": [{"emptyDir": {}}, {"persistentVolumeClaim": {"claimName": "a"}}]},
        0,
        ("volumes",),
    ),
    "a claimed device": ({"resourceClaims": [{"name": "gpu"}]}, 0, ("resourceClaims",)),
}


@pytest.mark.parametrize(("spec", "cap", "unmodelled"), CAPS.values(), ids=CAPS.keys())
def test_pods_per_node_and_what_is_not_looked_at(
    spec: dict[str, Any], cap: int, unmodelled: tuple[str, ...]
) -> None:
    made = placement(template(labels={"app": "x"}) | {"spec": pod_spec() | spec})
    assert (made.cap, made.unmodelled) == (cap, unmodelled)


def _ports(*ports: Any, **more: Any) -> dict[str, Any]:
    return {"containers": [container(ports=list(ports))], **more}


PORTS: dict[str, tuple[dict[str, Any], tuple[HostPort, ...]]] = {
    "a port of its own": (_ports({"containerPort": 80}), ()),
    "a host port": (_ports({"hostPort": 80, "containerPort": 8080}), (HostPort("TCP", 80),)),
    "of a protocol, at an address": (
        _ports({"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}),
        (HostPort("UDP", 53, "10.0.0.1"),),
    ),
    "a port of the host's network": (
        _ports({"containerPort": 80}, hostNetwork=True),
        (HostPort("TCP", 80),),
    ),
    "of several containers, each once": (
        {
            "containers": [
                container(ports=[{"hostPort": 81}]),
                container(ports=[{"hostPort": 80}, {"hostPort": 81}]),
            ]
        },
        (HostPort("TCP", 80), HostPort("TCP", 81)),
    ),
    "of a sidecar": (
        {"initContainers": [container(ports=[{"hostPort": 80}], restartPolicy="Always")]},
        (HostPort("TCP", 80),),
    ),
    "of what ends before the pod runs": (
        {"initContainers": [container(ports=[{"hostPort": 80}])]},
        (),
    ),
    "nonsense": (_ports(7, {"hostPort": "80"}, {"hostPort": -1}, {"hostPort": True}), ()),
}


@pytest.mark.parametrize(("spec", "expected"), PORTS.values(), ids=PORTS.keys())
def test_host_ports(spec: dict[str, Any], expected: tuple[HostPort, ...]) -> None:
    made = pod_spec() | spec
    assert placement({"spec": made}).ports == expected
    assert read_pod({"spec": made}).ports == expected
