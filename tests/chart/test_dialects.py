"""The chart's value ``dialects`` on a real API server: v1beta1 is left out, and comes back."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from mcad.api import crd
from mcad.api.crddiff import first_difference
from tests.chart.cluster import PULLED_NOWHERE, Release
from tests.chart.helm import CHART, Helm, HelmError, of_kind
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.support import GROUP
from tests.manifests import components, generic, pod

Json = dict[str, Any]

OLD, NEW = (f"/apis/{GROUP}/{v}/namespaces/default/appwrappers" for v in ("v1beta1", "v1beta2"))
CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd.NAME}"
ONE, BOTH = ["v1beta2"], ["v1beta1", "v1beta2"]


def served(objects: list[Json]) -> dict[str, bool]:
    """By version of AppWrappers."""
    found = of_kind(objects, "CustomResourceDefinition")
    (ours,) = [one for one in found if one["metadata"]["name"] == crd.NAME]
    return {one["name"]: one["served"] for one in ours["spec"]["versions"]}


def test_both_versions_are_served_by_default(helm: Helm) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["dialects"] == BOTH
    assert served(helm.template()) == {"v1beta1": True, "v1beta2": True}
    assert served(helm.template(dialects=ONE)) == {"v1beta1": False, "v1beta2": True}


@pytest.mark.parametrize(
    ("dialects", "told"),
    [
        (["v1beta1"], "dialects: v1beta2 cannot be left out"),
        ([], "dialects"),
        (["v1"], "dialects"),
    ],
)
def test_v1beta2_cannot_be_left_out(helm: Helm, dialects: list[str], told: str) -> None:
    with pytest.raises(HelmError, match=told):
        helm.template(dialects=dialects)


@pytest.mark.controlplane
def test_v1beta1_is_left_out_once_it_is_not_needed_and_comes_back(
    helm: Helm, control_plane: ControlPlane
) -> None:
    plane, release = control_plane, Release(helm, control_plane)
    release.install(**PULLED_NOWHERE)
    old = generic("old", pod("old", "1"))
    plane.request("POST", OLD, old)
    plane.request("POST", NEW, components("new", pod("new", "1")))
    stored_as(plane, *BOTH)
    with pytest.raises(HelmError, match="Run mcad migrate storage"):
        release.upgrade(**PULLED_NOWHERE, dialects=ONE)
    stored_as(plane, "v1beta2")
    told = r"written as v1beta1 have not ended \(1, default/old for example\)"
    with pytest.raises(HelmError, match=told):
        release.upgrade(**PULLED_NOWHERE, dialects=ONE)
    assert plane.request("GET", OLD)[0] == 200, "nothing has changed"
    before = specs(plane)

    end(plane, "old")
    release.upgrade(**PULLED_NOWHERE, dialects=ONE)
    plane.wait_for(lambda: answers(plane) == (404, 200), what="v1beta1 is not served")
    assert specs(plane) == before
    assert first_difference(plane.get(CRD), crd.crds()[0]) == "", "the dispatcher starts"
    end(plane, "old")
    label = {"metadata": {"labels": {"a": "b"}}}
    merge = "application/merge-patch+json"
    assert plane.request("PATCH", f"{NEW}/old", label, content_type=merge)[0] == 200
    late = generic("late", pod("late", "1")) | {"apiVersion": f"{GROUP}/v1beta2"}
    assert plane.request("POST", NEW, late)[0] == 201, "the shape tells the dialect"
    release.upgrade(**PULLED_NOWHERE, dialects=ONE, logLevel="debug")

    release.upgrade(**PULLED_NOWHERE)
    plane.wait_for(lambda: answers(plane) == (200, 200), what="v1beta1 is served again")
    assert plane.get(f"{OLD}/old")["spec"] == before["old"]
    assert plane.get(f"{OLD}/old")["status"]["state"] == "Completed"


def answers(plane: ControlPlane) -> tuple[int, ...]:
    """To lists of either version; a kind whose CRD has just changed is not there for a moment."""
    return tuple(plane.request("GET", path)[0] for path in (OLD, NEW))


def specs(plane: ControlPlane) -> dict[str, Json]:
    """Of all AppWrappers, by name."""
    return {one["metadata"]["name"]: one["spec"] for one in plane.get(NEW)["items"]}


def stored_as(plane: ControlPlane, *versions: str) -> None:
    """What the CRD says of what may be in etcd."""
    status = {"status": {"storedVersions": list(versions)}}
    merge = "application/merge-patch+json"
    assert plane.request("PATCH", f"{CRD}/status", status, content_type=merge)[0] == 200


def end(plane: ControlPlane, name: str) -> None:
    """The dispatcher writes that it has ended, as it writes every status."""
    found = plane.get(f"{NEW}/{name}")
    meta = {key: found["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    body = {key: found[key] for key in ("apiVersion", "kind")} | {"metadata": meta}
    code, _ = plane.request(
        "PUT", f"{NEW}/{name}/status", body | {"status": {"state": "Completed"}}
    )
    assert code == 200
