"""Quantities as kube-apiserver writes them back: ``0.5`` is ``500m``, ``1024Ki`` is ``1Mi``.

Source: ``ParseQuantity`` and ``CanonicalizeBytes`` of apimachinery's ``pkg/api/resource``. A
quantity keeps its family of suffixes (decimal, binary, exponent) unless that would lose precision,
and its text if that is nearly canonical (``5.``, ``+1``).
"""

import re
from fractions import Fraction
from functools import lru_cache

MALFORMED = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
BAD_SUFFIX = "unable to parse quantity's suffix"

_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(\.(?P<part>[0-9]*))?(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)",
    re.ASCII,
)
_SUFFIX = re.compile(r"|[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3}", re.ASCII)
_SYMBOLS = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_POWERS = {suffix: power for power, suffix in _SYMBOLS.items()}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DIGITS_MAX = 18  # of a number that Go keeps in 64 bits
_LENGTH_MAX = 64
_LARGEST = 2**63 - 1  # of what has a binary suffix; Go says nothing about it
_NANO = 10**9
_MILLI = 10**3
_KIBI = 1024
_CACHED = 8192


@lru_cache(_CACHED)
def quantity(text: str) -> Fraction:
    """The exact amount, rounded away from zero to nanos.

    Raises ``ValueError`` with the server's words.
    """
    sign, whole, part, suffix = _parts(text)
    size = Fraction(int(whole + part or "0"), 10 ** len(part))
    if suffix.endswith("i"):
        size = min(size * _KIBI ** _BINARY.index(suffix), Fraction(_LARGEST))
    else:
        size *= Fraction(10) ** _power(suffix)
    size = _rounded_up(size, _NANO)
    return -size if sign == "-" else size


@lru_cache(_CACHED)
def canonical(text: str) -> str:
    """The quantity as the server stores it in a list of resources, rounded up to thousandths.

    Raises ``ValueError`` with the server's words.
    """
    amount = quantity(text)
    if not amount:
        return "0"
    sign, size = ("-", -amount) if amount < 0 else ("", amount)
    rounded = _rounded_up(size, _MILLI)
    suffix = _parts(text)[3]
    if rounded == size and not suffix.endswith("i") and _is_near(text):
        return text
    if suffix.endswith("i") and rounded >= _KIBI and rounded.denominator == 1:
        return sign + _binary(int(rounded))
    mantissa, power = _decimal(rounded)
    if (_is_exponent(suffix) and power) or power not in _SYMBOLS:
        return f"{sign}{mantissa}e{power}"
    return f"{sign}{mantissa}{_SYMBOLS[power]}"


def _parts(text: str) -> tuple[str, str, str, str]:
    match = _FORM.fullmatch(text)
    if match is None or not text or len(text) > _LENGTH_MAX:
        raise ValueError(MALFORMED)
    suffix = match["suffix"]
    if not _SUFFIX.fullmatch(suffix):
        raise ValueError(BAD_SUFFIX)
    return match["sign"], match["whole"], match["part"] or "", suffix


def _power(suffix: str) -> int:
    return int(suffix[1:]) if _is_exponent(suffix) else _POWERS[suffix]


def _is_exponent(suffix: str) -> bool:
    return suffix[:1] == "e" or (suffix[:1] == "E" and len(suffix) > 1)


def _rounded_up(size: Fraction, per_unit: int) -> Fraction:
    return Fraction(-(-size.numerator * per_unit // size.denominator), per_unit)


def _is_near(text: str) -> bool:
    """Whether Go finds the text good enough to be kept."""
    _, whole, part, suffix = _parts(text)
    digits, scale = whole + part, _power(suffix) - len(part)
    near = scale % 3 == 0 and scale >= -9 and not digits.endswith("000")
    return near and len(digits) <= _DIGITS_MAX and digits[0] != "0"


def _binary(size: int) -> str:
    power = 0
    while size % _KIBI == 0 and power < len(_BINARY) - 1:
        size //= _KIBI
        power += 1
    return f"{size}{_BINARY[power]}"


def _decimal(size: Fraction) -> tuple[int, int]:
    """Mantissa and the largest power of a thousand that leaves it whole."""
    nanos, power = int(size * _NANO), -9
    while nanos % 1000 == 0:
        nanos //= 1000
        power += 3
    return nanos, power
