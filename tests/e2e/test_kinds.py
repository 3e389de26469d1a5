"""Kinds that come, change their version, are withheld and go, on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.fleet import wait_until_quiet, writes
from tests.e2e.process import ACCOUNT, NAMESPACE, USER, Dispatcher, install, printed
from tests.e2e.support import (
    GROUP,
    appwrapper,
    conditions_of,
    configmap,
    create,
    delete,
    items,
    phases,
    pod,
    states,
    status_of,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
SOON = 10.0  # seconds; whatever is only looked for now and then takes a minute
SETTINGS = (
    "--set",
    'wrappedResources=[{apiGroup: "", resources: [pods, configmaps]},'
    " {apiGroup: example.com, resources: [widgets]},"
    " {apiGroup: scheduling.x-k8s.io, resources: [podgroups]}]",
)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of its own, because kinds of it are removed."""
    with controlplane_or_skip(kinds=printed("crd")) as plane:
        plane.add_node("node-1", cpu="4", memory="16Gi")
        yield plane


@pytest.fixture(scope="module")
def account(plane: ControlPlane) -> Path:
    """The dispatcher's own, with the rights that follow from the settings."""
    install(plane)
    plane.apply(printed("rbac", "--namespace", NAMESPACE, "--service-account", ACCOUNT, *SETTINGS))
    return plane.kubeconfig_for_token(plane.service_account(NAMESPACE, ACCOUNT), ACCOUNT)


@pytest.fixture(scope="module")
def dispatcher(plane: ControlPlane, account: Path) -> Iterator[Dispatcher]:
    """One process for all of it."""
    with Dispatcher(plane, account, *SETTINGS) as running:
        yield running


def widgets(*versions: str) -> Json:
    """A kind of these tests."""
    return crd_of("example.com", "Widget", *versions)


def crd_of(group: str, kind: str, *versions: str) -> Json:
    """The CRD of a kind without a schema; the first version is the one that is stored."""
    singular = kind.lower()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{singular}s.{group}",
            # A group of Kubernetes itself takes only what is said to be agreed on.
            "annotations": {"api-approved.kubernetes.io": "https://example.com/agreed"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": f"{singular}s", "singular": singular, "kind": kind},
            "versions": [
                {"name": name, "served": True, "storage": not number, "schema": schema}
                for number, name in enumerate(versions)
            ],
        },
    }


def widget(name: str, version: str) -> Json:
    """One of them."""
    return {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": {"name": name}}


def watched(plane: ControlPlane, since: int, version: str) -> bool:
    """Whether the dispatcher has opened a watch of widgets in this version."""
    path = f"/apis/example.com/{version}/widgets?"
    entries = [one for one in plane.audit(since) if one.user == USER and one.verb == "watch"]
    return any(one.uri.startswith(path) for one in entries)


def test_a_kind_that_is_installed_later_is_found(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    create(plane, appwrapper("early", widget("early", "v1alpha1")))
    plane.wait_for(
        lambda: "Backoff" in conditions_of(plane, "early"), SOON, "it waits for its kind"
    )
    assert conditions_of(plane, "early")["Backoff"]["reason"] == "KindNotInstalled"
    plane.apply(widgets("v1alpha1"))
    plane.wait_for(lambda: states(plane)["early"] == "Running", SOON, "the kind is found")
    assert dispatcher.get("/readyz") == (200, "ok\n")


def test_it_is_watched_in_the_version_that_is_preferred_now(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    since = plane.audit_mark()
    plane.apply(widgets("v1alpha1", "v1"))
    plane.wait_for(lambda: watched(plane, since, "v1"), SOON, "the new version is watched")
    create(plane, appwrapper("later", widget("later", "v1")))
    plane.wait_for(lambda: states(plane)["later"] == "Running", SOON, "it is dispatched")


def test_a_gang_of_the_coscheduler_comes_with_its_group_and_goes_with_it(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    """The group is an item without pods of its own: made in its turn, and taken back."""
    plane.apply(crd_of("scheduling.x-k8s.io", "PodGroup", "v1alpha1"))
    plane.restart("kube-controller-manager")  # its garbage collector looks for kinds now and then
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "gang"},
        "spec": {"minMember": 2},
    }
    members = [pod(f"gang-{number}", command=("sleep", "600")) for number in range(2)]
    for one in members:
        one["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "gang"}
    create(plane, appwrapper("gang", group, *members))
    plane.wait_for(lambda: [phases(plane).get(f"gang-{n}") for n in (0, 1)] == ["Running"] * 2)
    groups = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
    (made,) = items(plane, groups)
    labels = made["metadata"]["labels"]
    assert (labels[f"{GROUP}/appwrapper"], labels[f"{GROUP}/item"]) == ("gang", "0")
    for one in items(plane, "/api/v1/namespaces/default/pods"):
        assert one["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "gang"
    assert [one["podSets"] for one in status_of(plane, "gang")["componentStatus"]] == [
        [],
        *[[{"path": "template", "replicas": 1}]] * 2,
    ]
    patch = '{"spec": {"suspend": true}}'
    plane.kubectl("patch", "appwrapper", "gang", "--type=merge", "-p", patch)
    plane.wait_for(lambda: not items(plane, groups), 60, "its group goes with it")
    delete(plane, "gang")


def test_a_kind_that_is_removed_is_told_and_holds_who_needs_it(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    plane.kubectl("delete", "crd", "widgets.example.com")
    degraded = "ok\ndegraded: widgets.example.com: it is not installed\n"
    plane.wait_for(lambda: dispatcher.get("/readyz") == (200, degraded), SOON, "it is told")
    create(plane, appwrapper("other", configmap("other")))
    plane.wait_for(lambda: states(plane)["other"] == "Running", SOON, "others go on")


def test_without_appwrappers_nothing_is_decided(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    """Their CRD is withheld: not served, although all of them are still there."""
    create(plane, appwrapper("kept", pod("kept", command=("sleep", "600"))))
    plane.wait_for(lambda: states(plane).get("kept") == "Running", SOON, "it runs")
    wait_until_quiet(plane)  # its pod does, too, and that is told
    crd = f"appwrappers.{GROUP}"
    names = [one["name"] for one in plane_crd(plane, crd)["spec"]["versions"]]
    serve(plane, crd, dict.fromkeys(names, False))
    plane.wait_for(lambda: dispatcher.get("/readyz")[0] == 503, SOON, "it is not ready")
    since = plane.audit_mark()
    assert "AppWrappers are not installed" in dispatcher.get("/readyz")[1]
    assert dispatcher.get("/api/v1/queue")[0] == 503
    serve(plane, crd, dict.fromkeys(names, True))
    plane.wait_for(lambda: dispatcher.get("/readyz")[0] == 200, SOON, "it is ready again")
    assert writes(plane.audit(since)) == []
    assert states(plane)["kept"] == "Running"
    assert phases(plane)["kept"] == "Running"


def plane_crd(plane: ControlPlane, name: str) -> Json:
    """A CRD as it is."""
    found: Json = json.loads(plane.kubectl("get", "crd", name, "-o", "json"))
    return found


def serve(plane: ControlPlane, name: str, served: dict[str, bool]) -> None:
    """Serve each version of a CRD, or do not."""
    patch = [
        {"op": "replace", "path": f"/spec/versions/{number}/served", "value": value}
        for number, value in enumerate(served.values())
    ]
    plane.kubectl("patch", "crd", name, "--type=json", "-p", json.dumps(patch))
