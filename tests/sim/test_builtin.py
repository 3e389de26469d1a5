"""Built-in kinds: their types, the defaults that kube-apiserver 1.36 stored (golden/defaults.json),
and its words of refusal (golden/validation.json).

What golden/defaults.json leaves out is not a default: what the registry and admission set (status,
uid, generation, finalizers, the taint of a new node), and drawn numbers (addresses, node ports).
Two things of a refusal cannot be reproduced: the server prints Go structs, and it appends diffs. Of
the former the text after the value is compared; the latter are not in the golden file. Each fault
counts once.
"""

import copy
import json
import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.kinds import BUILTIN, Kind
from mcad.sim.objects import builtin
from mcad.sim.objects.decoding import decode
from mcad.sim.objects.defaults import default, job_defaults
from mcad.sim.objects.quantities import canonical
from mcad.sim.objects.validation import validate_create, validate_update
from mcad.sim.patching import merge

DEFAULTS, REFUSALS = (
    json.loads((Path(__file__).parent / "golden" / f"{name}.json").read_text())
    for name in ("defaults", "validation")
)
KINDS = {(kind.api_version, kind.kind): kind for kind in BUILTIN}
UID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
SOME_UID = "00000000-0000-0000-0000-000000000000"
STRUCT = re.compile(r"^Invalid value: (\{.*\}|null)(?=: )", re.DOTALL)


def decoded(given: Json) -> tuple[Kind, Json, list[str]]:
    kind = KINDS[given["apiVersion"], given["kind"]]
    struct = builtin.type_of(kind)
    assert struct is not None
    return kind, *decode(given, struct)


def stored(given: Json) -> Json:
    return decoded(given)[1]


def test_the_project_asks_for_a_client_whose_models_tell_their_fields() -> None:
    """Those of 36 are plain classes: `mcad demo` ended in an AttributeError with it."""
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    asked = pyproject["project"]["dependencies"]
    client = next(one for one in map(Requirement, asked) if one.name == "kubernetes")
    assert not client.specifier.contains("36.0.3")
    assert client.specifier.contains(version("kubernetes"))


def pod(**spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }


def container(**more: Any) -> Json:
    return pod(containers=[{"name": "c", "image": "x", **more}])


def test_unknown_fields_fall_away_and_are_named_in_order() -> None:
    obj = container(foo=1, Image="y") | {"foo": 1}
    obj["spec"]["bar"] = {"baz": 1}
    _, result, unknown = decoded(obj)
    assert result == container()
    assert unknown == ["spec.containers[0].foo", "spec.containers[0].Image", "spec.bar", "foo"]


def test_nulls_and_empty_lists_and_maps_fall_away() -> None:
    obj = container(command=None, args=[], env=[], resources={"requests": {}})
    obj["metadata"] |= {"labels": {}, "annotations": None, "creationTimestamp": None}
    assert stored(obj) == container(resources={})


def test_a_null_in_a_list_or_a_map_is_the_zero_value() -> None:
    obj = container(command=[None], resources={"requests": {"cpu": None}})
    obj["spec"]["nodeSelector"] = {"a": None}
    spec = stored(obj)["spec"]
    assert spec["nodeSelector"] == {"a": ""}
    assert spec["containers"][0]["command"] == [""]
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "0"}}


def test_times_are_written_in_utc() -> None:
    obj = pod()
    obj["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05.678+01:00"
    assert stored(obj)["metadata"]["creationTimestamp"] == "2026-01-02T02:04:05Z"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    spec = stored(lease | {"spec": {"renewTime": "2026-01-02T03:04:05Z"}})["spec"]
    assert spec == {"renewTime": "2026-01-02T03:04:05.000000Z"}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2", "2"),
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("1024Ki", "1Mi"),
        ("1025Ki", "1025Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("1e20", "100e18"),
        ("100e1", "1e3"),
        ("5.", "5."),
        ("+1", "+1"),
        ("0.1n", "1m"),
        ("0.123456", "124m"),
        ("0Ki", "0"),
        ("-0.5", "-500m"),
        ("16Ei", "9223372036854775807"),
    ],
)
def test_a_quantity_is_stored_in_canonical_form(given: str, stored: str) -> None:
    assert canonical(given) == stored


@pytest.mark.parametrize("text", ["", "x", "1.2.3", "1_0", " 1", "1K", "1i", "1e"])
def test_what_is_not_a_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantit"):
        canonical(text)


def test_numbers_are_quantities_too() -> None:
    obj = container(resources={"limits": {"cpu": 2, "memory": 0.5}})
    limits = stored(obj)["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "2", "memory": "500m"}


def without_drawn(obj: Json) -> Json:
    if obj["kind"] in {"Node", "Namespace"}:
        obj.pop("spec", None)
    if obj["kind"] != "Node":
        obj.pop("status", None)
    if obj["kind"] == "Service" and obj["spec"].get("clusterIP", "None") != "None":
        obj["spec"].pop("clusterIP")
        obj["spec"].pop("clusterIPs")
    return obj


@pytest.mark.parametrize(
    "case", DEFAULTS, ids=lambda case: f"{case['given']['kind']}-{len(json.dumps(case['given']))}"
)
def test_defaults_are_those_of_kube_apiserver(case: Json) -> None:
    given = case["given"]
    namespace = case["stored"]["metadata"].get("namespace")
    if namespace:
        given = given | {"metadata": given["metadata"] | {"namespace": namespace}}
    kind, obj, unknown = decoded(given)
    before = copy.deepcopy(obj)
    assert without_drawn(default(kind, obj)) == case["stored"]
    assert (obj, unknown) == (before, [])


def test_labels_of_the_manifest_are_not_replaced() -> None:
    template = {"metadata": {"labels": {"job-name": "other"}}, "spec": {}}
    metadata, spec = {"name": "j", "uid": "u-1"}, {"template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    assert job_defaults(job)["spec"]["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": "u-1",
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": "u-1",
        "job-name": "other",  # and validation refuses it
    }


def prepared(given: Json) -> tuple[Kind, Json]:
    kind, obj, _ = decoded(given)
    obj = default(kind, obj)
    if kind.kind == "Job" and "uid" not in obj["metadata"]:
        obj["metadata"]["uid"] = SOME_UID
        obj = job_defaults(obj)
    return kind, obj


def comparable(reason: str, message: str, field: str) -> tuple[str, str, str]:
    return reason, UID.sub("UID", STRUCT.sub("Invalid value: {}", message)), field


def ours(causes: list[Cause]) -> list[tuple[str, str, str]]:
    return sorted({comparable(one.reason, one.message, one.field) for one in causes})


def theirs(case: Json) -> list[tuple[str, str, str]]:
    return sorted({comparable(*cause) for cause in case["causes"]})


def label(case: Json) -> str:
    return f"{case['given']['kind']}-{json.dumps(case['given'].get('spec', case['given']))[:90]}"


@pytest.mark.parametrize("case", REFUSALS["create"], ids=label)
def test_a_new_object_is_judged_as_by_kube_apiserver(case: Json) -> None:
    kind, obj = prepared(case["given"])
    before = copy.deepcopy(obj)
    assert ours(validate_create(kind, obj)) == theirs(case)
    assert obj == before


@pytest.mark.parametrize(
    "case",
    REFUSALS["update"],
    ids=lambda case: f"{case['kind'][1]}-{json.dumps(case['patch'])[:80]}",
)
def test_a_change_is_judged_as_by_kube_apiserver(case: Json) -> None:
    given = case["old"] | dict(zip(("apiVersion", "kind"), case["kind"], strict=True))
    kind, old = prepared(given)
    _, new = prepared(merge(given, case["patch"]))
    assert ours(validate_update(kind, new, old)) == theirs(case)
