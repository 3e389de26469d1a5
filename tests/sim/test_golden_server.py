"""The golden files, and the OpenAPI document, against a real kube-apiserver.

The other tests of this folder compare the simulator with golden files. This one compares the golden
files with the server, so that a newer Kubernetes cannot leave both behind unnoticed.
"""

import pytest

from mcad.kube.types import Json
from mcad.sim.kinds import BUILTIN
from mcad.sim.objects.builtin import components
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import control_plane
from tests.golden import protobuf, server

__all__ = ["control_plane"]

pytestmark = pytest.mark.controlplane


def test_what_make_golden_writes_is_there_already(control_plane: ControlPlane) -> None:
    different = [
        (path.name, number, line, was)
        for path, text in server.renewed(control_plane)
        for number, (line, was) in enumerate(
            zip(text.splitlines(), path.read_text().splitlines(), strict=True), 1
        )
        if line != was
    ]
    told = "\n".join(
        f"{name}:{at}\n  is    {line}\n  file  {was}" for name, at, line, was in different
    )
    assert not different, f"`make golden` writes them:\n{told}"


def test_the_numbers_of_protobuf_fields_are_those_of_the_go_types() -> None:
    assert protobuf.NUMBERS.read_text() == protobuf.table()


SAID_OTHERWISE = {
    "io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus",  # changed in 1.37, the client's
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresources",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",  # JSON, unnamed
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
}
COMPARED = ("type", "format", "allOf", "$ref", "items", "additionalProperties")


def shape(schema: Json) -> Json:
    kept = {key: schema[key] for key in COMPARED if key in schema}
    if "$ref" in kept:
        return {"allOf": [{"$ref": kept["$ref"]}]}
    for key in ("items", "additionalProperties"):
        if key in kept:
            kept[key] = shape(kept[key])
    return kept


def test_the_types_are_those_of_the_openapi_document(control_plane: ControlPlane) -> None:
    theirs: Json = {}
    for group in sorted({kind.api_version for kind in BUILTIN}):
        path = f"/openapi/v3/{'apis/' if '/' in group else 'api/'}{group}"
        theirs |= control_plane.request("GET", path)[1]["components"]["schemas"]
    ours = components(BUILTIN)
    differences = []
    compared = 0
    for name in sorted(ours.keys() & theirs.keys() - SAID_OTHERWISE):
        for field, schema in (theirs[name].get("properties") or {}).items():
            compared += 1
            mine = ours[name]["properties"].get(field)
            if mine is None or shape(mine) != shape(schema):
                differences.append(f"{name}.{field}: {mine and shape(mine)} for {shape(schema)}")
        if set(ours[name].get("required", ())) != set(theirs[name].get("required", ())):
            differences.append(f"{name}: required")
    assert not differences, "\n".join(differences)
    assert compared > 1000
