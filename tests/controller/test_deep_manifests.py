"""One AppWrapper that nests without end must not stop the reader of all others.

The API server stores up to 10,000 levels; Python's JSON decoder gives up before 1,000. A list that
cannot be decoded would hide every AppWrapper of the cluster, so what is too deep is cut out when it
is read, and refused when it is parsed.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcad.api.appwrapper import parse
from mcad.api.items import MAX_NESTING
from mcad.kube.decode import LEVELS_KEPT, decode
from mcad.kube.errors import BadAnswer
from mcad.kube.port import Response
from tests.api.builders import CATALOG, config_map, read, v1beta1

Json = dict[str, Any]
LEVELS = [LEVELS_KEPT + 1, 990, 2_000, 9_900]


def nested(levels: int) -> str:
    """An AppWrapper as the API server sends it, with so many maps and lists within each other."""
    text = json.dumps(v1beta1(config_map() | {"data": "@"}))
    return text.replace('"@"', '{"a":[' * (levels // 2) + '"x]}"' + "]}" * (levels // 2))


@pytest.mark.parametrize("levels", LEVELS)
def test_a_list_with_a_deep_object_is_read(levels: int) -> None:
    other = v1beta1(config_map())
    body = f'{{"items": [{nested(levels)}, {json.dumps(other)}]}}'.encode()
    first, second = Response(200, body).json()["items"]
    assert second == other
    assert first["metadata"] == other["metadata"]
    problem = parse(first, CATALOG).workload.problem
    assert problem is not None
    assert "is nested too deeply" in str(problem)


def test_what_is_not_too_deep_is_read_as_it_is() -> None:
    text = nested(LEVELS_KEPT // 2)
    assert decode(text.encode()) == json.loads(text)


def test_what_is_cut_is_always_refused() -> None:
    assert MAX_NESTING < LEVELS_KEPT - 10


@pytest.mark.parametrize("levels", [MAX_NESTING // 2, MAX_NESTING + 10])
def test_manifests_may_be_nested_but_not_without_end(levels: int) -> None:
    problem = read(json.loads(nested(levels))).workload.problem
    assert (problem is not None) == (levels > MAX_NESTING)


@pytest.mark.parametrize("body", [b'{"a":', b"[" * 5_000, b'{"a":' * 5_000 + b'"', b"]" * 5_000])
def test_nonsense_stays_nonsense(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        Response(200, body).json()
