"""``helm install`` is all there is to do, and the rights of the chart are those that are needed.

The dispatcher runs as a process with the token of the chart's ServiceAccount and the chart's
ConfigMap, because no image can be pulled here; it walks the tutorial and every sample.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mcad.api.catalog import WELL_KNOWN
from mcad.api.sources import load
from tests.chart import rarely
from tests.chart.cluster import PULLED_NOWHERE, Release, generic
from tests.chart.helm import NAMESPACE, RELEASE, Helm, HelmError
from tests.chart.rights import granted_to
from tests.chart.test_render import INVISIBLE, config_of
from tests.controlplane.audit import AuditEntry
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.operators import KUBERAY, Operators
from tests.e2e import test_samples, test_tutorial
from tests.e2e.process import Dispatcher, printed
from tests.e2e.support import GROUP, create, delete, pod, states

pytestmark = pytest.mark.controlplane

CRD = f"crd/appwrappers.{GROUP}"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"

KINDS = {(one.group, one.resource): one.kind for one in WELL_KNOWN}

WALKED = [
    file
    for file, one in test_samples.EXPECTED.items()
    if one.operator in (None, KUBERAY) and not (one.before or one.after)
]
"""The samples of kinds of Kubernetes and of KubeRay; those of other operators need no other verbs,
and their operators do not run here."""

RARE: dict[tuple[str, str, str], str] = {
    (
        GROUP,
        "appwrappers",
        "get",
    ): "a write met a conflict, or the owner of a taken name is unknown",
    ("", "events", "list"): "the controller of an item does not create its pods",
    ("kueue.x-k8s.io", "workloadpriorityclasses", "list"): "Kueue is installed beside it",
    ("kueue.x-k8s.io", "workloadpriorityclasses", "watch"): "Kueue is installed beside it",
    (GROUP, "appwrappers/finalizers", "update"): "never requested: the admission plugin"
    " OwnerReferencesPermissionEnforcement asks whether it is granted",
    (GROUP, "appwrappers/status", "patch"): "the dispatcher of a release before leads meanwhile",
}
"""Rights that are not used in the walk, and what uses them."""


@pytest.fixture(scope="module")
def release(helm: Helm, control_plane: ControlPlane) -> Release:
    one = Release(helm, control_plane)
    one.install(**PULLED_NOWHERE)
    return one


@pytest.fixture(scope="module")
def walk(control_plane: ControlPlane, release: Release) -> list[AuditEntry]:
    """What the dispatcher asked for: the tutorial, all samples, and what goes wrong at times."""
    plane = control_plane
    account, config = release.account(), ("--config", str(release.config()))
    since = plane.audit_mark()
    with Dispatcher(plane, account, *config) as dispatcher:
        test_tutorial.test_the_tutorial(plane, dispatcher)
    delete(plane)
    plane.remove_node("minikube")
    test_samples.add_nodes(plane)
    with Operators(plane, KUBERAY), Dispatcher(plane, account, *config) as dispatcher:
        test_samples.submit(plane, WALKED)
        rarely.is_refused(plane)
        rarely.names_are_taken(plane)
        rarely.is_taken_back(plane)
        rarely.is_adopted(plane)
        for file in WALKED:
            test_samples.live(plane, dispatcher, file)
        rarely.was_asked(plane, since)
    return [one for one in plane.audit(since) if one.user == ACCOUNT]


def used_by(entries: Iterable[AuditEntry]) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of requests."""
    return {
        (one.api_group, "/".join(filter(None, (one.resource, one.subresource))), one.verb)
        for one in entries
    }


def test_no_right_is_missing(walk: list[AuditEntry]) -> None:
    """Nothing is forbidden, but for what PodSecurity was asked to refuse."""
    refused = [one for one in walk if one.code in (401, 403)]
    assert {one.namespace for one in refused} == {rarely.RESTRICTED}
    assert {(one.verb, one.resource) for one in refused} == {("create", "pods")}


def test_no_right_is_superfluous(helm: Helm, walk: list[AuditEntry]) -> None:
    """Every right is used, or there is a reason. Wrapped kinds that no sample wraps have the verbs
    of those that one does."""
    objects = helm.template(**INVISIBLE)
    granted = {one[1:4] for one in granted_to(objects, RELEASE, NAMESPACE)}
    used, wrapped = used_by(walk), config_of(objects).allowed
    sampled = {(group, plural) for group, plural, verb in used if verb == "create"} & wrapped
    unused = {one for one in granted - used if one[:2] not in wrapped - sampled}
    assert unused <= RARE.keys() <= granted
    assert {(one["apiVersion"], one["kind"]) for one in rarely.one_of_each()} == {
        (f"{group}/v1".removeprefix("/"), KINDS[group, plural]) for group, plural in sampled
    }
    assert {verbs_of(granted, one) for one in wrapped - sampled} <= {
        verbs_of(granted, one) for one in sampled
    }


def verbs_of(rights: set[tuple[str, str, str]], resource: tuple[str, str]) -> frozenset[str]:
    return frozenset(verb for group, plural, verb in rights if (group, plural) == resource)


# -- the release itself -----------------------------------------------------------------------


def test_upgrade_and_uninstall(control_plane: ControlPlane, release: Release) -> None:
    """In one, because each step starts from the one before."""
    plane = control_plane
    plane.add_node("node-3")
    sums = set()
    for seconds in (5, 6):
        release.upgrade("--wait", "--timeout=60s", config={"backoffTime": seconds})
        found = plane.request("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{RELEASE}")[
            1
        ]
        assert found["status"]["readyReplicas"] == 2
        sums.add(found["spec"]["template"]["metadata"]["annotations"]["checksum/config"])
        assert load(release.config()).backoff_time == seconds
    assert len(sums) == 2

    release.upgrade(watchNamespaces=["default"], **PULLED_NOWHERE)
    names = release.objects()
    assert {"role/mcad", "rolebinding/mcad", "clusterrole/mcad", "deployment/mcad"} <= names
    release.upgrade(authorization="none", **PULLED_NOWHERE)
    names = release.objects()
    left = {one for one in names if one.startswith(("role/", "rolebinding/"))}
    assert left == {  # of the Lease, and of the visibility API
        f"{kind}/mcad-{name}"
        for kind in ("role", "rolebinding")
        for name in ("leader", "leader-viewer", "visibility")
    } | {"rolebinding/mcad-visibility-authentication-reader"}
    assert {one for one in names if one.startswith("validating")} == {
        f"validatingadmissionpolicy{kind}/mcad-{name}"
        for kind in ("", "binding")
        for name in ("manifests", "warnings")
    }

    create(plane, generic("survivor", pod("survivor"), namespace="default"))
    said = release.uninstall()
    assert "appwrappers.workload.codeflare.dev" in said
    assert release.objects() == {
        "customresourcedefinition/appwrappers.workload.codeflare.dev",
        "customresourcedefinition/dispatchpauses.workload.codeflare.dev",
        "customresourcedefinition/quotasubtrees.quota.codeflare.dev",
    }
    assert list(states(plane)) == ["survivor"]

    with pytest.raises(HelmError, match="invalid ownership metadata"):
        release.try_elsewhere("elsewhere", **PULLED_NOWHERE)
    release.try_elsewhere("elsewhere", "--take-ownership", **PULLED_NOWHERE)
    release.install(**PULLED_NOWHERE)
    assert "validatingadmissionpolicy/mcad" in release.objects()
    assert list(states(plane)) == ["survivor"]
    with Dispatcher(plane, release.account(), "--config", str(release.config())):
        plane.wait_for(lambda: states(plane) == {"survivor": "Running"}, 30, "the survivor runs")


def test_an_uninstall_without_keep_takes_everything(
    control_plane: ControlPlane, release: Release
) -> None:
    release.upgrade("--install", crds={"keep": False}, **PULLED_NOWHERE)
    release.uninstall()
    assert release.objects() == set()


def test_a_crd_that_kubectl_made_can_be_taken_over(
    control_plane: ControlPlane, release: Release
) -> None:
    release.uninstall("--ignore-not-found")
    control_plane.kubectl("delete", "--ignore-not-found", CRD)
    control_plane.apply(printed("crd"))
    with pytest.raises(HelmError, match="cannot be imported into the current release"):
        release.install(**PULLED_NOWHERE)
    release.install("--take-ownership", **PULLED_NOWHERE)
    assert "customresourcedefinition/appwrappers.workload.codeflare.dev" in release.objects()
