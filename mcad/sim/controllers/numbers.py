"""Numbers or percentages of a spec, and hashes for names."""

from __future__ import annotations

import json

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery/pkg/util/rand
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


def scaled(value: int | str | None, total: int, *, up: bool) -> int:
    """An IntOrString: a number, or a percentage of ``total`` rounded ``up`` or down.

    Text that is no percentage, which a server refuses, counts as 0.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if not value.endswith("%") or not digits.isdecimal():
        return 0
    share = int(digits) * total
    return -(-share // 100) if up else share // 100


def hash_of(value: object) -> str:
    """A short name for a value: the same for equal ones, in the letters that Kubernetes uses.

    kube-controller-manager hashes Go's memory layout, so its names are others.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    number = _FNV_OFFSET
    for byte in text.encode():
        number = ((number ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return "".join(_LETTERS[ord(char) % len(_LETTERS)] for char in str(number))
