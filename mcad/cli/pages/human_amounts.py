"""Readable quantities: ``6.1Gi`` for 6382092Ki. The output for scripts stays exact."""

from __future__ import annotations

from functools import lru_cache

from mcad.core.state.quantity import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES,
    MEMORY,
    MILLIS,
    parse_quantity,
)

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MILLIS_SHOWN = 100_000  # 100 CPUs: above, thousandths are not shown


@lru_cache(maxsize=4096)  # a long queue has few different amounts
def human_amount(resource: str, quantity: str) -> str:
    """The amount in few digits if it is in bytes or many CPUs, else unchanged."""
    if resource == CPU:
        return _cpus(quantity)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES):
        return _bytes(parse_quantity(quantity, negative=True))
    return quantity


def _cpus(quantity: str) -> str:
    millis = parse_quantity(quantity, MILLIS, negative=True)
    if abs(millis) < _MILLIS_SHOWN or millis % MILLIS == 0:
        return quantity
    return f"{'-' * (millis < 0)}{_tenths(abs(millis), MILLIS)}"


def _bytes(size: int) -> str:
    """In the largest unit that gives at least 1, with one decimal."""
    sign, size = ("-", -size) if size < 0 else ("", size)
    power = min((size.bit_length() - 1) // 10, len(_BINARY) - 1) if size else 0
    if power and _tenths(size, 1 << 10 * power) == "1024":
        power += 1
    return f"{sign}{_tenths(size, 1 << 10 * power)}{_BINARY[power]}"


def _tenths(amount: int, unit: int) -> str:
    """``amount / unit``, rounded half up to tenths; whole numbers without a decimal."""
    tenths = (20 * amount + unit) // (2 * unit)
    whole, part = divmod(tenths, 10)
    return f"{whole}.{part}" if part else str(whole)
