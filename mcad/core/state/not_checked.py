"""Predicates of kube-scheduler that no fit test checks, in words."""

from collections.abc import Iterable

from mcad.core.state.model import PodSet

OTHERS_PODS = "podAntiAffinity of others"
"""The name, in ``unmodelled``, of terms of anti-affinity that may select pods outside the
AppWrapper. Terms within it are modelled."""

_OTHERS_PODS = "Its anti-affinity towards pods of other AppWrappers is left to kube-scheduler."


def not_checked(unmodelled: Iterable[str]) -> str:
    """A sentence or two about these predicates; "" without predicates."""
    names = list(dict.fromkeys(unmodelled))
    plain = ", ".join(name for name in names if name != OTHERS_PODS)
    told = (f"Not checked: {plain}." if plain else "", _OTHERS_PODS if OTHERS_PODS in names else "")
    return " ".join(filter(None, told))


def not_checked_of(sets: Iterable[PodSet]) -> str:
    """A sentence or two about all unchecked predicates of these pod sets."""
    return not_checked(name for one in sets for name in one.unmodelled)
