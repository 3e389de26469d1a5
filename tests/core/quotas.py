"""Quota trees for tests: builders, random ones, and a model of the rules that is slow and plain.

The model shares records with the code under test (what a QuotaSubtree says, which labels an
AppWrapper has), and nothing that draws conclusions from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from mcad.core.quota.absent import RETURN_TIME
from mcad.core.quota.usage import HeldShare
from mcad.core.state.model import Resources
from mcad.core.state.quota_records import NOBODYS, Designation, QuotaChild, QuotaSubtree
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND

GOLD, SILVER, BRONZE = "gold", "silver", "bronze"
RESOURCES = ("cpu", "gpu")
Waits = Mapping[tuple[str, str], HeldShare]
"""What waits at which (tree, node): the leaves, and how much it holds."""


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
    found: dict[str, dict[str, tuple[str, QuotaChild]]] = field(default_factory=dict)
    grace: int = 0
    now: int = 0
    absent: dict[str, tuple[QuotaSubtree, int]] = field(default_factory=dict)
    """What is gone and counts until then, by namespace and name."""

    def see(self, one: QuotaSubtree) -> None:
        """It is so from now on."""
        self.subtrees[one.uid] = one
        self.absent.pop(one.title, None)
        self.found.clear()

    def lose(self, uid: str) -> QuotaSubtree:
        """It is gone; what it was."""
        self.found.clear()
        one = self.subtrees.pop(uid)
        if (
            one.tree
            and one.children
            and all(one.title != other.title for other in self.subtrees.values())
        ):
            self.absent[one.title] = (one, self.now + self.grace)
        return one

    def wait(self, now: int) -> None:
        """Time passes."""
        self.now = now
        self.absent = {title: one for title, one in self.absent.items() if one[1] > now}
        self.found.clear()

    def of(self, tree: str) -> list[tuple[QuotaSubtree, QuotaChild]]:
        """Everything that is said of a tree's nodes, the oldest first; then what was said by those
        that are absent."""
        mine = sorted(
            (
                one
                for one in (*self.subtrees.values(), *(one for one, _ in self.absent.values()))
                if one.tree == tree
            ),
            key=lambda one: (
                one.uid not in self.subtrees,
                *(one.created, one.namespace, one.name, one.uid),
            ),
        )
        return [(one, each) for one in mine for each in one.children]

    def defined(self, tree: str) -> dict[str, tuple[str, QuotaChild]]:
        """(parent, node) by name, of those that can be read; the first one of a name counts."""
        found: dict[str, tuple[str, QuotaChild]] = {}
        for one, child in self.of(tree):
            if not child.flaw and child.name not in found:
                found[child.name] = (one.parent, child)
        return found

    def placed(self, tree: str) -> dict[str, tuple[str, QuotaChild]]:
        """(parent, node) by name of those that hang together with the root, which is first."""
        if tree not in self.found:
            self.found[tree] = self._placed(tree)
        return self.found[tree]

    def _placed(self, tree: str) -> dict[str, tuple[str, QuotaChild]]:
        defined = self.defined(tree)
        roots = [name for name, (parent, _) in defined.items() if not parent]
        found = {name: defined[name] for name in roots[:1]}
        for _ in defined:
            found |= {n: d for n, d in defined.items() if d[0] in found and n not in found}
        return found

    def faults(self, tree: str) -> list[tuple[str, str, str]]:
        """(uid, node, what is wrong with it) of all that is not in force; "" is no tree."""
        if not tree:
            return sorted((u, "", "NoTree") for u, one in self.subtrees.items() if not one.tree)
        defined, placed = self.defined(tree), self.placed(tree)
        told = []
        for one, child in self.of(tree):
            if one.uid not in self.subtrees:
                continue
            if child.flaw:
                told.append((one.uid, child.name, "InvalidQuota"))
            elif defined[child.name][1] is not child:
                told.append((one.uid, child.name, "NameUsedTwice"))
            elif not placed:
                told.append((one.uid, child.name, "NoRoot"))
            elif child.name not in placed:
                told.append((one.uid, child.name, self._astray(defined, child.name)))
        return sorted(told)

    def _astray(self, defined: dict[str, tuple[str, QuotaChild]], name: str) -> str:
        if not defined[name][0]:
            return "SeveralRoots"
        for _ in defined:
            parent = defined[name][0]
            if parent not in defined or not defined[parent][0]:
                return "ParentMissing"
            name = parent
        return "Cycle"

    def trees(self) -> list[str]:
        """Those with a root."""
        known = (*self.subtrees.values(), *(one for one, _ in self.absent.values()))
        names = sorted({one.tree for one in known})
        return [name for name in names if name and self.placed(name)]

    def is_deleted(self, tree: str) -> bool:
        """Whether what defines its root is gone for longer than a replacement takes."""
        root = next(iter(self.placed(tree).values()))[1]
        return any(
            root in one.children and self.now - (until - self.grace) >= RETURN_TIME
            for one, until in self.absent.values()
            if one.tree == tree
        )

    def counts(self, designation: Designation, tree: str) -> bool:
        """Whether an AppWrapper counts in the tree: in a deleted one only if it names the tree, or
        has a leaf there all the same."""
        named = tree in dict(designation.labels) or designation == NOBODYS
        leaf = leaf_of(designation, tree)
        return named or self.is_leaf(tree, leaf) or not self.is_deleted(tree)

    def trees_of(self, designation: Designation) -> list[str]:
        """The trees in which an AppWrapper counts."""
        return [tree for tree in self.trees() if self.counts(designation, tree)]

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
            if self.counts(designation, tree)
            and node in self.above(tree, leaf_of(designation, tree))
        )

    def room(self, tree: str, node: str, resource: str) -> int:
        """What is left of the node's share; what its tree names and itself does not is 0."""
        share = dict(self.placed(tree)[node][1].nominal)
        return share.get(resource, 0) - self.usage(tree, node, resource)

    def named(self, tree: str) -> set[str]:
        """The resources that a tree limits."""
        return {resource for _, one in self.placed(tree).values() for resource, _ in one.nominal}

    def is_leaf(self, tree: str, name: str) -> bool:
        placed = self.placed(tree)
        return name in placed and all(parent != name for parent, _ in placed.values())

    def limits(self, tree: str, leaf: str) -> list[str]:
        """The nodes that this leaf may not take beyond their share."""
        placed = self.placed(tree)
        return [n for n in self.above(tree, leaf) if placed[n][1].hard or not placed[n][0]]

    def fits(self, designation: Designation, demand: Resources) -> bool:
        """Whether every tree has that leaf, and room below every limit."""
        return not any(self.hindrances(designation, demand))

    def hindrances(self, designation: Designation, demand: Resources) -> Iterator[Hindrance]:
        """Whatever is in the way."""
        for tree in self.trees_of(designation):
            leaf = leaf_of(designation, tree)
            absent = any(one.tree == tree for one, _ in self.absent.values())
            if not self.is_leaf(tree, leaf):
                yield Hindrance(tree, leaf, is_absent=absent)
                continue
            for node in self.limits(tree, leaf):
                share = dict(self.placed(tree)[node][1].nominal)
                for resource, amount in demand:
                    used = self.usage(tree, node, resource)
                    if resource in self.named(tree) and used + amount > share.get(resource, 0):
                        whole = share.get(resource, 0)
                        yield Hindrance(tree, leaf, node, resource, amount, whole, used, absent)

    def vies(self, designation: Designation, demand: Resources, waits: Waits) -> bool:
        """Whether a leaf that others wait for, or a leaf that would borrow to get to a node that
        others wait for, wants more than there is besides what they hold."""
        wanted = {resource for resource, _ in demand}
        for tree in self.trees_of(designation):
            leaf = leaf_of(designation, tree)
            if leaf not in self.placed(tree):
                continue
            way = self.above(tree, leaf)
            for number, node in enumerate(way):
                borrows = any(
                    amount > self.room(tree, below, resource)
                    for below in way[:number]
                    for resource, amount in demand
                    if resource in self.named(tree)
                )
                leaves, amounts = waits.get((tree, node), ((), {}))
                both = {r: dict(demand).get(r, 0) + amounts.get(r, 0) for r in {*amounts} | wanted}
                is_short = any(
                    n > self.room(tree, node, r) for r, n in both.items() if r in self.named(tree)
                )
                if (tree, node) in waits and (borrows or leaf in leaves) and is_short:
                    return True
        return False


class Hindrance(NamedTuple):
    """A limit that is in the way, with its figures; no ``node`` if there is no such leaf."""

    tree: str
    leaf: str
    node: str = ""
    resource: str = ""
    requested: int = 0
    nominal: int = 0
    used: int = 0
    is_absent: bool = False

    @property
    def is_lasting(self) -> bool:
        """Whether it would be in the way of an empty tree as well."""
        return not self.node or self.requested > self.nominal


def leaf_of(designation: Designation, tree: str) -> str:
    """The leaf that an AppWrapper names in a tree."""
    return dict(designation.labels).get(tree, designation.otherwise)


# -- random ones ---------------------------------------------------------------------------------

TREES = (GOLD, SILVER, BRONZE)
NAMES = ("root", "a", "b", "a1", "a2", "b1", "default")


def figures(rng: Random, most: int) -> tuple[tuple[str, int], ...]:
    """A share of some of the resources; a zero is one, too."""
    named = [one for one in RESOURCES if rng.random() < 0.85]
    return tuple((one, rng.randint(0, most)) for one in named)


def node(rng: Random, name: str = "") -> QuotaChild:
    """A node of any name, or of this one, with a small share."""
    return QuotaChild(name or rng.choice(NAMES), figures(rng, 6), rng.random() < 0.2)


def planted(rng: Random) -> list[QuotaSubtree]:
    """QuotaSubtrees that make whole trees: one, two or three."""
    made: list[QuotaSubtree] = []
    for tree in sorted(rng.sample(TREES, rng.choice((1, 1, 2, 3)))):
        names = [NAMES[0], *rng.sample(NAMES[1:], rng.randint(0, len(NAMES) - 1))]
        below: dict[str, list[QuotaChild]] = {"": [QuotaChild(NAMES[0], figures(rng, 12))]}
        for number, name in enumerate(names[1:], 1):
            below.setdefault(rng.choice(names[:number]), []).append(node(rng, name))
        made += [
            subtree(f"{tree}-below-{parent}", *children, parent=parent, tree=tree)
            for parent, children in below.items()
        ]
    return made


def stranger(rng: Random) -> QuotaSubtree:
    """Anything; one that there is already, by its uid, becomes this."""
    at = rng.choice(("", *NAMES))
    parent = rng.choice((at, at, at, "", "nowhere", rng.choice(NAMES)))
    children = [node(rng) for _ in range(rng.randint(0, 3))]
    tree, created = rng.choice(TREES), rng.randint(0, 2)
    made = subtree(f"{tree}-below-{at}", *children, parent=parent, tree=tree, created=created)
    if rng.random() < 0.5:
        return made
    return replace(made, uid=f"{made.uid}-alpha", namespace="alpha")


def subtrees() -> st.SearchStrategy[QuotaSubtree]:
    """For hypothesis: one of a whole tree most of the time, else anything."""
    randoms = st.randoms(use_true_random=False)
    return randoms.map(lambda rng: rng.choice((*planted(rng), *planted(rng), stranger(rng))))


class Edit(StrEnum):
    """What a user may do to a QuotaSubtree that there is."""

    RESIZED = "one of its nodes has another share"
    HARDENED = "one of its nodes may borrow, or may not any more"
    RENAMED = "one of its nodes has another name, maybe one that there is"
    FLAWED = "one of its nodes cannot be read"
    GREW = "it has one more node, maybe of a name that there is"
    THINNED = "it has one node less"
    MOVED = "it hangs somewhere else: below itself, below nothing, or as another root"
    RELABELLED = "it is of another tree, or of none"


def edited(rng: Random, one: QuotaSubtree, edit: Edit) -> QuotaSubtree:
    """The QuotaSubtree after the edit."""
    children = list(one.children)
    at = rng.randrange(len(children)) if children else 0
    match edit:
        case Edit.MOVED:
            return replace(one, parent=rng.choice((*NAMES, "", "nowhere")))
        case Edit.RELABELLED:
            return replace(one, tree=rng.choice((*TREES, *TREES, "")))
        case Edit.GREW:
            children.insert(at, node(rng))
        case _ if not children:
            pass
        case Edit.RESIZED:
            children[at] = replace(children[at], nominal=figures(rng, 12))
        case Edit.HARDENED:
            children[at] = replace(children[at], hard=not children[at].hard)
        case Edit.RENAMED:
            children[at] = replace(children[at], name=rng.choice(NAMES))
        case Edit.FLAWED:
            children[at] = replace(children[at], flaw="" if children[at].flaw else "cpu: negative")
        case Edit.THINNED:
            del children[at]
    return replace(one, children=tuple(children))


def demand(rng: Random) -> Resources:
    """One resource or two, maybe one that no tree names."""
    named = rng.sample((*RESOURCES, *RESOURCES, "disk"), rng.randint(1, 2))
    return tuple((one, rng.randint(1, 3)) for one in sorted({*named}))


def designation(rng: Random, model: Model) -> Designation:
    """The leaves that an AppWrapper names, mostly such as there are; now and then none."""
    if rng.random() < 0.05:
        return NOBODYS
    named = []
    for tree in sorted((*TREES, "app")):
        nodes = [*model.placed(tree)]
        leaves = [name for name in nodes if model.is_leaf(tree, name)]
        if rng.random() < 0.9 or "default" not in leaves:
            anybody = not leaves or rng.random() < 0.06
            named.append((tree, rng.choice(NAMES if anybody else leaves)))
    return Designation(tuple(named[rng.random() < 0.1 :]))


def waits(rng: Random) -> Waits:
    """AppWrappers wait at a few nodes."""
    return {
        (rng.choice(TREES), rng.choice(NAMES)): HeldShare(
            {*rng.sample(NAMES, rng.randint(0, 2))}, dict(demand(rng))
        )
        for _ in range(rng.randint(0, 4))
    }
