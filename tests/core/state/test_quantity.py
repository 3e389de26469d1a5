"""Quantities: the grammar of Kubernetes, its rounding, and texts that are none."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.core.state.quantity import (
    MILLIS,
    UNITS,
    QuantityError,
    amount,
    format_amount,
    parse_quantity,
)

GI = 1 << 30


@pytest.mark.parametrize(
    ("text", "scale", "expected"),
    [
        ("0", UNITS, 0),
        ("256Mi", UNITS, 256 << 20),
        ("1.5Gi", UNITS, 3 * GI // 2),
        ("100m", MILLIS, 100),
        ("2", MILLIS, 2000),
        ("0.5", MILLIS, 500),
        (".5", MILLIS, 500),
        ("5.", UNITS, 5),
        ("5.Gi", UNITS, 5 * GI),
        ("+1", UNITS, 1),
        ("-0", UNITS, 0),
        ("2G", UNITS, 2 * 10**9),
        ("2k", UNITS, 2000),
        ("1E", UNITS, 10**18),
        ("1Ei", UNITS, 1 << 60),
        ("1e3", UNITS, 1000),
        ("1E3", UNITS, 1000),
        ("1e+3", UNITS, 1000),
        ("1E-3", MILLIS, 1),
        ("12e-1", MILLIS, 1200),
        ("007", UNITS, 7),
        ("100000u", MILLIS, 100),
        ("100n", MILLIS, 1),
    ],
)
def test_what_kubernetes_accepts_is_read_as_it_reads_it(
    text: str, scale: int, expected: int
) -> None:
    assert parse_quantity(text, scale) == expected


@pytest.mark.parametrize(
    ("text", "scale", "expected"),
    [
        ("1m", UNITS, 1),
        ("1.1", UNITS, 2),
        ("0.1m", MILLIS, 1),
        ("1.0000000001", UNITS, 2),
        ("1.3Ki", UNITS, 1332),
        ("-1.1", UNITS, -2),
        ("-1.5Gi", UNITS, -3 * GI // 2),
        ("1e-40", UNITS, 1),
    ],
)
def test_what_is_finer_than_the_unit_is_rounded_away_from_zero(
    text: str, scale: int, expected: int
) -> None:
    assert parse_quantity(text, scale, negative=True) == expected


@pytest.mark.parametrize("text", ["10E", "1e40", "9223372036854775808", "9" * 64, "8Ei"])
def test_what_is_too_large_for_kubernetes_is_capped_as_it_does(text: str) -> None:
    assert parse_quantity(text) == 2**63 - 1


NO_QUANTITIES = (
    *("", " ", " 1", "1 ", "1\n", "1e "),
    *(".", "+", "-", "1.2.3", "--1", "1_000", "1,5", "0x10", "NaN", "Infinity", "inf", "١٢", "１"),
    *("1mi", "1KI", "1K", "1ki", "1g", "1Zi", "1e", "1e3Mi", "1e1.5", "1Mi1", "Mi", "m", "1µ"),
)


@pytest.mark.parametrize("text", NO_QUANTITIES)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-1", "'-1' is negative"),
        ("-1m", "is negative"),
        ("1e400000", "beyond 40"),
        ("1e-400000", "beyond 40"),
        ("1e41", "beyond 40"),
        ("1" * 65, "has 65 characters"),
        ("1e" + "9" * 10**6, "has 1000002 characters"),
    ],
)
def test_a_refusal_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(QuantityError, match=words) as caught:
        parse_quantity(text)
    assert len(str(caught.value)) < 200


def test_a_refusal_is_a_value_error() -> None:
    assert issubclass(QuantityError, ValueError)


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        ("cpu", "1500m", 1500),
        ("cpu", "2", 2000),
        ("memory", "1Gi", GI),
        ("memory", "100m", 1),
        ("nvidia.com/gpu", "8", 8),
        ("pods", "110", 110),
        ("ephemeral-storage", "10G", 10**10),
    ],
)
def test_cpu_is_counted_in_milli_everything_else_in_wholes(
    resource: str, text: str, expected: int
) -> None:
    assert amount(resource, text) == expected


def test_amounts_are_never_negative() -> None:
    with pytest.raises(QuantityError):
        amount("cpu", "-1")


@pytest.mark.parametrize(
    ("resource", "value", "expected"),
    [
        ("cpu", 0, "0"),
        ("cpu", 150, "150m"),
        ("cpu", 2000, "2"),
        ("cpu", 2500, "2500m"),
        ("cpu", -150, "-150m"),
        ("cpu", -2000, "-2"),
        ("memory", 0, "0"),
        ("memory", 256 << 20, "256Mi"),
        ("memory", 1706 << 20, "1706Mi"),
        ("memory", 3 * GI // 2, "1536Mi"),
        ("memory", 10**9, "1000000000"),
        ("memory", -(1 << 30), "-1Gi"),
        ("memory", 1 << 60, "1Ei"),
        ("ephemeral-storage", 1 << 40, "1Ti"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("nvidia.com/gpu", 1024, "1024"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_are_written_exactly_and_short(resource: str, value: int, expected: str) -> None:
    assert format_amount(resource, value) == expected


@given(
    st.sampled_from(["cpu", "memory", "hugepages-1Gi", "pods", "example.com/x"]),
    st.integers(0, 2**62 // 1000),
)
def test_what_is_written_is_read_back(resource: str, value: int) -> None:
    assert amount(resource, format_amount(resource, value)) == value


_FACTORS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{s: Fraction(1000**i) for i, s in enumerate("kMGTPE", 1)},
    **{s + "i": Fraction(1024**i) for i, s in enumerate("KMGTPE", 1)},
    **{f"{e}{x}": Fraction(10) ** x for e in "eE" for x in range(-12, 13)},
}


@given(
    st.integers(0, 10**12),
    st.text("0123456789", max_size=9),
    st.sampled_from(sorted(_FACTORS)),
    st.sampled_from([UNITS, MILLIS]),
)
def test_reading_agrees_with_exact_fractions(
    whole: int, part: str, suffix: str, scale: int
) -> None:
    exact = (whole + Fraction(int(part or 0), 10 ** len(part))) * _FACTORS[suffix]
    expected = -(-min(exact, Fraction(2**63 - 1)) * scale // 1)
    assert parse_quantity(f"{whole}.{part}{suffix}", scale) == expected
