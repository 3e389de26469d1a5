"""Writes node affinity into pod templates: nodes that the pods must avoid or should avoid, and the
topology domain that they must be in."""

from collections.abc import Iterable

from mcad.api.located_fields import own_map
from mcad.api.wire import Json, Map, as_list, as_map
from mcad.core.state.model import Domain, NodeRules

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_WEIGHT_MAX = 100


def node_affinity(template: Map) -> Map | None:
    """The ``nodeAffinity`` map of a pod template, added if missing; None if it is not a map."""
    affinity = own_map(as_map(template.get("spec")), "affinity")
    return own_map(affinity, "nodeAffinity") if affinity is not None else None


def require(nodes: Map, key: str, wanted: list[Map]) -> None:
    """Add requirements of a kind (``matchExpressions`` or ``matchFields``) to every term: terms are
    ORed. An empty term matches no node and stays empty."""
    required = nodes.get(_REQUIRED)
    if required is None and wanted:
        nodes[_REQUIRED] = {"nodeSelectorTerms": [{key: wanted}]}
    for term in as_list(as_map(required).get("nodeSelectorTerms")):
        if isinstance(term, dict) and (term.get("matchExpressions") or term.get("matchFields")):
            given = term.get(key) or []
            if isinstance(given, list):
                term[key] = given + [
                    one for one in wanted if not any(_implies(each, one) for each in given)
                ]


def _implies(given: Json, wanted: Map) -> bool:
    same = isinstance(given, dict) and all(given.get(k) == wanted[k] for k in ("key", "operator"))
    return same and all(value in as_list(given.get("values")) for value in wanted["values"])


def prefer(nodes: Map, term: Map, weight: int) -> None:
    """Add a preferred term with a weight from 1 to 100."""
    given = nodes.get(_PREFERRED)
    if given is None or isinstance(given, list):
        nodes[_PREFERRED] = [*(given or []), {"weight": weight, "preference": term}]


def keep_off(template: Map, rules: NodeRules, path: str) -> None:
    """Keep the pods of the template at this path off nodes that are reserved for other pods, and on
    the nodes that are planned for them."""
    avoided = _not_named(dict.fromkeys(rules.avoided_at(path)))
    forbidden = _not_named(dict.fromkeys(rules.excluded_at(path)))
    is_any = avoided or forbidden or rules.planned
    nodes = node_affinity(template) if is_any else None
    if nodes is None:
        return
    if avoided:
        prefer(nodes, {"matchFields": avoided}, _WEIGHT_MAX)
    for name in rules.planned:
        prefer(nodes, {"matchFields": [_named(name, "In")]}, _WEIGHT_MAX)
    require(nodes, "matchFields", forbidden)


def stay_in(template: Map, domain: Domain) -> None:
    """Keep the pods of the template on the nodes of a topology domain."""
    nodes = node_affinity(template)
    if nodes is not None:
        require(nodes, "matchExpressions", [_in_domain(domain)])


def lean_to(template: Map, domain: Domain) -> None:
    """Let the pods of the template prefer the nodes of a domain."""
    nodes = node_affinity(template)
    if nodes is not None:
        prefer(nodes, {"matchExpressions": [_in_domain(domain)]}, _WEIGHT_MAX)


def _in_domain(domain: Domain) -> Map:
    label, value = domain
    return {"key": label, "operator": "In", "values": [value]}


def _not_named(names: Iterable[str]) -> list[Map]:
    """One requirement per name: the API allows one value for a field."""
    return [_named(name, "NotIn") for name in names]


def _named(name: str, operator: str) -> Map:
    return {"key": "metadata.name", "operator": operator, "values": [name]}
