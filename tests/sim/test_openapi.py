"""OpenAPI documents: whole in themselves, and where kubectl looks like those of a real server."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from mcad.api.crd import crds
from mcad.kube.types import Json
from mcad.sim.failures import Failure
from mcad.sim.kinds import KindTable
from mcad.sim.serving import openapi
from tests.controlplane.controlplane import ControlPlane

APPWRAPPERS = "apis/workload.codeflare.dev/v1beta2"


def _document(kinds: KindTable, at: str) -> Json:
    document = openapi.answer(f"/openapi/v3/{at}", "application/json", kinds)
    assert document is not None, at
    return document


def _index(kinds: KindTable) -> Json:
    document = openapi.answer("/openapi/v3", "*/*", kinds)
    assert document is not None
    paths: Json = document["paths"]
    return paths


def test_the_hash_changes_with_the_schema_and_the_document_with_it(kinds: KindTable) -> None:
    before = _index(kinds)
    assert "novelty" not in str(_document(kinds, APPWRAPPERS))
    crd = copy.deepcopy(crds()[0])
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["novelty"] = {"type": "string"}
    kinds.set_crd(crd)
    after = _index(kinds)
    assert before[APPWRAPPERS] != after[APPWRAPPERS]
    assert before["api/v1"] == after["api/v1"]
    assert "novelty" in str(_document(kinds, APPWRAPPERS))


def test_other_paths_and_forms_are_not_served(kinds: KindTable) -> None:
    for path in ("/openapi", "/openapi/v3/apis/nope/v1", "/openapi/v30"):
        assert openapi.answer(path, "application/json", kinds) is None
    protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
    with pytest.raises(Failure) as caught:
        openapi.answer("/openapi/v3/api/v1", protobuf, kinds)
    assert caught.value.status()["code"] == 406
    assert openapi.answer("/openapi/v3/api/v1", f"{protobuf},application/json", kinds)


@pytest.mark.controlplane
def test_operations_are_those_of_a_real_api_server(plane: ControlPlane, kinds: KindTable) -> None:
    plane.wait_for(
        lambda: APPWRAPPERS in plane.get("/openapi/v3")["paths"], 60, "the CRD is published"
    )
    index = plane.get("/openapi/v3")["paths"]
    compared = 0
    for at in _index(kinds):
        ours = _document(kinds, at)
        theirs = plane.get(index[at]["serverRelativeURL"])
        for path, item in ours["paths"].items():
            compared += _compare_operations(path, item, theirs["paths"][path])
    assert compared > 50


def _compare_operations(path: str, ours: Json, theirs: Json) -> int:
    """How many operations are about the same kind, and have parameters that a real one has."""
    for method, mine in ours.items():
        other = theirs[method]
        for key in ("x-kubernetes-group-version-kind", "x-kubernetes-action"):
            assert mine[key] == other[key], (path, method, key)
        names = {one["name"] for one in other.get("parameters", ())}
        assert {one["name"] for one in mine["parameters"]} <= names, path
    return len(ours)


@pytest.mark.controlplane
def test_a_custom_schema_is_that_of_a_real_api_server(
    plane: ControlPlane, kinds: KindTable
) -> None:
    name = "dev.codeflare.workload.v1beta2.AppWrapper"
    theirs = plane.get(f"/openapi/v3/{APPWRAPPERS}")["components"]["schemas"]
    ours = _document(kinds, APPWRAPPERS)["components"]["schemas"]
    assert _undescribed(ours[name]) == _undescribed(theirs[name])
    assert _undescribed(ours[f"{name}List"]) == _undescribed(theirs[f"{name}List"])


def _undescribed(value: Any) -> Any:
    """Descriptions of the fields that every kind has are our own."""
    if isinstance(value, dict):
        return {key: _undescribed(one) for key, one in value.items() if key != "description"}
    return [_undescribed(one) for one in value] if isinstance(value, list) else value


def test_version_2_has_no_schemas_so_that_the_server_alone_judges() -> None:
    """kubectl asks for it before it takes a List apart (client-go, ``OpenAPISchema``)."""
    kind, body = openapi.version_2("application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert kind == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"  # @ is no MIME
    assert body.startswith(b"\x0a\x032.0\x12")
    kind, body = openapi.version_2("application/json")
    assert kind == "application/json"
    assert json.loads(body)["paths"] == {}
