"""JSONPath of printer columns; the dialect beside client-go's is compared by test_tables.py."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.sim.serving.jsonpath import JsonPath, JsonPathError, text_of

OBJECT: dict[str, Any] = {
    "metadata": {"name": "n", "annotations": {"a.b/c": "dotted", "with space": "s"}},
    "spec": {"list": [{"n": 1, "deep": "x"}, {"n": 2}, {"n": 3}], "none": None, "flag": True},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "message": "it's (all) fine"},
            {"type": "Other", "status": "False"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["n"]),
        ("$.metadata.name", ["n"]),
        ("{.metadata.name}"[1:-1], ["n"]),
        ("['metadata']['name']", ["n"]),
        (r".metadata.annotations.a\.b/c", ["dotted"]),
        (".metadata.annotations['with space']", ["s"]),
        (".spec.list[0].n", [1]),
        (".spec.list[-1].n", [3]),
        (".spec.list[1:].n", [2, 3]),
        (".spec.list[:2].n", [1, 2]),
        (".spec.list[::2].n", [1, 3]),
        (".spec.list[*].n", [1, 2, 3]),
        (".spec.list[0,2].n", [1, 3]),
        (".spec.list[?(@.n>1)].n", [2, 3]),
        (".spec.list[?(@.n>=2)].n", [2, 3]),
        (".spec.list[?(@.n!=2)].n", [1, 3]),
        (".spec.list[?(@.deep)].n", [1]),
        ('.status.conditions[?(@.status=="True")].message', ["it's (all) fine"]),
        ("""..conditions[?(@.message=="it's (all) fine")].type""", ["Ready"]),
        ("..deep", ["x"]),
        (".spec.none", [None]),
        (".spec.none.more", []),
        (".spec.flag", [True]),
        (".missing.key", []),
        (".metadata.*", ["n", {"a.b/c": "dotted", "with space": "s"}]),
        (".spec.flag[?(@.x)]"[:10], [True]),
    ],
)
def test_a_path_finds(path: str, found: list[Any]) -> None:
    assert JsonPath(path).find(OBJECT) == found


@pytest.mark.parametrize(
    "path", [".spec.list[7]", ".spec[0]", ".spec[?(@.a)]", '.spec.list[?(@.n=="1")]']
)
def test_what_cannot_be_evaluated_is_an_error(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path).find(OBJECT)


@pytest.mark.parametrize(
    "path",
    [".a[", ".a[x]", ".a[?(@.b", ".a[?(@.b=~1)]", "range .a", ".", ".a[::0]", "'a", "#"],
)
def test_what_is_no_path_is_an_error(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        (1, "1"),
        (True, "true"),
        (None, "<no value>"),
        (12.0, "12"),
        (1.5, "1.5"),
        (123456789.5, "1.234567895e+08"),
        (1000000.0, "1e+06"),
        (1e-7, "1e-07"),
        (0.0, "0"),
        ({"b": 1, "a": "<"}, '{"a":"\\u003c","b":1}'),
        ([1, "a"], '[1,"a"]'),
    ],
)
def test_values_are_written_as_go_writes_them(value: Any, text: str) -> None:
    assert text_of(value) == text
