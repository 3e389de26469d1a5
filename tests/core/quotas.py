"""Quota trees for tests: builders, random ones, and a model of the rules that is slow and plain."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from mcad.core.model import Resources
from mcad.core.quota import Designation, QuotaChild, QuotaSubtree
from mcad.core.units import SECOND

GOLD, SILVER = "gold", "silver"
RESOURCES = ("cpu", "gpu")


def child(name: str, hard: bool = False, flaw: str = "", **nominal: int) -> QuotaChild:
    """A node of a tree with its share."""
    return QuotaChild(name, tuple(sorted(nominal.items())), hard, flaw)


def subtree(
    name: str, *children: QuotaChild, parent: str = "", tree: str = GOLD, created: int = 1
) -> QuotaSubtree:
    """A QuotaSubtree in namespace ``quota``, created in that second."""
    uid = f"uid-{tree}-{name}"
    return QuotaSubtree(uid, "quota", name, created * SECOND, tree, parent, children)


def teams(cpu: int, **shares: int) -> list[QuotaSubtree]:
    """A root of so much CPU with teams under it that may borrow."""
    below = (child(name, cpu=share) for name, share in shares.items())
    return [subtree("root", child("root", cpu=cpu)), subtree("teams", *below, parent="root")]


# -- the model -----------------------------------------------------------------------------------


@dataclass
class Model:
    """What is defined and what is charged; every answer is worked out from these alone."""

    subtrees: dict[str, QuotaSubtree] = field(default_factory=dict)
    charges: dict[str, tuple[Designation, Resources]] = field(default_factory=dict)

    def placed(self, tree: str) -> dict[str, tuple[str, QuotaChild]]:
        """(parent, node) by name of those that hang together with the root, which is first."""
        mine = sorted(
            (one for one in self.subtrees.values() if one.tree == tree),
            key=lambda one: (one.created, one.namespace, one.name, one.uid),
        )
        defined: dict[str, tuple[str, QuotaChild]] = {}
        for one in mine:
            for each in one.children:
                if not each.flaw and each.name not in defined:
                    defined[each.name] = (one.parent, each)
        roots = [name for name, (parent, _) in defined.items() if not parent]
        found = {name: defined[name] for name in roots[:1]}
        for _ in defined:
            found |= {n: d for n, d in defined.items() if d[0] in found and n not in found}
        return found

    def trees(self) -> list[str]:
        """Those with a root."""
        names = sorted({one.tree for one in self.subtrees.values()})
        return [name for name in names if self.placed(name)]

    def above(self, tree: str, name: str) -> list[str]:
        """The node and all between it and the root; of a stranger the root alone."""
        placed = self.placed(tree)
        if name not in placed:
            return [next(iter(placed))]
        return [name, *(self.above(tree, placed[name][0]) if placed[name][0] else ())]

    def usage(self, tree: str, node: str, resource: str) -> int:
        """What is charged to the node and to those below it."""
        return sum(
            dict(amounts).get(resource, 0)
            for designation, amounts in self.charges.values()
            if node in self.above(tree, designation.leaf(tree))
        )

    def is_leaf(self, tree: str, name: str) -> bool:
        placed = self.placed(tree)
        return name in placed and all(parent != name for parent, _ in placed.values())

    def limits(self, tree: str, leaf: str) -> list[str]:
        """The nodes that nobody of this leaf may take beyond their share."""
        placed = self.placed(tree)
        return [n for n in self.above(tree, leaf) if placed[n][1].hard or not placed[n][0]]

    def fits(self, designation: Designation, demand: Resources) -> bool:
        for tree in self.trees():
            placed, leaf = self.placed(tree), designation.leaf(tree)
            named = {resource for _, one in placed.values() for resource, _ in one.nominal}
            if not self.is_leaf(tree, leaf):
                return False
            for node in self.limits(tree, leaf):
                share = dict(placed[node][1].nominal)
                for resource, amount in demand:
                    used = self.usage(tree, node, resource)
                    if resource in named and used + amount > share.get(resource, 0):
                        return False
        return True


# -- random ones ---------------------------------------------------------------------------------

NAMES = ("root", "a", "b", "a1", "a2", "b1", "default")
_AMOUNTS = st.integers(0, 6)
_CHILDREN = st.builds(
    QuotaChild,
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(RESOURCES), _AMOUNTS).map(lambda d: tuple(sorted(d.items()))),
    st.booleans(),
    st.sampled_from(["", "", "", "", "", "cpu is negative"]),
)
_WELL_FORMED = {
    "root": ("", ("root",)),
    "teams": ("root", ("a", "b", "default")),
    "of-a": ("a", ("a1", "a2")),
    "of-b": ("b", ("b1",)),
}


@st.composite
def subtrees(draw: st.DrawFn) -> QuotaSubtree:
    """One of a well-formed tree most of the time, with any figures; else anything."""
    tree, name = draw(st.sampled_from([GOLD, GOLD, SILVER])), draw(st.sampled_from([*_WELL_FORMED]))
    parent, names = _WELL_FORMED[name]
    created = draw(st.integers(1, 3))
    if draw(st.integers(0, 3)) == 0:
        parent = draw(st.sampled_from(["", *NAMES]))
        children = draw(st.lists(_CHILDREN, max_size=3))
    else:
        drawn = [draw(_CHILDREN) for _ in names]
        children = [
            QuotaChild(at, one.nominal, one.hard) for at, one in zip(names, drawn, strict=True)
        ]
    return subtree(name, *children, parent=parent, tree=tree, created=created)


DEMANDS = st.dictionaries(st.sampled_from([*RESOURCES, "disk"]), st.integers(1, 4)).map(
    lambda amounts: tuple(sorted(amounts.items()))
)
DESIGNATIONS = st.dictionaries(
    st.sampled_from([GOLD, GOLD, SILVER, "app"]), st.sampled_from([*NAMES, "nobody"])
).map(lambda labels: Designation(tuple(sorted(labels.items()))))
