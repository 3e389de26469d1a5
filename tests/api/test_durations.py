"""Durations as Go's time.ParseDuration reads them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.api.durations import YEAR, YEAR_S, clamp_limit, clamp_seconds, parse_duration
from mcad.core.state.units import SECOND, format_duration

HOUR = 3600 * SECOND
UNITS = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ms": Fraction(1000),
    "s": Fraction(SECOND),
    "m": Fraction(60 * SECOND),
    "h": Fraction(HOUR),
}


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0", 0),
        ("+0", 0),
        ("-0", 0),
        ("0s", 0),
        ("5s", 5 * SECOND),
        ("+5s", 5 * SECOND),
        ("-5s", -5 * SECOND),
        ("1m30s", 90 * SECOND),
        ("1h15m30.918273645s", 4530 * SECOND + 918_273),
        ("1.5h", 90 * 60 * SECOND),
        (".5s", SECOND // 2),
        ("5.s", 5 * SECOND),
        ("168h", 168 * HOUR),
        ("10ms5us", 10_005),
        ("10µs", 10),
        ("10μs", 10),
        ("999ns", 0),
        ("1s1s", 2 * SECOND),
        ("9223372036854775807ns", 9_223_372_036_854_775),
        ("2562047h", 2_562_047 * HOUR),
    ],
)
def test_what_go_reads(text: str, micros: int) -> None:
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    "text",
    [
        *("", "s", "5", "-", "+", ".", ".s", "-.s", "5 s", " 5s", "5s ", "1d", "1w", "5S", "1H"),
        *("--5s", "5-s", "1h-5s", "1e3s", "0x5s", "1_0s", "5s5", "٥s", "1m 30s", "forever"),
        *("9223372036854775808ns", "2562048h", "1" * 80 + "s"),
    ],
)
def test_what_go_refuses(text: str) -> None:
    assert parse_duration(text) is None


PART = st.tuples(
    st.integers(0, 9999),
    st.none() | st.text("0123456789", max_size=9),
    st.sampled_from(sorted(UNITS)),
)


@given(st.sampled_from(["", "+", "-"]), st.lists(PART, min_size=1, max_size=3))
def test_a_duration_is_the_sum_of_its_parts(
    sign: str, parts: list[tuple[int, str | None, str]]
) -> None:
    text, exact = sign, Fraction(0)
    for whole, part, unit in parts:
        text += f"{whole}{'' if part is None else '.' + part}{unit}"
        exact += (whole + Fraction(int(part or 0), 10 ** len(part or ""))) * UNITS[unit]
    told = parse_duration(text)
    if len(text) > 64:
        assert told is None
        return
    assert -1 < exact - abs(told) < 1
    assert (told < 0) <= (sign == "-")


@given(st.integers(-(10**15), 10**15))
def test_a_formatted_duration_is_read_again(micros: int) -> None:
    assert parse_duration(format_duration(micros)) == micros


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0s"),
        (90 * SECOND, "1m30s"),
        (168 * HOUR, "168h"),
        (60 * SECOND, "1m"),
        (SECOND // 4, "0.25s"),
        (-SECOND, "-1s"),
        (HOUR + SECOND, "1h1s"),
    ],
)
def test_how_it_is_written(micros: int, text: str) -> None:
    assert format_duration(micros) == text


@given(st.text(max_size=12))
def test_no_text_raises(text: str) -> None:
    parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "duration", "limit"),
    [
        (-(2**63), 0, 0),
        (-1, 0, 0),
        (0, 0, 0),
        (1, 1, 1),
        (YEAR_S - 1, YEAR_S - 1, YEAR_S - 1),
        (YEAR_S, YEAR_S, 0),
        (2**31 - 1, YEAR_S, 0),
        (2**63 - 1, YEAR_S, 0),
    ],
)
def test_no_duration_is_longer_than_a_year_and_no_limit_is_so_long(
    seconds: int, duration: int, limit: int
) -> None:
    assert clamp_seconds(seconds) == duration
    assert clamp_limit(seconds) == limit
    assert YEAR == YEAR_S * SECOND
