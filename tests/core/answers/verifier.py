"""Checks a certificate against a cluster by arithmetic of its own; it knows nothing of the core.

A cluster is plain: ``nodes`` (name -> allocatable, labels, cordoned), ``pods`` (node, request),
``gang`` (sets of pods, request, selector), and for quota ``tree`` (node -> parent, nominal,
hard), ``charges`` (leaf, amounts) and the ``leaf`` of the gang. Amounts are in thousandths.
"""

from __future__ import annotations

from typing import Any

Plain = dict[str, Any]
Amounts = dict[str, int]

SEARCH_MAX = 20_000  # placements that are tried of a gang of different pods
SLOT = {"pods": 1000}
_UNITS = {"m": 1, "": 1000, "Ki": 1000 * 2**10, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}


class RejectedError(Exception):
    """The certificate does not show what it says."""


def verify(cluster: Plain, certificate: Plain) -> str:
    """``accepted`` or ``undecided``; raises ``RejectedError``."""
    prove = _PROOFS.get(certificate["proof"], _together)
    return prove(cluster, certificate) or "accepted"


def _check(holds: bool, what: object) -> None:
    if not holds:
        raise RejectedError(what)


def thousandths(text: str) -> int:
    """A quantity as an integer."""
    unit = next(one for one in ("m", "Ki", "Mi", "Gi", "") if text.endswith(one))
    return int(text.removesuffix(unit)) * _UNITS[unit]


def _admits(node: Plain, one: Plain) -> bool:
    labels = node["labels"]
    return not node["cordoned"] and all(labels.get(k) == v for k, v in one["selector"].items())


def _free(cluster: Plain, name: str) -> Amounts:
    free = dict(cluster["nodes"][name]["allocatable"])
    for where, request in cluster["pods"]:
        for resource, n in (request | SLOT).items() if where == name else ():
            free[resource] = free.get(resource, 0) - n
    return free


def _nodes(cluster: Plain, certificate: Plain, sets: list[Plain]) -> None:
    """It names all nodes that admit one of these sets, with what is really free there."""
    admitted = {n for n, node in cluster["nodes"].items() if any(_admits(node, s) for s in sets)}
    named = {one["name"]: one for one in certificate["nodes"]}
    _check(named.keys() == admitted, f"nodes {sorted(named)} instead of {sorted(admitted)}")
    for name, one in named.items():
        free = _free(cluster, name)
        for resource, text in one["free"].items():
            _check(thousandths(text) == free.get(resource, 0), f"{name}: {resource} {text}")


def _sum(cluster: Plain, certificate: Plain) -> None:
    _nodes(cluster, certificate, cluster["gang"])
    resource = certificate["resource"]
    wanted = _demand(cluster).get(resource, 0)
    frees = [_free(cluster, one["name"]) for one in certificate["nodes"]]
    there = sum(max(0, free.get(resource, 0)) for free in frees)
    _check(thousandths(certificate["requested"]) == wanted, "requested")
    _check(thousandths(certificate["available"]) == there, "available")
    _check(wanted > there, "the sum suffices")


def _demand(cluster: Plain) -> Amounts:
    demand: Amounts = {}
    for one in cluster["gang"]:
        for resource, n in (one["request"] | SLOT).items():
            demand[resource] = demand.get(resource, 0) + n * one["pods"]
    return demand


def _fit(free: Amounts, one: Plain) -> int:
    return min(max(0, free.get(r, 0)) // n for r, n in (one["request"] | SLOT).items())


def _set(cluster: Plain, certificate: Plain) -> None:
    one = cluster["gang"][certificate["podSet"]]
    _nodes(cluster, certificate, [one])
    alike = [each for each in cluster["gang"] if {**each, "pods": 0} == {**one, "pods": 0}]
    wanted = sum(each["pods"] for each in alike)
    for node in certificate["nodes"]:
        _check(node["pods"] == _fit(_free(cluster, node["name"]), one), f"pods on {node['name']}")
    there = sum(node["pods"] for node in certificate["nodes"])
    _check((certificate["requested"], certificate["available"]) == (wanted, there), "pods")
    _check(wanted > there, "all pods of the set find room")


def _together(cluster: Plain, certificate: Plain) -> str:
    """Whether no placement of all pods exists, by trying all."""
    _nodes(cluster, certificate, cluster["gang"])
    nodes, left = cluster["nodes"], [SEARCH_MAX]
    sets = sorted(cluster["gang"], key=lambda one: -one["request"].get("cpu", 0))
    pods = [one for one in sets for _ in range(one["pods"])]

    def place(at: int, names: list[str], free: dict[str, Amounts]) -> bool:
        if at == len(pods):
            return True
        for number, name in enumerate(names):
            left[0] -= 1
            if left[0] < 0 or not (_admits(nodes[name], pods[at]) and _fit(free[name], pods[at])):
                continue
            request = pods[at]["request"] | SLOT
            taken = {r: n - request.get(r, 0) for r, n in free[name].items()}
            is_next_equal = at + 1 < len(pods) and pods[at + 1] is pods[at]
            others = names[number:] if is_next_equal else list(nodes)  # equal pods go in order
            if place(at + 1, others, free | {name: taken}):
                return True
        return False

    _check(not place(0, list(nodes), {name: _free(cluster, name) for name in nodes}), "it fits")
    return "undecided" if left[0] < 0 else "accepted"


def _quota(cluster: Plain, certificate: Plain) -> None:
    tree, node, resource = cluster["tree"], certificate["node"], certificate["resource"]
    share = tree[node]
    _check(share["hard"] or not share["parent"], f"{node} may borrow")
    _check(node in _above(tree, cluster["leaf"]), f"{node} is not above the leaf")
    used = sum(
        held.get(resource, 0) for leaf, held in cluster["charges"] if node in _above(tree, leaf)
    )
    wanted, nominal = _demand(cluster).get(resource, 0), share["nominal"].get(resource, 0)
    told = [thousandths(certificate[key]) for key in ("requested", "used", "nominal")]
    _check(told == [wanted, used, nominal], f"{told} instead of {[wanted, used, nominal]}")
    _check(wanted + used > nominal, "the share suffices")


def _above(tree: Plain, leaf: str) -> list[str]:
    return [leaf, *_above(tree, tree[leaf]["parent"])] if leaf in tree else []


def _leaf(cluster: Plain, _: Plain) -> None:
    is_inner = any(one["parent"] == cluster["leaf"] for one in cluster["tree"].values())
    _check(cluster["leaf"] not in cluster["tree"] or is_inner, "there is such a leaf")


_PROOFS: dict[str, Any] = {"quota": _quota, "leaf": _leaf, "sum": _sum, "set": _set}
