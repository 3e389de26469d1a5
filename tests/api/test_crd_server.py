"""What a real API server makes of the CRD, of our status, and of the roles."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from mcad.api.config import Config
from mcad.api.crd import NAME, READ_BY_PEOPLE, crds
from mcad.api.labels import GROUP
from mcad.api.rbac import rules
from mcad.api.status import read_status
from mcad.core.state.model import PodCounts
from mcad.core.state.reservation import Eviction, ReservationReason
from mcad.core.state.status_view import StatusView
from tests.api.builders import Map, config_map, deployment, generic, pod, v1beta1, v1beta2
from tests.api.describe import squeezed
from tests.api.test_appwrapper import tutorial
from tests.api.test_status import (
    CLAIM,
    QUEUED,
    QUEUED_DOCUMENT,
    RUNNING,
    RUNNING_DOCUMENT,
    START,
    rendered,
)
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import control_plane

__all__ = ["control_plane"]

pytestmark = pytest.mark.controlplane

BASE = f"/apis/{GROUP}"
PREDECESSORS = Path(__file__).with_name("predecessors.yaml")
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module", name="plane")
def established(control_plane: ControlPlane) -> ControlPlane:
    install(control_plane, crds()[0])
    return control_plane


def install(plane: ControlPlane, crd: Map) -> None:
    """Apply, and wait until the API server serves what was applied."""
    plane.apply([crd])

    def serves() -> bool:
        _, found = plane.request(
            "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}"
        )
        said = {one["type"]: one["status"] for one in found["status"].get("conditions") or []}
        return said.get("Established") == "True" and "NonStructuralSchema" not in said

    plane.wait_for(serves, 10, "the CRD is established")


def named(aw: Map, name: str) -> Map:
    made = copy.deepcopy(aw)
    made["metadata"] = {"name": name}
    return made


def path(version: str = "v1beta2", name: str = "", tail: str = "") -> str:
    return "/".join(filter(None, [BASE, version, "namespaces/default/appwrappers", name, tail]))


def create(plane: ControlPlane, aw: Map, *, strict: bool = True) -> tuple[int, Map]:
    version = aw["apiVersion"].rpartition("/")[2]
    query = "?fieldValidation=Strict" if strict else ""
    return plane.request("POST", path(version) + query, aw)


def created(plane: ControlPlane, aw: Map) -> Map:
    status, made = create(plane, aw)
    assert status == 201, made.get("message")
    return made


def patch(plane: ControlPlane, name: str, change: Map, tail: str = "") -> tuple[int, str]:
    status, answer = plane.request("PATCH", path(name=name, tail=tail), change, content_type=MERGE)
    return status, answer.get("message", "")


def say(plane: ControlPlane, name: str, view: StatusView) -> tuple[int, str]:
    """Replace the status as the dispatcher does."""
    _, found = plane.request("GET", path(name=name))
    kept = ("name", "namespace", "uid", "resourceVersion")
    said = {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "metadata": {key: found["metadata"][key] for key in kept},
        "status": rendered(view),
    }
    status, answer = plane.request("PUT", path(name=name, tail="status"), said)
    return status, answer.get("message", "")


def test_templates_are_stored_as_they_were_sent(plane: ControlPlane) -> None:
    for version in ("v1beta1", "v1beta2"):
        aw = named(tutorial("aw-1", 2, "75m"), f"kept-{version}")
        aw["apiVersion"] = f"{GROUP}/{version}"
        assert created(plane, aw)["spec"] == aw["spec"]
        for served in ("v1beta1", "v1beta2"):
            _, stored = plane.request("GET", path(served, f"kept-{version}"))
            assert stored["spec"] == aw["spec"]


def test_leftovers_of_old_manifests_are_accepted_strictly(plane: ControlPlane) -> None:
    entry = {"replicas": 1, "requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": "2"}}
    item = generic(
        pod(), replicas=1, metadata={}, priority=5.0, priorityslope=0.5, custompodresources=[entry]
    )
    aw = named(v1beta1(item, priority=3, service={"spec": {"ports": []}}), "leftovers")
    aw["spec"]["resources"]["Items"] = []
    aw["spec"]["schedulingSpec"] = {"minAvailable": 2, "requeuing": {"timeInSeconds": 5}}
    requeuing = created(plane, aw)["spec"]["schedulingSpec"]["requeuing"]
    assert requeuing["growthType"] == "exponential"


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_every_field_of_the_predecessors_is_accepted_strictly(
    plane: ControlPlane, version: str
) -> None:
    """In either version, with nothing taken away: neither of the spec nor of a status that is
    there already."""
    for aw in yaml.safe_load_all(PREDECESSORS.read_text(encoding="utf-8")):
        aw["apiVersion"] = f"{GROUP}/{version}"
        made = created(plane, aw)
        assert made["spec"] == without_nulls(aw["spec"])
        made["status"] = aw["status"]
        name = aw["metadata"]["name"]
        url = path(version, name, "status") + "?fieldValidation=Strict"
        status, stored = plane.request("PUT", url, made)
        assert status == 200, stored["message"]
        assert without_nulls(stored["status"]) == without_nulls(aw["status"])
        plane.request("DELETE", path(name=name))


def without_nulls(value: Any) -> Any:
    """Go clients write a null for a time that is not set, and the API server takes it away."""
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


REFUSED = [
    ('unknown field "spec.prioritty"', v1beta1(pod(), prioritty=3)),
    (
        "generictemplate.kind: Required value",
        v1beta1({"apiVersion": "v1", "metadata": {"name": "a"}}),
    ),
    (
        "must be of type integer",
        v1beta1(generic(config_map(), custompodresources=[{"replicas": "2", "requests": {}}])),
    ),
    (
        "should match",
        v1beta1(
            generic(config_map(), custompodresources=[{"replicas": 2, "requests": {"cpu": "x"}}])
        ),
    ),
    ("exactly one of", v1beta1(pod(), components=[{"template": pod()}])),
    ("exactly one of", {**v1beta1(), "spec": {"priority": 1}}),
]


@pytest.mark.parametrize(("message", "aw"), REFUSED)
def test_what_the_schema_refuses(plane: ControlPlane, message: str, aw: Map) -> None:
    status, answer = create(plane, named(aw, "refused"))
    assert status in (400, 422)
    assert message in answer["message"]


def test_a_template_without_metadata_is_ours_to_refuse(plane: ControlPlane) -> None:
    created(plane, named(v1beta1({"apiVersion": "v1", "kind": "Pod"}), "no-metadata"))


def components(*things: Map) -> list[Map]:
    sets = [{"path": "template.spec.template", "replicas": 2}]
    return [{"template": thing, "podSets": sets} for thing in things]


def changed(**change: Any) -> Map:
    """The spec of one component with something changed in it."""
    return {"components": [components(deployment())[0] | change]}


MUTABLE = [
    ("", {"suspend": True}),
    ("", {"priority": 7}),
    ("", changed(podSetInfos=[{"nodeSelector": {"a": "b"}}])),
    (
        "",
        changed(
            podSets=[{"path": "template.spec.template", "replicas": 2, "annotations": {"a": "b"}}]
        ),
    ),
    ("templates of components cannot", changed(template=deployment(replicas=3))),
    (
        "podSets[].path of components cannot",
        changed(podSets=[{"path": "template.spec", "replicas": 2}]),
    ),
    (
        "podSets[].replicas of components cannot",
        changed(podSets=[{"path": "template.spec.template", "replicas": 3}]),
    ),
    ("cannot be changed", changed(podSets=None)),
    ("templates of components cannot", {"components": components(deployment(), deployment("b"))}),
    (
        "resources cannot be replaced by components",
        {"components": None, "resources": {"GenericItems": [generic(pod())]}},
    ),
    ("managedBy cannot be changed", {"managedBy": "somebody.else/else"}),
]


@pytest.mark.parametrize(("message", "change"), MUTABLE)
def test_what_may_be_changed(plane: ControlPlane, message: str, change: Map) -> None:
    name = "mutable"
    plane.request("DELETE", path(name=name))
    created(plane, named(v1beta2(*components(deployment())), name))
    status, said = patch(plane, name, {"spec": change})
    assert (status == 200) is (not message), said
    assert message in said


def test_one_unknown_key_for_another_escapes_the_rules(plane: ControlPlane) -> None:
    """Why the hash of the payload is looked at as well (P8)."""
    created(plane, named(v1beta2(config_map()), "swapped"))
    swapped = {"template": {**config_map(), "data": None, "binaryData": {"a": "b"}}}
    assert patch(plane, "swapped", {"spec": {"components": [swapped]}}) == (200, "")


def test_v1beta1_may_be_edited_while_it_queues(plane: ControlPlane) -> None:
    created(plane, named(v1beta1(deployment()), "edited"))
    items = [generic(deployment(replicas=9)), generic(pod())]
    assert patch(plane, "edited", {"spec": {"resources": {"GenericItems": items}}})[0] == 200


def test_no_rule_fails_the_status_of_an_object_that_an_older_schema_let_in(
    plane: ControlPlane,
) -> None:
    lax = copy.deepcopy(crds()[0])
    for version in lax["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"]
    install(plane, lax)
    old = named(v1beta1(pod(), components=[{"template": pod()}]), "old")
    plane.wait_for(lambda: create(plane, old)[0] in (201, 409), 10, "the lax schema is served")
    install(plane, crds()[0])
    strict = named(v1beta1(pod(), components=[{"template": pod()}]), "new")
    dry = path("v1beta1") + "?dryRun=All"
    plane.wait_for(lambda: plane.request("POST", dry, strict)[0] == 422, 10, "rules are back")
    status, said = say(plane, "old", QUEUED)
    assert status == 200, said


# Status


def documented(plane: ControlPlane, name: str, document: str) -> list[str]:
    """The lines of a description that the document does not have; the others are in its order."""
    text = plane.kubectl("describe", "appwrapper", name)
    lines = squeezed(text.partition("\nStatus:\n")[2].partition("\nEvents:")[0])
    rest = iter(lines)
    for line in squeezed(document):
        assert line in rest, f"{line!r} is missing or out of order in:\n{text}"
    return [line for line in lines if line not in squeezed(document)]


def test_kubectl_describes_a_queued_appwrapper_as_the_tutorial_does(plane: ControlPlane) -> None:
    created(plane, named(tutorial("aw-2", 2, "75m"), "queued"))
    assert say(plane, "queued", QUEUED) == (200, "")
    assert documented(plane, "queued", QUEUED_DOCUMENT) == ["Observed Generation: 1"]


def test_kubectl_describes_a_running_appwrapper_as_the_documents_do(plane: ControlPlane) -> None:
    created(plane, named(tutorial("aw-1", 2, "100m"), "running"))
    assert say(plane, "running", QUEUED) == (200, "")
    assert say(plane, "running", RUNNING) == (200, "")
    added = {line.partition(":")[0] for line in documented(plane, "running", RUNNING_DOCUMENT)}
    assert {"Dispatch", "Running", "Observed Generation"} <= added
    assert "Number Of Requeueings" not in added, "the zeros are gone"


def test_status_survives_the_way_through_the_server(plane: ControlPlane) -> None:
    created(plane, named(v1beta1(pod()), "survivor"))
    evicted = replace(RUNNING, dispatch=replace(RUNNING.dispatch, preemptor="uid"))
    for view in (
        replace(QUEUED, reservation=replace(CLAIM, nodes=("n1",), waits_for=("team/a",))),
        replace(
            evicted, eviction=Eviction(2, ReservationReason.RECLAIMING, "uid", "team/b", START)
        ),
        RUNNING,
        replace(RUNNING, dispatch=None, pods=PodCounts()),
        QUEUED,
    ):
        assert say(plane, "survivor", view) == (200, "")
        _, stored = plane.request("GET", path(name="survivor"))
        saved = read_status(stored["status"])
        assert saved.dispatch == view.dispatch
        assert saved.conditions == view.conditions
        assert (saved.reservation, saved.eviction) == (view.reservation, view.eviction)
        assert stored["status"] == rendered(view)


def test_columns_and_short_name(plane: ControlPlane) -> None:
    created(plane, named(v1beta1(pod(), priority=7), "listed"))
    say(plane, "listed", QUEUED)
    header, line = plane.kubectl("get", "aw", "listed").splitlines()
    assert header.split() == ["NAME", "STATE", "STALLED", "AGE"]
    assert line.split()[:2] == ["listed", "Pending"]
    wide = plane.kubectl("get", "aw", "listed", "-o", "wide").splitlines()[1]
    assert "7" in wide
    assert "Insufficient resources to dispatch AppWrapper." in wide
    assert "listed" in plane.kubectl("get", "mcad")


# Roles


def test_the_dispatcher_may_do_what_it_has_to_and_no_more(plane: ControlPlane) -> None:
    plane.apply(rules(Config(), "default", "robot"))

    def may(verb: str, resource: str, group: str = "", part: str = "") -> bool:
        asked = {"verb": verb, "group": group, "resource": resource, "subresource": part}
        user = "system:serviceaccount:default:robot"
        review = {"spec": {"user": user, "resourceAttributes": asked | {"namespace": "default"}}}
        url = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return plane.request("POST", url, review)[1]["status"]["allowed"] is True

    plane.wait_for(lambda: may("create", "jobs", "batch"), 10, "the roles are known")
    for right in (
        ("watch", "appwrappers", GROUP),
        ("update", "appwrappers", GROUP, "status"),
        ("patch", "appwrappers", GROUP, "status"),  # by the release before, which may still lead
        ("patch", "appwrappers", GROUP),  # finalizers have no subresource of their own
        ("list", "mutatingwebhookconfigurations", "admissionregistration.k8s.io"),
        ("update", "appwrappers", GROUP, "finalizers"),
        ("watch", "customresourcedefinitions", "apiextensions.k8s.io"),
        ("watch", "limitranges"),
        ("watch", "priorityclasses", "scheduling.k8s.io"),
        ("list", "nodes"),
        ("delete", "pods"),
        ("create", "events", "events.k8s.io"),
    ):
        assert may(*right), right
    for right in (
        ("update", "jobs", "batch"),
        ("patch", "pods"),
        ("create", "pods", "", "exec"),
        ("create", "serviceaccounts"),
        ("create", "rolebindings", "rbac.authorization.k8s.io"),
        ("impersonate", "serviceaccounts"),
        ("update", "appwrappers", GROUP),
        ("delete", "appwrappers", GROUP),
        ("update", "mutatingwebhookconfigurations", "admissionregistration.k8s.io"),
        ("patch", "customresourcedefinitions", "apiextensions.k8s.io"),
        ("patch", "leases", "coordination.k8s.io"),  # outside of kube-system
    ):
        assert not may(*right), right


def test_a_template_may_be_as_large_as_we_allow(plane: ControlPlane) -> None:
    big = config_map() | {"data": {"a": "x" * (1 << 20)}}
    made = created(plane, named(v1beta1(big), "big"))
    assert len(json.dumps(made)) > 1 << 20
    patched = say(plane, "big", RUNNING)
    assert patched == (200, "")


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_kubectl_explains_what_people_read_in_a_status(plane: ControlPlane, version: str) -> None:
    command = ("explain", "appwrappers.status", f"--api-version={GROUP}/{version}")
    known = lambda: "FIELDS:" in plane.kubectl(*command, check=False)  # noqa: E731
    plane.wait_for(known, what="kubectl knows the kind")
    told = plane.kubectl(*command)
    fields = told.partition("FIELDS:")[2]
    for name in READ_BY_PEOPLE:
        _, found, rest = fields.partition(f"\n  {name}\t<")
        assert found, name
        words = rest.partition("\n")[2].partition("\n\n")[0].split()
        assert len(words) > 2, f"{name} has no description"
        assert "no description" not in " ".join(words), name
    assert "dispatch" in told.partition("FIELDS:")[0], "the others are named in the description"
