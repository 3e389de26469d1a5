"""Metadata of custom objects and of what they embed, in the words of kube-apiserver 1.36."""

import copy
from typing import Any

import pytest

from mcad.sim.objects.custom import decode_custom, embedded_faults

EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
SCHEMA = {
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


def thing(metadata: Any = None, **spec: Any) -> dict[str, Any]:
    meta = {"name": "t"} if metadata is None else metadata
    return {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": meta, "spec": spec}


def test_unknown_fields_of_all_metadata_are_named_and_dropped() -> None:
    owner = {"apiVersion": "v1", "kind": "P", "name": "x", "uid": "u"}
    metadata = {"name": "t", "foo": 1, "ownerReferences": [owner | {"bar": 1}]}
    obj = thing(metadata, emb=POD | {"metadata": {"q": 1, "name": "p"}, "any": 1}, a=1)
    before = copy.deepcopy(obj)
    decoded, unknown = decode_custom(obj, SCHEMA)
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
def test_an_embedded_resource_has_a_head(
    resource: dict[str, Any], faults: list[tuple[str, str]]
) -> None:
    found = embedded_faults(thing(emb=resource), SCHEMA)
    assert [(one.field.removeprefix("spec."), one.message) for one in found] == faults
    in_list = embedded_faults(thing(list=[POD, resource]), SCHEMA)
    assert [one.field.replace("list[1]", "emb") for one in in_list] == [
        f"spec.{field}" for field, _ in faults
    ]
