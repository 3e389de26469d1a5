"""Misspelled names: which known name was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches

SIMILAR = 0.6
"""The ratio of difflib from which on two names count as similar; its own default."""

ALIKE_MAX = 3
"""How many names one question names, where users chose them: several may be similar."""


def did_you_mean(name: str, known: Iterable[str], most: int = 1, similar: float = SIMILAR) -> str:
    """A question that names at most ``most`` known names like this one, "" if none is similar.

    Neither case nor ``-`` and ``_`` count.
    """
    by_key: dict[str, str] = {}
    for one in known:
        by_key.setdefault(_key(one), one)
    close = get_close_matches(_key(name), by_key, most, similar)
    names = " or ".join(f'"{by_key[key]}"' for key in close)
    return f"Did you mean {names}?" if names else ""


def _key(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")
