"""The form of a payload does not depend on the encoder: its hashes are recorded."""

from __future__ import annotations

import copy
import hashlib
import json
from datetime import date
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcad.api import canonical
from mcad.api.appwrapper import parse
from tests.api.builders import CATALOG, config_map, read, v1beta1, v1beta2
from tests.api.strategies import JSON
from tests.api.test_fuzz import OBJECTS


def by_python(value: Any) -> bytes:
    """The definition."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


FROM_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(alphabet='e-+0123456789,]}"\\ \x7f\ud800é', max_size=8),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(FROM_JSON)
@example({"é": 1, "z": "\u2028", "a\x7f": '\x00\x1f\b\f/\\"', "\ud800": "\U0001f600", "A": 2**64})
@example({"": [], "a": {}, "aa": [[{}]], "a.b": -(2**63), "B": True})
@example([1e16])
@example({"a": 1e-7, "b": -1.5e300})
@example(5e-324)
def test_what_comes_of_json_is_written_as_python_writes_it(value: Any) -> None:
    assert canonical.encode(value, from_json=True) == by_python(value)


def test_the_fast_way_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fractions, digests and versions in texts do not lead away from it."""
    monkeypatch.setattr(canonical, "_ENCODER", None)
    value = {"image": "a@sha256:3e4", "b": 0.25, "c": ["1e5", {"d": None}], "e": -7, "f": "1e5 ,"}
    assert canonical.encode(value, from_json=True) == by_python(value)


@given(JSON)
def test_whatever_it_is_it_is_written_as_python_writes_it(value: Any) -> None:
    try:
        expected = by_python(value)
    except ValueError:  # NaN and the like
        with pytest.raises(ValueError, match="not JSON compliant"):
            canonical.encode(value)
    else:
        assert canonical.encode(value) == expected


@pytest.mark.parametrize("odd", [float("nan"), date(2026, 1, 1), b"x", {1}])
@pytest.mark.parametrize("levels", [0, 1, 5])
def test_what_json_cannot_express_is_refused(odd: Any, levels: int) -> None:
    value = {"a": "b", "c": odd}
    for _ in range(levels):
        value = {"x": 1, "y": [value]}
    with pytest.raises((TypeError, ValueError)):
        canonical.encode(value)


def depth(value: Any) -> int:
    """Levels of maps and lists."""
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0)


@given(
    st.recursive(
        st.none() | st.text(alphabet='{}[]()"\\,a', max_size=6),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(alphabet='{}[]()"\\', max_size=4), inner, max_size=3)
        ),
        max_leaves=30,
    ),
    st.integers(0, 4),
)
@example({'}"': {"\\": [{'\\"]': ["{"]}]}}, 1)
@example([{"a": "},{},{"}, {"},{": [{}, {}]}, "},{"], 0)
def test_the_depth_is_exact(value: Any, more: int) -> None:
    """Whatever brackets and quotes are in the texts."""
    for _ in range(more):
        value = [value, {"a": "x", "b": value, "c": [1.5]}]
    text = canonical.encode(value)
    levels = depth(value)
    assert not canonical.nests_deeper(text, levels)
    assert levels == 0 or canonical.nests_deeper(text, levels - 1)


@pytest.mark.parametrize("obj", OBJECTS[:3], ids=lambda one: one["kind"])
@pytest.mark.parametrize("dialect", [v1beta1, v1beta2])
@pytest.mark.parametrize("from_json", [False, True])
def test_the_hash_of_a_payload_is_that_of_pythons_text(
    from_json: bool, dialect: Any, obj: Any
) -> None:
    """A restart with another version must not take the hash on record for another payload."""
    one = copy.deepcopy(obj) | {"x-é": ["\x7f", 1.0, 1e-7, 10**20, None]}
    parsed = parse(dialect(one), CATALOG, from_json=from_json)
    assert parsed.manifests == (by_python(one),)
    assert parsed.workload.payload == hashlib.sha256(b"[" + by_python(one) + b"]").hexdigest()


def test_the_hash_of_one_payload_as_it_is_on_record() -> None:
    payload = read(v1beta2(config_map())).workload.payload
    assert payload == "b42568706fd37abd046a6f575f617cbc7aa90b5a604bd31fd6bd55dfbd76d839"
