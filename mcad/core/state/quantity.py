"""Quantities as Kubernetes writes them, to integers and back. Nothing here is ever a float.

The grammar is that of apimachinery's ``resource.Quantity``: a signed decimal number and one suffix,
which is decimal (``n u m k M G T P E``), binary (``Ki Mi Gi Ti Pi Ei``) or an exponent (``e3``,
``E-3``). A fraction of the requested unit is rounded away from zero, as Kubernetes does; a value
above 2^63-1 becomes 2^63-1.
"""

import re
from functools import lru_cache

QUANTITY_LENGTH_MAX = 64
"""Characters of a quantity; the longest in use has 20 digits and a suffix."""

QUANTITY_EXPONENT_MAX = 40
"""Beyond 10^40 every amount is capped at 2^63-1 and below 10^-40 it rounds up to one unit; the
bound keeps ``1e400000`` from building a number of 400,000 digits first."""

QUANTITY_VALUE_MAX = 2**63 - 1
"""The cap of larger values: Kubernetes caps silently; so do we."""

QUANTITY_CACHE_SIZE = 4096
"""Clusters write a few hundred different quantities, over and over."""

UNITS = 1
MILLIS = 1000

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
HUGE_PAGES = "hugepages-"

_QUANTITY = re.compile(
    r"""
    (?P<sign>[+-]?)
    (?: (?P<whole>[0-9]+) (?: \. (?P<part>[0-9]*) )?  |  \. (?P<only>[0-9]+) )
    (?: (?P<suffix>[numkMGTPE]|[KMGTPE]i)  |  [eE](?P<exponent>[+-]?[0-9]+) )?
    """,
    re.VERBOSE,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SHOWN_MAX = 32


class QuantityError(ValueError):
    """A text that Kubernetes would not accept as this quantity."""


@lru_cache(maxsize=QUANTITY_CACHE_SIZE)
def parse_quantity(text: str, scale: int = UNITS, *, negative: bool = False) -> int:
    """The quantity in units of 1/``scale``; ``negative`` admits amounts below zero."""
    if len(text) > QUANTITY_LENGTH_MAX:
        raise QuantityError(
            f"{_shown(text)} has {len(text)} characters, a quantity has at most "
            f"{QUANTITY_LENGTH_MAX}"
        )
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise QuantityError(
            f'{_shown(text)} is not a quantity: write a number such as "2", "0.5" or "1e3", with '
            "at most one suffix of n u m k M G T P E Ki Mi Gi Ti Pi Ei"
        )
    value = _scaled(match, text, scale)
    if match["sign"] != "-":
        return value
    if value and not negative:
        raise QuantityError(f"{_shown(text)} is negative")
    return -value


def _scaled(match: re.Match[str], text: str, scale: int) -> int:
    part = match["part"] or match["only"] or ""
    digits = int((match["whole"] or "") + part)
    power, shift = -len(part), 0
    suffix = match["suffix"]
    if match["exponent"] is not None:
        power += _exponent(match["exponent"], text)
    elif suffix in _BINARY:
        shift = _BINARY[suffix]
    elif suffix is not None:
        power += _DECIMAL[suffix]
    over: int = (digits << shift) * 10 ** max(0, power)
    under: int = 10 ** max(0, -power)
    if over > QUANTITY_VALUE_MAX * under:
        over, under = QUANTITY_VALUE_MAX, 1
    return -(-over * scale // under)


def _exponent(exponent: str, text: str) -> int:
    # The length is checked first: int() of a long text is itself work.
    if len(exponent) > QUANTITY_LENGTH_MAX or abs(int(exponent)) > QUANTITY_EXPONENT_MAX:
        raise QuantityError(
            f"the exponent of {_shown(text)} is beyond {QUANTITY_EXPONENT_MAX}; no amount needs it"
        )
    return int(exponent)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "...")


def amount(resource: str, text: str) -> int:
    """The amount of a resource in the core's unit: milli-CPU, else bytes or counts."""
    return capped(parse_quantity(text, MILLIS if resource == CPU else UNITS))


def capped(value: int) -> int:
    """An amount in the core's unit, at most ``QUANTITY_VALUE_MAX``: a sum of several, or milli-CPU,
    can exceed the range of Kubernetes, and of a journal."""
    return min(value, QUANTITY_VALUE_MAX)


@lru_cache(maxsize=QUANTITY_CACHE_SIZE)
def format_amount(resource: str, value: int) -> str:
    """The shortest exact text for an amount in the core's unit, as Kubernetes would write it."""
    sign, size = ("-", -value) if value < 0 else ("", value)
    if resource == CPU:
        return f"{sign}{size // MILLIS}" if size % MILLIS == 0 else f"{sign}{size}m"
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES):
        return f"{sign}{_binary(size)}"
    return f"{sign}{size}"


def _binary(size: int) -> str:
    if size:
        for suffix, shift in reversed(_BINARY.items()):
            if size % (1 << shift) == 0:
                return f"{size >> shift}{suffix}"
    return str(size)
