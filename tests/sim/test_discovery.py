"""Discovery documents, alone and against those of a real API server."""

from __future__ import annotations

from itertools import chain

import pytest

from mcad.kube.types import Json
from mcad.sim.kinds import KindTable
from mcad.sim.serving import absent, discovery
from tests.controlplane.controlplane import ControlPlane

KUBECTL = f"{discovery.AGGREGATED_TYPE},application/json"
NOT_SERVED = {*chain(*absent.SUBRESOURCES.values()), "approval"}


def _answer(kinds: KindTable, path: str, accept: str = "application/json") -> Json:
    document = discovery.answer(path, accept, kinds)
    assert document is not None, path
    return document


def test_the_form_is_the_first_one_that_the_client_names(kinds: KindTable) -> None:
    assert _answer(kinds, "/apis", KUBECTL)["kind"] == "APIGroupDiscoveryList"
    assert _answer(kinds, "/api", KUBECTL)["items"][0]["metadata"] == {}
    reversed_order = ",".join(reversed(KUBECTL.split(",")))
    assert _answer(kinds, "/apis", reversed_order)["kind"] == "APIGroupList"
    beta = KUBECTL.replace("v=v2", "v=v2beta1")
    assert _answer(kinds, "/apis", beta)["kind"] == "APIGroupList"
    assert _answer(kinds, "/api", "")["kind"] == "APIVersions"


def test_nothing_is_at_other_paths(kinds: KindTable) -> None:
    for path in ("/", "/apis/nope", "/apis/apps/v9", "/api/v2", "/api/v1/pods", "/versions"):
        assert discovery.answer(path, KUBECTL, kinds) is None


def test_the_version_of_a_group_is_that_of_its_newest_kind_whatever_came_first() -> None:
    kinds = KindTable()
    for plural, versions in (("buffers", ("v1alpha1", "v1beta1")), ("requests", ("v1beta1", "v1"))):
        served = [{"name": name, "served": True} for name in versions]
        names = {"plural": plural, "kind": plural.capitalize()}
        spec = {"group": "example.com", "names": names, "scope": "Cluster", "versions": served}
        kinds.set_crd({"metadata": {"name": f"{plural}.example.com"}, "spec": spec})
    group = _answer(kinds, "/apis/example.com")
    assert [one["version"] for one in group["versions"]] == ["v1", "v1beta1", "v1alpha1"]


@pytest.mark.controlplane
def test_every_document_is_that_of_a_real_api_server(plane: ControlPlane, kinds: KindTable) -> None:
    plane.wait_for(
        lambda: any(
            group["metadata"].get("name") == "workload.codeflare.dev" and group["versions"]
            for group in plane.get("/apis", KUBECTL)["items"]
        )
    )
    compared = _compare_aggregated(plane, kinds)
    assert compared == len({(kind.group, kind.version, kind.plural) for kind in kinds.all()})
    for group_version in {kind.api_version for kind in kinds.all()}:
        path = f"/api/{group_version}" if "/" not in group_version else f"/apis/{group_version}"
        theirs, ours = plane.get(path), _answer(kinds, path)
        assert {**theirs, "resources": []} == {**ours, "resources": []}
        served = {one["name"] for one in ours["resources"]}
        shown = [_plain(one) for one in theirs["resources"] if one["name"] in served]
        assert shown == ours["resources"]
        left = {one["name"] for one in theirs["resources"]} - served
        assert {name.partition("/")[2] for name in left if name.partition("/")[0] in served} <= (
            NOT_SERVED
        )
    groups = {kind.group for kind in kinds.all()} - {""}
    theirs = plane.get("/apis")["groups"]
    by_name = {one["name"]: one for one in _answer(kinds, "/apis")["groups"]}
    assert [by_name[one["name"]] for one in theirs if one["name"] in groups - {"autoscaling"}] == [
        one for one in theirs if one["name"] in groups - {"autoscaling"}
    ]
    for group in sorted(groups - {"autoscaling"}):
        path = f"/apis/{group}"
        assert plane.get(path) == _answer(kinds, path)


def _compare_aggregated(plane: ControlPlane, kinds: KindTable) -> int:
    """How many resources were equal."""
    compared = 0
    for path in ("/api", "/apis"):
        theirs = _by_path(plane.get(path, KUBECTL))
        ours = _by_path(_answer(kinds, path, KUBECTL))
        for key, resource in ours.items():
            expected = theirs[key]
            subresources = [
                one
                for one in expected.get("subresources", [])
                if one["subresource"] not in NOT_SERVED
            ]
            expected = {k: v for k, v in expected.items() if k != "subresources"}
            if subresources:
                expected["subresources"] = subresources
            assert resource == expected
            compared += 1
    return compared


def _by_path(document: Json) -> dict[tuple[str, str, str], Json]:
    return {
        (group["metadata"].get("name", ""), version["version"], resource["resource"]): resource
        for group in document["items"]
        for version in group["versions"]
        for resource in version["resources"]
    }


def _plain(resource: Json) -> Json:
    return {key: value for key, value in resource.items() if key != "storageVersionHash"}
