"""The order of the queue: by priority, then (core rule R12) by the smaller use, then by first
sight.

The use of a group of AppWrappers is its *dominant share*: its largest part, over the resources, of
the whole (Ghodsi et al., Dominant Resource Fairness, NSDI 2011). The groups are namespaces, and the
whole is the sum of the nodes; or leaves of quota trees, and the whole is the amount of the root.
Shares are in millionths. The default is FIFO, without groups and shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcad.core.nodes.resources import Books, book
from mcad.core.queue.equivalence import (
    MS,
    EquivalenceClass,
    Key,
    Turn,
)
from mcad.core.state.model import Resources
from mcad.core.state.settings import Fairness, Policy, Settings
from mcad.core.state.units import Instant
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from mcad.core.capacity import Capacity
    from mcad.core.quota.usage import Forest
    from mcad.core.state.quota_records import Path

WHOLE = 1_000_000


class Turns:
    """The use of each group, and the order that follows. ``heads_block``: whether a refused head
    may keep the AppWrappers behind it from starting (R6)."""

    def __init__(self, settings: Settings, capacity: Capacity, forest: Forest) -> None:
        self._fairness = settings.fairness
        strict = settings.policy is Policy.STRICT_FIFO
        self._reclaims = settings.reclaim and not strict
        self.heads_block = strict or settings.head_of_line_holding > 0
        self._capacity = capacity
        self._forest = forest
        self._held: dict[str, tuple[str, Resources]] = {}  # by uid: the namespace, how much
        self._in_use: dict[str, Books] = {}
        self._known: dict[tuple[str, str], int] = {}  # shares by (tree, leaf) or ("", namespace)

    @property
    def change(self) -> bool:
        """Whether a dispatch changes the order of other AppWrappers."""
        return self._fairness is not Fairness.NONE or self.has_owners

    @property
    def has_owners(self) -> bool:
        """Whether an AppWrapper within its share can reclaim it from borrowers."""
        return self._reclaims and bool(self._forest.trees)

    def group(self, namespace: str) -> str:
        """The group of AppWrappers of this namespace; "" where namespaces do not matter."""
        return namespace if self._fairness is Fairness.NAMESPACE else ""

    # -- use -----------------------------------------------------------------------------------

    def charge(self, uid: str, namespace: str, amounts: Resources) -> None:
        """Count the AppWrapper's amounts as held; its quota is charged already."""
        self._forget(uid, namespace)
        if self._fairness is not Fairness.NAMESPACE:
            return
        self.release(uid)
        self._held[uid] = (namespace, amounts)
        book(self._in_use.setdefault(namespace, {}), amounts)

    def release(self, uid: str) -> None:
        """Count nothing as held by the AppWrapper any more; its quota is still charged."""
        namespace, amounts = self._held.pop(uid, ("", ()))
        self._forget(uid, namespace)
        if amounts:
            books = self._in_use[namespace]
            book(books, amounts, -1)
            if not any(books.values()):
                del self._in_use[namespace]

    # -- order ---------------------------------------------------------------------------------

    def share(self, eqclass: EquivalenceClass) -> int:
        """The dominant share of the class's group, in millionths."""
        if self._fairness is Fairness.NAMESPACE:
            return self._share(("", eqclass.group))
        if self._fairness is Fairness.LEAF:
            return max(map(self._share, eqclass.path), default=0)
        return 0

    def has_its_share(self, eqclass: EquivalenceClass) -> bool:
        """Whether the leaves of the class have used up their share of a resource that it demands,
        so that it would borrow a share that others may reclaim. Equal for all AppWrappers of a leaf
        with the same demand."""
        return self.has_owners and self._forest.is_spent(eqclass.path, eqclass.shape.fixed)

    def _share(self, whose: tuple[str, str]) -> int:
        """The share of a leaf (tree, leaf), or of a namespace ("", namespace)."""
        if whose not in self._known:
            tree, name = self._forest.trees.get(whose[0]), whose[1]
            held, whole = self._in_use.get(name, {}), self._capacity.allocatable
            if whose[0]:
                held = tree.held.get(name, {}) if tree is not None else {}
                whole = tree.root.nominal if tree is not None else {}
            self._known[whose] = _dominant(held, whole)
        return self._known[whose]

    def renew(self) -> None:
        """Forget the shares after changes of nodes or trees; they are counted again on demand."""
        self._known.clear()

    def _forget(self, uid: str, namespace: str) -> None:
        if self._known:
            for whose in (("", namespace), *self._forest.path_of(uid)):
                self._known.pop(whose, None)

    def of(self, eqclass: EquivalenceClass, now: Instant) -> Turn:
        """The turn of the head of a class at this instant."""
        return self.at(eqclass, eqclass.key, now)

    def line(
        self, eqclasses: Iterable[EquivalenceClass], now: Instant
    ) -> list[tuple[Turn, EquivalenceClass]]:
        """The classes with the turns of their heads, in no order."""
        if self._fairness is not Fairness.NONE:
            return [(self.of(one, now), one) for one in eqclasses]
        now_ms = now // MS  # ``at`` spelled out: called for ten thousand classes in a pass
        if self.has_owners:
            return self._borrowers_last(eqclasses, now_ms)
        return [
            (
                (False, one.key[0] - one.slope * now_ms, *one.turn[2:]) if one.slope else one.turn,
                one,
            )
            for one in eqclasses
        ]

    def _borrowers_last(
        self, eqclasses: Iterable[EquivalenceClass], now_ms: int
    ) -> list[tuple[Turn, EquivalenceClass]]:
        known: dict[Path, list[Set[str]]] = {}
        found: list[tuple[Turn, EquivalenceClass]] = []
        for one in eqclasses:
            spent = known.get(one.path)
            if spent is None:
                spent = known[one.path] = list(filter(None, self._forest.spent(one.path)))
            borrows = False
            for of_tree in spent:
                borrows = borrows or not one.shape.demanded.isdisjoint(of_tree)
            key = one.key
            turn = (borrows, key[0] - one.slope * now_ms, 0, key[1], key[2])
            found.append((turn, one))
        return found

    def at(self, eqclass: EquivalenceClass, key: Key, now: Instant) -> Turn:
        """The turn of any member of the class."""
        static, seen, uid = key
        spent, aged, share = self.of_class(eqclass, now)
        return (spent, static - aged, share, seen, uid)

    def of_class(self, eqclass: EquivalenceClass, now: Instant) -> tuple[bool, int, int]:
        """The common part of all turns of a class: whether it would borrow a share that others may
        reclaim, how far its members have aged, its share."""
        return (self.has_its_share(eqclass), eqclass.slope * (now // MS), self.share(eqclass))

    def check(self, reserved: Iterable[str]) -> None:
        """Recompute the use of all groups; raises ``InvariantViolated``. O(all)."""
        if self._fairness is not Fairness.NAMESPACE:
            return
        check(set(self._held) == set(reserved), "in-use-while-assumed", "")
        books: dict[str, Books] = {}
        for namespace, amounts in self._held.values():
            book(books.setdefault(namespace, {}), amounts)
        for namespace, booked in self._in_use.items():
            known = {name: n for name, n in booked.items() if n}
            found = {name: n for name, n in books.get(namespace, {}).items() if n}
            check(known == found, "in-use-is-what-is-held", f"{namespace}: {known}, {found}")


def _dominant(used: Mapping[str, int], whole: Mapping[str, int]) -> int:
    """The largest used part of the whole, in millionths; unused if no node has it."""
    return max((n * WHOLE // whole[name] for name, n in used.items() if whole.get(name)), default=0)
