"""CRD rules against what kube-apiserver 1.36 answered (golden/cel.json)."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from mcad.api.crd import crds
from mcad.sim.failures import Cause
from mcad.sim.objects.cel import BLOCKED, Rules, escape
from mcad.sim.objects.values import validate

GOLDEN = json.loads((Path(__file__).parent / "golden" / "cel.json").read_text())
SCHEMA = GOLDEN["schema"]
RULES = Rules(SCHEMA)
OURS = Rules(crds()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"])

RENAMED = {"tpl": {"b": 1}}
"""kube-apiserver takes {"a": 1} and {"b": 1} for equal if it knows neither field; we do not."""


def thing(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "x.io/v1", "kind": "Rule", "metadata": {"name": "t"}, "spec": spec}


def listed(causes: list[Cause]) -> list[list[str]]:
    return sorted([one.reason, one.message, one.field] for one in causes)


@pytest.mark.parametrize("case", GOLDEN["create"], ids=lambda case: json.dumps(case["spec"]))
def test_a_new_object_is_judged_as_by_kube_apiserver(case: dict[str, Any]) -> None:
    obj = thing(case["spec"])
    before = copy.deepcopy(obj)
    found = validate(obj, SCHEMA)
    assert listed(found + RULES.check(obj, None, found)) == case["causes"]
    assert obj == before


@pytest.mark.parametrize(
    "case",
    [case for case in GOLDEN["update"] if case["new"] != RENAMED],
    ids=lambda case: json.dumps([case["old"], case["new"]]),
)
def test_a_change_is_judged_as_by_kube_apiserver(case: dict[str, Any]) -> None:
    old, new = thing(case["old"]), thing(case["new"])
    assert listed(RULES.check(new, old)) == case["causes"]


def test_an_unknown_field_that_is_renamed_is_a_change() -> None:
    causes = RULES.check(thing({"tpl": {"b": 1}}), thing({"tpl": {"a": 1}}))
    assert [one.message for one in causes] == ["Invalid value: frozen"]


def test_every_rule_of_the_golden_schema_and_of_ours_can_be_evaluated() -> None:
    assert RULES.unsupported == []
    assert OURS.unsupported == []


def test_a_rule_that_cannot_be_compiled_is_named() -> None:
    rule = {"rule": "isURL(self)"}
    schema = {
        "type": "object",
        "properties": {"u": {"type": "string", "x-kubernetes-validations": [rule]}},
    }
    rules = Rules(schema)
    assert len(rules.unsupported) == 1
    assert rules.unsupported[0].startswith("u: isURL(self): ")
    assert rules.check({"u": "x"}) == []


def test_rules_are_not_checked_on_an_object_of_wrong_types() -> None:
    found = [Cause("FieldValueTypeInvalid", "x", "spec.i")]
    assert RULES.check(thing({"i": "x"}), None, found) == [BLOCKED]
    assert Rules({"type": "object"}).check({}, None, found) == []


@pytest.mark.parametrize(
    ("name", "escaped"), [("a", "a"), ("a-b.c/d", "a__dash__b__dot__c__slash__d"), ("in", "__in__")]
)
def test_names_are_escaped(name: str, escaped: str) -> None:
    assert escape(name) == escaped
