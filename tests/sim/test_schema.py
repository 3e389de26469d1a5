"""CRD schemas: pruning, defaults and faults, as kube-apiserver 1.36 answered (golden/schema.json).

Each golden case is the spec of an object of the schema at the top of the file, with what a real
server made of it: the stored spec or the causes of its refusal, and the fields it warned of.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from mcad.sim.objects.schema import default, prune
from mcad.sim.objects.values import validate

GOLDEN = json.loads((Path(__file__).parent / "golden" / "schema.json").read_text())
SCHEMA = GOLDEN["schema"]


def thing(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: json.dumps(case["spec"])[:60])
def test_an_object_is_treated_as_by_kube_apiserver(case: dict[str, Any]) -> None:
    obj = thing(case["spec"])
    before = copy.deepcopy(obj)
    pruned, unknown = prune(obj, SCHEMA)
    complete = default(pruned, SCHEMA)
    causes = validate(complete, SCHEMA)
    assert obj == before
    assert unknown == case.get("unknown", [])
    assert sorted([one.reason, one.message, one.field] for one in causes) == case.get("causes", [])
    if "stored" in case:
        assert complete["spec"] == case["stored"]


def test_what_needs_no_change_is_not_copied() -> None:
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
