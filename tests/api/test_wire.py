"""Times and numbers of any size."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcad.api.wire import as_int, format_instant, parse_instant, read_json, to_json

LAST = "9999-12-31T23:59:59.999999Z"
END = parse_instant(LAST)
YEAR_1000 = parse_instant("1000-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (0, None),
        (1, "1970-01-01T00:00:00.000001Z"),
        (END, LAST),
        (END + 1, LAST),
        (2**62, LAST),
        (10**30, LAST),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (YEAR_1000, "1000-01-01T00:00:00.000000Z"),
        (YEAR_1000 - 1, None),
        (-(10**30), None),
    ],
)
def test_times_saturate(instant: int, text: str | None) -> None:
    assert format_instant(instant) == text


@given(st.integers())
@example(2**63)
@example(-(2**63))
def test_any_time_can_be_written_and_read(instant: int) -> None:
    text = format_instant(instant)
    if instant and YEAR_1000 <= instant <= END:
        assert parse_instant(text) == instant
    else:
        assert text in (None, LAST)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5),
        (2**63 - 1, 2**63 - 1),
        (10**20, 2**63 - 1),
        (-(2**63), -(2**63)),
        (-(10**20), -(2**63)),
        *((other, 7) for other in (None, True, 1.0, "1", [1])),
    ],
)
def test_a_whole_number_has_64_bits(value: Any, number: int) -> None:
    assert as_int(value, 7) == number


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b"\xff", b"1" * 5000])
def test_a_text_that_cannot_be_read_is_none(text: bytes) -> None:
    assert read_json(text) is None


@pytest.mark.parametrize("value", ["\ud800", 2**70, {"b": 1, "a": ["\ud800"]}])
def test_what_the_fast_encoder_refuses_is_written_all_the_same(value: Any) -> None:
    assert read_json(to_json(value)) == value
    assert to_json({"b": value, "a": 1}).startswith(b'{"a":1,"b":')
