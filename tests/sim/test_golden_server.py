"""The golden files, and the OpenAPI document, against a real kube-apiserver.

The other tests of this folder compare the simulator with golden files. This one compares the golden
files with the server, so that a newer Kubernetes cannot leave both behind unnoticed.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcad.sim.kinds import BUILTIN
from mcad.sim.objects.builtin import components
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import control_plane

__all__ = ["control_plane"]

pytestmark = pytest.mark.controlplane

GOLDEN = Path(__file__).parent / "golden"
KINDS = {(kind.api_version, kind.kind): kind for kind in BUILTIN}
UID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Json = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def _ready_for_pods(control_plane: ControlPlane) -> None:
    control_plane.create_namespace("golden")


def create(plane: ControlPlane, obj: Json) -> tuple[int, Json]:
    kind = KINDS[obj["apiVersion"], obj["kind"]]
    # The event is about something in the namespace default, so it has to be there as well.
    namespace = "default" if obj["kind"] == "Event" else "golden"
    path = kind.resource.path(namespace if kind.namespaced else None)
    reply: tuple[int, Json] = plane.request("POST", f"{path}?dryRun=All", obj)
    return reply


def causes(answer: Json) -> list[list[str]]:
    listed = (answer.get("details") or {}).get("causes") or []
    found = {
        (one["reason"], UID.sub("UID", one["message"].partition("\n")[0]), one["field"])
        for one in listed
    }
    return sorted(map(list, found))


def expected(case: Json) -> list[list[str]]:
    found = {(reason, UID.sub("UID", text), field) for reason, text, field in case["causes"]}
    return sorted(map(list, found))


def difference(got: Any, wanted: Any, case: Json) -> list[str]:
    return [] if got == wanted else [f"{json.dumps(case)[:200]}\n  is    {got}\n  file  {wanted}"]


def test_refusals_of_built_in_kinds(control_plane: ControlPlane) -> None:
    differences = []
    for case in json.loads((GOLDEN / "validation.json").read_text())["create"]:
        if case["given"]["metadata"].get("generateName"):
            continue  # the answer names what was drawn
        _, answer = create(control_plane, case["given"])
        differences += difference(causes(answer), expected(case), case["given"])
    assert not differences, "\n".join(differences)


def test_defaults_of_built_in_kinds(control_plane: ControlPlane) -> None:
    differences = []
    for case in json.loads((GOLDEN / "defaults.json").read_text()):
        status, answer = create(control_plane, case["given"])
        assert status == 201, f"{case['given']}: {answer}"
        stored = case["stored"]
        # Only what the file says: the rest is not a default, see test_defaults.py.
        missing = list(_not_within(stored, answer, ""))
        differences += difference(missing, [], case["given"])
    assert not differences, "\n".join(differences)


def _not_within(part: Any, whole: Any, path: str) -> list[str]:
    if isinstance(part, dict) and isinstance(whole, dict):
        return [
            one
            for key, value in part.items()
            if (path, key) != (".metadata", "namespace")
            for one in _not_within(value, whole.get(key), f"{path}.{key}")
        ]
    if isinstance(part, list) and isinstance(whole, list) and len(part) == len(whole):
        pairs = enumerate(zip(part, whole, strict=True))
        return [one for i, pair in pairs for one in _not_within(*pair, f"{path}[{i}]")]
    return [] if part == whole else [path]


def custom(plane: ControlPlane, plural: str, kind: str, schema: Json) -> Callable[[Any], Json]:
    """Install a CRD with that schema; what is returned creates objects of it by their specs."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    group = "golden.example.com"
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }
    status, answer = plane.request("POST", CRDS, crd)
    assert status == 201, answer
    path = f"/apis/{group}/v1/namespaces/golden/{plural}"
    plane.wait_for(lambda: plane.request("GET", path)[0] == 200, what=f"{kind} to be served")

    def post(spec: Any) -> Json:
        head = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "t"}}
        answer: Json = plane.request("POST", f"{path}?dryRun=All", head | {"spec": spec})[1]
        return answer

    return post


def test_schemas_of_crds(control_plane: ControlPlane) -> None:
    golden = json.loads((GOLDEN / "schema.json").read_text())
    post = custom(control_plane, "things", "Thing", golden["schema"])
    differences = []
    for case in golden["cases"]:
        answer = post(case["spec"])
        differences += difference(causes(answer), case.get("causes", []), case)
        if "stored" in case:
            differences += difference(answer.get("spec"), case["stored"], case)
    assert not differences, "\n".join(differences)


def test_rules_of_crds(control_plane: ControlPlane) -> None:
    golden = json.loads((GOLDEN / "cel.json").read_text())
    post = custom(control_plane, "rules", "Rule", golden["schema"])
    differences = []
    for case in golden["create"]:
        differences += difference(causes(post(case["spec"])), case["causes"], case)
    assert not differences, "\n".join(differences)


SAID_OTHERWISE = {
    "io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus",  # changed in 1.37, the client's
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresources",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",  # JSON, unnamed
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
}
COMPARED = (
    "type",
    "format",
    "allOf",
    "$ref",
    "items",
    "additionalProperties",
)


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
