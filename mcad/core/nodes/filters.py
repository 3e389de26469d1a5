"""Whether a node admits a pod: the predicates of kube-scheduler that depend on the node alone.

Modelled after the plugins NodeUnschedulable, TaintToleration, NodeName and NodeAffinity (with
``nodeSelector``). Amounts are not looked at here.
"""

import re
from collections.abc import Mapping

from mcad.core.state.model import Constraint, Node, Requirement, Taint, Toleration

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")

_REPELLING = ("NoSchedule", "NoExecute")  # PreferNoSchedule only weighs
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_INT64 = 2**63


def in_service(node: Node) -> bool:
    """Whether a node is ready and not cordoned: it counts with ``fit: aggregate``."""
    return takes_pods(node) and not node.unschedulable


def takes_pods(node: Node) -> bool:
    """Whether pods can start on the node, whatever they tolerate."""
    return node.ready and not node.closed


def admits(node: Node, constraint: Constraint) -> bool:
    """Whether kube-scheduler would consider this node for such a pod.

    A node that is not ready admits no pod: even with tolerated taints, nothing starts there.
    """
    if not takes_pods(node):
        return False
    if constraint.node_name and constraint.node_name != node.name:
        return False
    if not all(tolerates(constraint, taint) for taint in repelling(node)):
        return False
    return _selected(node, constraint)


def repelling(node: Node) -> tuple[Taint, ...]:
    """The taints that a pod has to tolerate, including the taint of a cordoned node and the one by
    which the node is closed."""
    found = tuple(one for one in node.taints if one.effect in _REPELLING or one.key == node.closed)
    return (*found, UNSCHEDULABLE) if node.unschedulable else found


def tolerates(constraint: Constraint, taint: Taint) -> bool:
    """Whether pods with this constraint tolerate the taint."""
    return any(_tolerates(toleration, taint) for toleration in constraint.tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def _selected(node: Node, constraint: Constraint) -> bool:
    if not constraint.selector and constraint.affinity is None:
        return True
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in constraint.selector):
        return False
    if constraint.affinity is None:
        return True
    return any(_matches_term(node, labels, term) for term in constraint.affinity)


def _matches_term(node: Node, labels: Mapping[str, str], term: tuple[Requirement, ...]) -> bool:
    # An empty term matches nothing, unlike an empty label selector.
    return bool(term) and all(
        _matches_field(node, r) if r.field else _matches_label(labels, r) for r in term
    )


def _matches_field(node: Node, requirement: Requirement) -> bool:
    """matchFields: one field with one value; anything else is an error, so no match."""
    if requirement.key != "metadata.name" or len(requirement.values) != 1:
        return False
    is_known = requirement.operator in ("In", "NotIn")
    return is_known and _matches_label({requirement.key: node.name}, requirement)


def _matches_label(labels: Mapping[str, str], requirement: Requirement) -> bool:
    return matches(requirement, labels.get(requirement.key))


def matches(requirement: Requirement, value: str | None) -> bool:
    """Whether a label with this value, or its absence, satisfies the requirement."""
    wanted = requirement.values
    match requirement.operator:
        case "In":
            return value in wanted
        case "NotIn":
            # An absent key is "not in"; an empty list of values is an error of the term.
            return bool(wanted) and value not in wanted
        case "Exists":
            return value is not None and not wanted
        case "DoesNotExist":
            return value is None and not wanted
        case "Gt" | "Lt":
            return _compares(value, requirement)
        case _:
            return False


def _compares(value: str | None, requirement: Requirement) -> bool:
    if value is None or len(requirement.values) != 1:
        return False
    left, right = _int64(value), _int64(requirement.values[0])
    if left is None or right is None:
        return False
    return left > right if requirement.operator == "Gt" else left < right


def _int64(text: str) -> int | None:
    """An integer as Go's ParseInt reads it; None if the text is no such integer."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None
