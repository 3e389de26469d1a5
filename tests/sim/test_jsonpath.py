"""JSONPath in columns: keys and indexes, and nothing where the path is not read here."""

from typing import Any

import pytest

from mcad.sim.serving.jsonpath import JsonPathError, compiled, find, text_of

LIST = [
    {"kind": "x"},
    {"kind": "x", "said": "first"},
    {"kind": "y", "deep": {"said": "y"}},
    {"kind": "x", "said": "last"},
    "z",
]
OBJ = {"list": LIST, "a": {"b": [{"c": 1}, {"c": "two"}], "x.y": True, "z w": None}, "n": 1.5}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".a.b[1].c", "two"),
        (".a.b[0].c", 1),
        (".a.b[2].c", None),
        (".a.x\\.y", True),
        (".a['z w']", None),
        (".a['x.y']", True),
        ("$.n", 1.5),
        (".n.deeper", None),
        (".missing", None),
        ('.list[?(@.kind=="x")].said', "first"),  # the first one that has it
        ('.list[?(@.kind=="x")][0]', None),
        (".list[?(@.kind=='y')].deep.said", "y"),
        ('.list[?(@.deep.said=="y")].kind', "y"),
        ('.list[?(@.kind=="z")].said', None),
        ('.a[?(@.kind=="x")].said', None),
    ],
)
def test_a_path_leads_to_a_value_or_to_nothing(path: str, value: Any) -> None:
    assert find(OBJ, compiled(path)) == value


@pytest.mark.parametrize(
    "path",
    [".a.b[?(@.c==1)].c", ".a.b[0:1]", ".a.b[*]", ".a.*", "..c", ".a.b[-1]", ".", "a", ".a["],
)
def test_what_is_for_a_real_cluster_is_not_read(path: str) -> None:
    with pytest.raises(JsonPathError):
        compiled(path)


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", "x"), (1, "1"), (True, "true"), ({"b": 1, "a": [None]}, '{"a":[null],"b":1}')],
)
def test_values_are_printed(value: Any, text: str) -> None:
    assert text_of(value) == text
