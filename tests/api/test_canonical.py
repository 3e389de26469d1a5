"""The form of a payload does not depend on who writes it: hashes of it are on record."""

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
from mcad.api.canonical import survey
from tests.api.builders import config_map, read, v1beta1, v1beta2
from tests.api.strategies import JSON
from tests.api.test_fuzz import OBJECTS

PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def by_python(value: Any) -> bytes:
    """The definition."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


@given(PLAIN)
@example({"é": 1, "z": "\u2028", "a\x7f": '\x00\x1f\b\f/\\"', "\ud800": "\U0001f600", "A": 2**64})
@example({"": [], "a": {}, "aa": [[{}]], "a.b": -(2**63), "B": True})
def test_what_is_plain_is_written_as_python_writes_it(value: Any) -> None:
    assert survey([value], 300).plain
    assert canonical.encode(value, plain=True) == by_python(value)


@given(JSON)
def test_plain_is_what_can_be_written_in_one_way_only(value: Any) -> None:
    plain = survey([value], 300).plain
    try:
        expected = by_python(value)
    except ValueError:  # NaN and the like
        assert not plain
        with pytest.raises(ValueError, match="not JSON compliant"):
            canonical.encode(value, plain=plain)
    else:
        assert canonical.encode(value, plain=plain) == expected


@pytest.mark.parametrize("odd", [1.5, 1e16, float("nan"), date(2026, 1, 1), b"x", (1,), {1}])
@pytest.mark.parametrize("levels", [0, 1, 5])
def test_everything_else_is_left_to_python(odd: Any, levels: int) -> None:
    value = {"a": "b", "c": odd}
    for _ in range(levels):
        value = {"x": 1, "y": [value]}
    assert not survey(value, 300).plain


@given(st.integers(0, 12), st.integers(1, 12), st.booleans())
def test_depth_is_counted_exactly(levels: int, allowed: int, lists: bool) -> None:
    value: Any = {"leaf": 1}
    for _ in range(levels):
        value = [1, value] if lists else {"a": "x", "b": value, "c": [1.5]}
    assert survey(value, allowed).deep == (
        levels + 1 + (levels > 0 and not lists) - (levels > 0 and not lists) > allowed
    )


@pytest.mark.parametrize("obj", OBJECTS[:3], ids=lambda one: one["kind"])
@pytest.mark.parametrize("dialect", [v1beta1, v1beta2])
def test_the_hash_of_a_payload_is_that_of_pythons_text(dialect: Any, obj: Any) -> None:
    """A restart with another version must not take the hash on record for another payload."""
    one = copy.deepcopy(obj) | {"x-é": ["\x7f", 1.0, 1e-7, 10**20, None]}
    parsed = read(dialect(one))
    assert parsed.manifests == (by_python(one),)
    assert parsed.workload.payload == hashlib.sha256(b"[" + by_python(one) + b"]").hexdigest()


def test_the_hash_of_one_payload_as_it_is_on_record() -> None:
    payload = read(v1beta2(config_map())).workload.payload
    assert payload == "b42568706fd37abd046a6f575f617cbc7aa90b5a604bd31fd6bd55dfbd76d839"
