"""Custom objects as kube-apiserver 1.36 judged them: schemas (golden/schema.json: pruning, defaults
and faults) and CEL rules (golden/cel.json); and the metadata of what they embed.

A case of the schema is the spec of an object, with what a real server made of it: the stored spec
or the causes of its refusal, and the fields it warned of.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from mcad.api.crd import crds
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.cel import BLOCKED, Rules, escape
from mcad.sim.objects.custom import decode_custom, embedded_faults
from mcad.sim.objects.schema import default, prune
from mcad.sim.objects.values import validate

GOLDEN, CEL = (
    json.loads((Path(__file__).parent / "golden" / f"{name}.json").read_text())
    for name in ("schema", "cel")
)
SCHEMA = GOLDEN["schema"]
RULES = Rules(CEL["schema"])

RENAMED = {"tpl": {"b": 1}}
"""kube-apiserver takes {"a": 1} and {"b": 1} for equal if it knows neither field; we do not."""


def thing(spec: Any, kind: str = "Thing") -> Json:
    return {"apiVersion": "x.io/v1", "kind": kind, "metadata": {"name": "t"}, "spec": spec}


def rule(spec: Any) -> Json:
    return thing(spec, "Rule")


def listed(causes: list[Cause]) -> list[list[str]]:
    return sorted([one.reason, one.message, one.field] for one in causes)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: json.dumps(case["spec"])[:60])
def test_an_object_is_treated_as_by_kube_apiserver(case: Json) -> None:
    obj = thing(case["spec"])
    before = copy.deepcopy(obj)
    pruned, unknown = prune(obj, SCHEMA)
    complete = default(pruned, SCHEMA)
    causes = validate(complete, SCHEMA)
    assert obj == before
    assert unknown == case.get("unknown", [])
    assert listed(causes) == case.get("causes", [])
    if "stored" in case:
        assert complete["spec"] == case["stored"]


def test_an_object_that_needs_no_change_is_not_copied() -> None:
    obj = thing({"s": "abc", "o": {"x": "1", "y": "2"}, "def": {"a": 1, "b": "c"}, "dn": "x"})
    pruned, unknown = prune(obj, SCHEMA)
    assert pruned is obj
    assert unknown == []
    assert default(obj, SCHEMA) is obj


def test_defaults_are_not_shared_between_objects() -> None:
    first, second = (default(thing({}), SCHEMA)["spec"]["def"] for _ in range(2))
    assert first == second == {"a": 3, "b": "q"}
    assert first is not second


def test_an_embedded_resource_keeps_its_head_when_it_is_pruned() -> None:
    resource = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "foo": 1}
    pruned, unknown = prune(thing({"emb2": resource}), SCHEMA)
    assert pruned["spec"]["emb2"] == {key: resource[key] for key in resource if key != "foo"}
    assert unknown == ["spec.emb2.foo"]


def test_a_fault_that_was_there_before_may_stay() -> None:
    old = thing({"s": "A", "i": 2, "map": [{"k": "a", "v": "x"}, {"k": "b", "v": 1}]})
    new = thing({"s": "A", "i": 9, "map": [{"k": "b", "v": 2}, {"k": "a", "v": "x"}]})
    assert [one.field for one in validate(new, SCHEMA, old)] == ["spec.i"]
    moved = thing({"s": "A", "i": 2, "map": [{"k": "a", "v": "y"}]})
    assert [one.field for one in validate(moved, SCHEMA, old)] == ["spec.map[0].v"]


@pytest.mark.parametrize("case", CEL["create"], ids=lambda case: json.dumps(case["spec"]))
def test_rules_judge_a_new_object_as_kube_apiserver_does(case: Json) -> None:
    obj = rule(case["spec"])
    before = copy.deepcopy(obj)
    found = validate(obj, CEL["schema"])
    assert listed(found + RULES.check(obj, None, found)) == case["causes"]
    assert obj == before


@pytest.mark.parametrize(
    "case",
    [case for case in CEL["update"] if case["new"] != RENAMED],
    ids=lambda case: json.dumps([case["old"], case["new"]]),
)
def test_rules_judge_a_change_as_kube_apiserver_does(case: Json) -> None:
    assert listed(RULES.check(rule(case["new"]), rule(case["old"]))) == case["causes"]


def test_an_unknown_field_that_is_renamed_is_a_change() -> None:
    causes = RULES.check(rule({"tpl": {"b": 1}}), rule({"tpl": {"a": 1}}))
    assert [one.message for one in causes] == ["Invalid value: frozen"]


def test_every_rule_of_the_golden_schema_and_of_ours_can_be_evaluated() -> None:
    ours = Rules(crds()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    assert RULES.unsupported == ours.unsupported == []


def test_a_rule_that_cannot_be_compiled_is_named() -> None:
    field = {"type": "string", "x-kubernetes-validations": [{"rule": "isURL(self)"}]}
    rules = Rules({"type": "object", "properties": {"u": field}})
    assert len(rules.unsupported) == 1
    assert rules.unsupported[0].startswith("u: isURL(self): ")
    assert rules.check({"u": "x"}) == []


def test_rules_are_not_checked_on_an_object_of_wrong_types() -> None:
    found = [Cause("FieldValueTypeInvalid", "x", "spec.i")]
    assert RULES.check(rule({"i": "x"}), None, found) == [BLOCKED]
    assert Rules({"type": "object"}).check({}, None, found) == []


@pytest.mark.parametrize(
    ("name", "escaped"), [("a", "a"), ("a-b.c/d", "a__dash__b__dot__c__slash__d"), ("in", "__in__")]
)
def test_names_are_escaped(name: str, escaped: str) -> None:
    assert escape(name) == escaped


# -- embedded resources --------------------------------------------------------------------------

EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
EMBEDDING = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "emb": EMBEDDED,
                "list": {"type": "array", "items": EMBEDDED},
                "known": {"type": "string"},
            },
        }
    },
}
POD = {"apiVersion": "v1", "kind": "Pod"}


def test_unknown_fields_of_all_metadata_are_named_and_dropped() -> None:
    owner = {"apiVersion": "v1", "kind": "P", "name": "x", "uid": "u"}
    metadata = {"name": "t", "foo": 1, "ownerReferences": [owner | {"bar": 1}]}
    embedded = POD | {"metadata": {"q": 1, "name": "p"}, "any": 1}
    obj = thing({"emb": embedded, "a": 1}) | {"metadata": metadata}
    before = copy.deepcopy(obj)
    decoded, unknown = decode_custom(obj, EMBEDDING)
    assert obj == before
    assert decoded["metadata"] == {"name": "t", "ownerReferences": [owner]}
    assert decoded["spec"] == {"emb": POD | {"metadata": {"name": "p"}, "any": 1}}
    assert unknown == [
        "metadata.foo",
        "metadata.ownerReferences[0].bar",
        "spec.emb.metadata.q",
        "spec.a",
    ]


@pytest.mark.parametrize(
    ("resource", "faults"),
    [
        (POD, []),
        (POD | {"metadata": {"name": "X_y"}}, []),
        ({}, [("emb.apiVersion", "Required value"), ("emb.kind", "Required value")]),
        (
            {"apiVersion": "", "kind": "Pod"},
            [("emb.apiVersion", 'Invalid value: "": must not be empty')],
        ),
        (
            {"apiVersion": "a/b/c", "kind": "Pod", "metadata": {"name": "a/b"}},
            [
                ("emb.apiVersion", 'Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'),
                ("emb.metadata.name", "Invalid value: \"a/b\": may not contain '/'"),
            ],
        ),
    ],
)
def test_an_embedded_resource_has_a_head(resource: Json, faults: list[tuple[str, str]]) -> None:
    found = embedded_faults(thing({"emb": resource}), EMBEDDING)
    assert [(one.field.removeprefix("spec."), one.message) for one in found] == faults
    in_list = embedded_faults(thing({"list": [POD, resource]}), EMBEDDING)
    assert [one.field.replace("list[1]", "emb") for one in in_list] == [
        f"spec.{field}" for field, _ in faults
    ]
