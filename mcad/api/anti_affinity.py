"""Required podAntiAffinity by hostname: which pod sets of an AppWrapper share no node.

As in kube-scheduler a term works both ways: a pod goes to no node with a pod that its term selects,
nor with one that has a term which selects it. Terms of other topologies or namespaces are not
modelled, and neither are pods outside the AppWrapper: any term may select some, but for one that
selects by a label which a controller makes for its own pods.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mcad.api.wire import Json, Map, as_list, as_map, as_text
from mcad.core.state.model import HOSTNAME, PodSet
from mcad.core.state.records import replace

NAME = "podAntiAffinity"
"""The name of the predicate in ``unmodelled``."""

_ELSEWHERE = ("namespaces", "namespaceSelector")

_OF_ONE_CONTROLLER = {
    "pod-template-hash",
    "controller-revision-hash",
    "job-name",
    "controller-uid",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/controller-uid",
}
"""Labels that controllers add: each has another value for its pods than any other controller."""


class Term(NamedTuple):
    """A label selector of pods that share no node with those of the term.

    ``own`` terms select only pods of their own set: they have matchLabelKeys that its controller
    adds, as ``pod-template-hash``.
    """

    labels: tuple[tuple[str, str], ...]
    expressions: tuple[tuple[str, str, tuple[str, ...]], ...]
    own: bool = False

    def selects(self, labels: Map) -> bool:
        """Whether the selector matches; an empty one matches everything."""
        if any(labels.get(key) != value for key, value in self.labels):
            return False
        return all(
            _is_satisfied(labels.get(key), operator, values)
            for key, operator, values in self.expressions
        )


class PodLabels(NamedTuple):
    """What decides about the pods of one set: their labels and terms."""

    labels: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] = ()


def read_terms(affinity: Map, labels: Map) -> tuple[tuple[Term, ...], bool]:
    """The required terms by hostname of a pod with these labels, and whether there are others."""
    required = as_list(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    found = [_read_term(as_map(term), labels) for term in required]
    terms = [term for term in found if term is not None]
    return tuple(dict.fromkeys(terms)), len(terms) < len(found)


def may_select_others(terms: Sequence[Term]) -> bool:
    """Whether a term may select pods outside the AppWrapper."""
    return not all(term.own for term in terms)


def _read_term(term: Map, labels: Map) -> Term | None:
    if term.get("topologyKey") != HOSTNAME or "labelSelector" not in term:
        return None
    if any(term.get(key) for key in _ELSEWHERE):
        return None
    match, mismatch = _texts(term, "matchLabelKeys"), _texts(term, "mismatchLabelKeys")
    added = {key for key in match if key not in labels}
    if not added <= _OF_ONE_CONTROLLER or not all(key in labels for key in mismatch):
        return None  # a key that only the pod may have
    keys = [(key, "In") for key in match if key not in added]
    keys += [(key, "NotIn") for key in mismatch]
    selector = as_map(term["labelSelector"])
    expressions = [
        (as_text(one.get("key")), as_text(one.get("operator")), _texts(one, "values"))
        for one in as_list(selector.get("matchExpressions"))
        if isinstance(one, dict)
    ]
    expressions += [(key, operator, (as_text(labels[key]),)) for key, operator in keys]
    return Term(
        tuple(
            sorted((key, as_text(one)) for key, one in as_map(selector.get("matchLabels")).items())
        ),
        tuple(expressions),
        own=bool(added),
    )


def _texts(of: Map, field: str) -> tuple[str, ...]:
    return tuple(one for one in as_list(of.get(field)) if isinstance(one, str))


def _is_satisfied(value: Json, operator: str, values: Sequence[str]) -> bool:
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False


def relate(sets: Sequence[PodSet], pods: Sequence[PodLabels]) -> tuple[PodSet, ...]:
    """The pod sets of an AppWrapper, with the numbers of the terms that concern several of them.
    What a term selects of a DaemonSet besides is not modelled, and named."""
    repels: list[list[int]] = [[] for _ in sets]
    repelled: list[list[int]] = [[] for _ in sets]
    partly: set[int] = set()
    number = 0
    for term, holders in _by_term(pods).items():
        selects = [term.selects(dict(one.labels)) for one in pods]
        partly.update(at for at in holders if not _is_modelled(term, at, selects, sets))
        holders = [at for at in holders if not sets[at].per_node]
        selected = [at for at, one in enumerate(sets) if selects[at] and not one.per_node]
        if term.own or not holders or not selected or len({*holders, *selected}) == 1:
            continue  # a bound per node says all of it
        for at in holders:
            repels[at].append(number)
        for at in selected:
            repelled[at].append(number)
        number += 1
    return tuple(
        replace(
            one,
            repels=tuple(repels[at]),
            repelled=tuple(repelled[at]),
            unmodelled=_with_name(one.unmodelled) if at in partly else one.unmodelled,
        )
        if repels[at] or repelled[at] or at in partly
        else one
        for at, one in enumerate(sets)
    )


def _by_term(pods: Sequence[PodLabels]) -> dict[Term, list[int]]:
    """The positions of the sets with each term."""
    found: dict[Term, list[int]] = {}
    for at, one in enumerate(pods):
        for term in one.terms:
            found.setdefault(term, []).append(at)
    return found


def _is_modelled(term: Term, at: int, selects: Sequence[bool], sets: Sequence[PodSet]) -> bool:
    """Whether a bound per node and a number say all that the term of this set asks for."""
    others = [each for each in range(len(sets)) if selects[each] and each != at]
    if term.own or not others:
        return True
    return not any(sets[each].per_node for each in (at, *others))


def _with_name(unmodelled: tuple[str, ...]) -> tuple[str, ...]:
    return unmodelled if NAME in unmodelled else (*unmodelled, NAME)
