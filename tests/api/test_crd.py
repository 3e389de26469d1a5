"""The schema: structural, complete, and the one that is checked in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.api.crd import crd_yaml, crds, structural
from mcad.api.models import AppWrapperStatus
from mcad.api.quotas import render_quota_status
from mcad.core.state.quota_records import QuotaCondition, QuotaView
from tests.api.test_status import QUEUED, RUNNING, rendered

CHECKED_IN = Path(__file__).parents[2] / "deploy/crds"
PREDECESSORS = Path(__file__).with_name("predecessors.yaml")
CRD, QUOTA_CRD, PAUSE_CRD = crds()
QUOTA_SCHEMA = QUOTA_CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
KNOWN = {
    *("type", "format", "description", "default", "properties", "required", "items", "pattern"),
    *("additionalProperties", "maxItems", "maxLength", "anyOf", "x-kubernetes-validations"),
    *("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"),
    *("x-kubernetes-embedded-resource", "x-kubernetes-list-type", "x-kubernetes-map-type"),
}


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, one in schema.get("properties", {}).items():
        yield from schemas(one, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from schemas(schema[key], f"{path}[]")


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything with a name of its own; elements of lists and values of maps have none."""
    yield from ((path, one) for path, one in schemas(schema) if path and not path.endswith("[]"))


def at(path: str) -> dict[str, Any]:
    return dict(schemas(SCHEMA))[path]


def test_the_checked_in_crds_are_up_to_date() -> None:
    expected = {
        f"{one['spec']['group']}_{plural}.yaml": crd_yaml(plural)
        for one in crds()
        for plural in [one["spec"]["names"]["plural"]]
    }
    found = {path.name: path.read_text(encoding="utf-8") for path in CHECKED_IN.iterdir()}
    assert found == expected, "stale: run `make crd`"


def test_the_text_is_the_object() -> None:
    assert list(yaml.safe_load_all(crd_yaml())) == crds()


ADDED_BY_KUBERNETES = {".apiVersion", ".kind", ".metadata"}
APPLIED_MAX = 256 * 1024  # bytes that `kubectl apply` may write into an annotation
STORED_MAX = 1_500_000  # of one object in etcd


@pytest.mark.parametrize("schema", [SCHEMA, QUOTA_SCHEMA], ids=["appwrapper", "quotasubtree"])
def test_every_field_has_a_description(schema: dict[str, Any]) -> None:
    bare = {path for path, one in fields(schema) if not one.get("description", "").endswith(".")}
    assert bare == ADDED_BY_KUBERNETES


@pytest.mark.parametrize("crd", crds(), ids=lambda crd: crd["spec"]["names"]["plural"])
def test_descriptions_leave_the_crds_small(crd: dict[str, Any]) -> None:
    size = len(json.dumps(crd))
    assert size < min(APPLIED_MAX, STORED_MAX) / 2


def test_both_versions_have_one_schema_and_no_conversion() -> None:
    versions = {one["name"]: one for one in CRD["spec"]["versions"]}
    assert list(versions) == ["v1beta1", "v1beta2"]
    assert versions["v1beta1"]["schema"] == versions["v1beta2"]["schema"]
    assert all(one["served"] for one in versions.values())
    assert [name for name, one in versions.items() if one["storage"]] == ["v1beta2"]
    assert all(one["subresources"] == {"status": {}} for one in versions.values())
    assert CRD["spec"]["conversion"] == {"strategy": "None"}


def test_the_manifests_of_the_predecessors_have_every_field() -> None:
    """So every field of the schema is tried on an API server (test_crd_server)."""
    manifests = list(yaml.safe_load_all(PREDECESSORS.read_text(encoding="utf-8")))
    fields = {name: SCHEMA["properties"][name] for name in ("spec", "status")}
    missing = (unset(one, [aw[name] for aw in manifests], name) for name, one in fields.items())
    assert not list(chain.from_iterable(missing))


def unset(schema: dict[str, Any], values: list[Any], path: str) -> Iterator[str]:
    """Paths of properties that none of the values has."""
    for name, one in schema.get("properties", {}).items():
        found = [value[name] for value in values if name in value]
        if not found:
            yield f"{path}.{name}"
        else:
            yield from unset(one, found, f"{path}.{name}")
    if "items" in schema:
        yield from unset(schema["items"], [one for value in values for one in value], f"{path}[]")
    if isinstance(inner := schema.get("additionalProperties"), dict):
        members = [one for value in values for one in value.values()]
        yield from unset(inner, members, f"{path}{{}}")


def test_names() -> None:
    assert CRD["metadata"]["name"] == "appwrappers.workload.codeflare.dev"
    assert CRD["spec"]["names"]["shortNames"] == ["aw"]
    assert CRD["spec"]["names"]["categories"] == ["mcad"]
    assert CRD["spec"]["scope"] == "Namespaced"


def test_printer_columns_read_state() -> None:
    columns = {one["name"]: one for one in CRD["spec"]["versions"][0]["additionalPrinterColumns"]}
    assert columns["State"]["jsonPath"] == ".status.state"
    assert [name for name, one in columns.items() if not one.get("priority")] == [
        "State",
        "Stalled",
        "Age",
    ]


@pytest.mark.parametrize(
    "schema", [one for whole in (SCHEMA, QUOTA_SCHEMA) for _, one in schemas(whole)]
)
def test_every_part_is_structural(schema: dict[str, Any]) -> None:
    assert schema.keys() <= KNOWN
    if not schema.get("x-kubernetes-int-or-string"):
        assert schema["type"] in {"object", "array", "string", "integer", "number", "boolean"}
    for choice in schema.get("anyOf", ()):
        assert choice.keys() == {"type"}
    if schema.get("type") == "array":
        assert "items" in schema


def test_templates_keep_unknown_fields() -> None:
    for path in (".spec.resources.GenericItems[].generictemplate", ".spec.components[].template"):
        assert at(path)["x-kubernetes-preserve-unknown-fields"]
        assert at(path)["x-kubernetes-embedded-resource"]
        assert "required" not in at(path)


def test_nothing_is_required_that_an_old_object_may_lack() -> None:
    required = {path: one["required"] for path, one in schemas(SCHEMA) if "required" in one}
    assert required == {
        "": ["spec"],
        ".spec.resources.GenericItems[].custompodresources[]": ["replicas", "requests"],
        ".spec.components[]": ["template"],
        ".spec.components[].podSets[]": ["path"],
        ".spec.components[].podSetInfos[].schedulingGates[]": ["name"],
    }


def test_defaults_of_mcad_and_no_others() -> None:
    defaults = {path: one["default"] for path, one in schemas(SCHEMA) if "default" in one}
    assert defaults == {
        ".spec.schedulingSpec.requeuing.timeInSeconds": 300,
        ".spec.schedulingSpec.requeuing.maxTimeInSeconds": 0,
        ".spec.schedulingSpec.requeuing.growthType": "exponential",
        ".spec.schedulingSpec.requeuing.numRequeuings": 0,
        ".spec.schedulingSpec.requeuing.maxNumRequeuings": 0,
    }


def test_keywords_that_a_type_alone_does_not_have() -> None:
    amount = ".spec.resources.GenericItems[].custompodresources[].requests[]"
    assert at(amount)["x-kubernetes-int-or-string"]
    assert at(".status.conditions")["x-kubernetes-list-type"] == "atomic"
    for bounded in ("components", "components[].podSets", "resources.GenericItems"):
        assert at(f".spec.{bounded}")["maxItems"], "a rule reads all of it"


def declared(value: Any, path: str) -> Iterator[str]:
    """The paths of every field in a value."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield f"{path}.{key}"
            yield from declared(one, f"{path}.{key}")
    elif isinstance(value, list):
        for one in value:
            yield from declared(one, f"{path}[]")


@pytest.mark.parametrize("view", [QUEUED, RUNNING])
def test_every_field_that_we_write_is_documented(view: Any) -> None:
    known = {path for path, _ in schemas(structural(AppWrapperStatus), ".status")}
    assert set(declared(rendered(view), ".status")) <= known


# -- the QuotaSubtree ------------------------------------------------------------------------------


def test_a_quota_subtree_is_what_it_was_in_mcad() -> None:
    (version,) = QUOTA_CRD["spec"]["versions"]
    assert QUOTA_CRD["metadata"]["name"] == "quotasubtrees.quota.codeflare.dev"
    assert QUOTA_CRD["spec"]["scope"] == "Namespaced"
    assert QUOTA_CRD["spec"]["names"]["shortNames"] == ["qst"]
    assert (version["name"], version["subresources"]) == ("v1alpha1", {"status": {}})
    assert set(dict(schemas(QUOTA_SCHEMA["properties"]["spec"], ".spec"))) >= {
        ".spec.parent",
        ".spec.parentNamespace",
        ".spec.children[].name",
        ".spec.children[].namespace",
        ".spec.children[].path",
        ".spec.children[].quotas.disabled",
        ".spec.children[].quotas.hardLimit",
        ".spec.children[].quotas.requests[]",
    }


def test_what_is_wrong_with_a_tree_is_no_matter_of_its_schema() -> None:
    """It shows beside its other objects only, so all of it is told in conditions."""
    spec = dict(schemas(QUOTA_SCHEMA["properties"]["spec"]))
    assert not [path for path, one in spec.items() if "required" in one]
    assert not [path for path, one in spec.items() if "x-kubernetes-validations" in one]


def test_the_columns_of_a_quota_subtree() -> None:
    columns = QUOTA_CRD["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [one["name"] for one in columns if not one.get("priority")]
    assert shown == ["Tree", "Parent", "Ready", "Reason", "Age"]
    view = QuotaView(1, (QuotaCondition("Ready", True, "InForce", "", 1),))
    first = render_quota_status(view)["conditions"][0]
    paths = {one["name"]: one["jsonPath"] for one in columns}
    assert paths["Ready"] == ".status.conditions[0].status"
    assert (first["type"], first["status"]) == ("Ready", "True")
