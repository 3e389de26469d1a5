"""What keeps all nodes off the pods of a set, as a clause for users.

The predicates are asked in the order of kube-scheduler's plugins (NodeName, NodeAffinity with
``nodeSelector``, TaintToleration), then readiness; the clause names the first that leaves no node.
"""

from __future__ import annotations

from mcad.core.nodes.columns import Mask
from mcad.core.nodes.constraints import Facts
from mcad.core.nodes.filters import UNSCHEDULABLE, tolerates
from mcad.core.state.model import Constraint, Taint
from mcad.core.state.reasons import some_of
from mcad.core.state.records import replace


def obstacle(facts: Facts, constraint: Constraint) -> str:
    """Why no node admits pods with this constraint."""
    if not _count(facts.present):
        return "there is no node"
    name, selector = constraint.node_name, constraint.selector
    if name and not _count(facts.selected(Constraint(node_name=name))):
        return f"no node is named {name}"
    for one in selector:
        if not _count(facts.selected(Constraint(selector=(one,)))):
            return f"none has the label {'='.join(one)}"
    bare = replace(constraint, affinity=None)
    if not _count(facts.selected(bare)):
        return f"none has all of the labels {some_of(['='.join(one) for one in selector])}"
    left = facts.selected(constraint)
    if not _count(left):
        return "none matches their node affinity"
    return _of_taints(facts, constraint, left)


def _of_taints(facts: Facts, constraint: Constraint, left: Mask) -> str:
    """The taints that keep off the nodes that the constraint selects."""
    count = _count(left)
    which, are = (
        ("the node that matches", "is") if count == 1 else (f"the {count} nodes that match", "are")
    )
    repelled = left & ~facts.tolerating(constraint)
    taints = [one for one in facts.taints_of(repelled) if not tolerates(constraint, one)]
    named = some_of(sorted(map(_word, taints)))
    if not _count(repelled):
        return f"{which} {are} not ready"
    if _count(repelled) < count:
        return f"{which} are tainted or not ready: {named}"
    if taints == [UNSCHEDULABLE]:
        return f"{which} {are} cordoned"
    return f"they do not tolerate the taints of {which}: {named}"


def _count(rows: Mask) -> int:
    return int(rows.sum())


def _word(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
