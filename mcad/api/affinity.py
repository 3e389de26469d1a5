"""Node affinity written into pod templates: what their pods must avoid, and what they should."""

from collections.abc import Iterable

from mcad.api.located_fields import own_map
from mcad.api.wire import Json, Map, as_list, as_map
from mcad.core.state.model import ReservedNodes

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_WEIGHT_MAX = 100


def node_affinity(template: Map) -> Map | None:
    """The map of a pod template, put there if it is missing; None if something else is there."""
    affinity = own_map(as_map(template.get("spec")), "affinity")
    return own_map(affinity, "nodeAffinity") if affinity is not None else None


def require(nodes: Map, expressions: list[Map]) -> None:
    """Into every term, as they are ORed; a term that says nothing admits no node, and stays so."""
    required = nodes.get(_REQUIRED)
    if required is None and expressions:
        nodes[_REQUIRED] = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    for term in as_list(as_map(required).get("nodeSelectorTerms")):
        if isinstance(term, dict) and (term.get("matchExpressions") or term.get("matchFields")):
            said = term.get("matchExpressions") or []
            if isinstance(said, list):
                term["matchExpressions"] = said + [
                    one for one in expressions if not any(_implies(each, one) for each in said)
                ]


def _implies(said: Json, wanted: Map) -> bool:
    same = isinstance(said, dict) and all(said.get(k) == wanted[k] for k in ("key", "operator"))
    return same and all(value in as_list(said.get("values")) for value in wanted["values"])


def prefer(nodes: Map, term: Map, weight: int) -> None:
    """One more term that a node should meet, of a weight from 1 to 100."""
    said = nodes.get(_PREFERRED)
    if said is None or isinstance(said, list):
        nodes[_PREFERRED] = [*(said or []), {"weight": weight, "preference": term}]


def keep_off(template: Map, reserved: ReservedNodes) -> None:
    """The pods of the template keep off nodes that are reserved for others."""
    unwished, forbidden = _not_named(reserved.avoid), _not_named(reserved.exclude)
    nodes = node_affinity(template) if unwished or forbidden else None
    if nodes is None:
        return
    if unwished:
        prefer(nodes, {"matchFields": unwished}, _WEIGHT_MAX)
    if forbidden:
        _forbid(nodes, forbidden)


def _not_named(names: Iterable[str]) -> list[Map]:
    """Each name is a requirement of its own: of a field the API takes one value."""
    return [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in names]


def _forbid(nodes: Map, fields: list[Map]) -> None:
    """Into every term, as they are ORed; a term that says nothing admits no node, and stays so."""
    required = nodes.get(_REQUIRED)
    if required is None:
        nodes[_REQUIRED] = {"nodeSelectorTerms": [{"matchFields": fields}]}
    for term in as_list(as_map(required).get("nodeSelectorTerms")):
        if isinstance(term, dict) and (term.get("matchExpressions") or term.get("matchFields")):
            term["matchFields"] = [*as_list(term.get("matchFields")), *fields]
