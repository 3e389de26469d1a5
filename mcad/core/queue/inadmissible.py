"""Which equivalence classes need a verdict, and which are inadmissible until something changes
(core rule R4).

Of the classes that wait for the same only the first is requeued, so a release of room costs the
same whether one leaf of a quota tree waits for it or a thousand do.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from mcad.core.queue.active import ActiveClasses
from mcad.core.queue.equivalence import EquivalenceClass, InadmissibleList, Node
from mcad.core.quota.usage import Forest
from mcad.core.state.bounds import RETRIED_PER_PASS
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import Instant
from mcad.core.state.violations import check
from mcad.core.state.waiting_state import ClassSignal, ClassState

if TYPE_CHECKING:
    from mcad.core.capacity import Capacity
    from mcad.core.nodes.shape import Shape
    from mcad.core.queue.ordering import Turns
    from mcad.core.state.quota_records import Path


class InadmissibleLists:
    """All classes in line: those that need a verdict (active), and those whose verdict stands."""

    def __init__(self, capacity: Capacity, forest: Forest, turns: Turns) -> None:
        self._capacity = capacity
        self._forest = forest
        self._turns = turns
        self.active = ActiveClasses(is_ordered=not turns.heads_block)
        self._requeued: list[EquivalenceClass] = []  # since the last question
        self._tested: dict[InadmissibleList, None] = {}  # with a verdict, by their last test
        self._contested: dict[InadmissibleList, None] = {}  # others are behind a representative
        self._of_shapes: dict[Shape, dict[int, InadmissibleList]] = {}  # by slope
        self._at_nodes: dict[Node, dict[str, SortedDict[tuple[int, int], InadmissibleList]]] = {}

    # -- the line ------------------------------------------------------------------------------

    def new_class(self, shape: Shape, slope: int, path: Path, group: str) -> EquivalenceClass:
        """A class that is not in line yet. Those of one shape and slope that wait for nodes have a
        list in common."""
        of_shape = self._of_shapes.setdefault(shape, {}).setdefault(slope, InadmissibleList())
        series = self._turns.series(slope, path, group, shape)
        return EquivalenceClass(shape, slope, path, group, of_shape, series=series)

    def forget(self, shape: Shape, slope: int) -> None:
        """No AppWrapper of that shape and slope is in line any more."""
        lists = self._of_shapes[shape]
        forgotten = lists.pop(slope)
        self._tested.pop(forgotten, None)
        self._contested.pop(forgotten, None)
        if not lists:
            del self._of_shapes[shape]

    def enter(self, eqclass: EquivalenceClass) -> None:
        """A new class is in line; it needs a verdict."""
        self.active.add(eqclass)

    def leave(self, eqclass: EquivalenceClass) -> None:
        """The class is empty."""
        self._remove(eqclass)
        self.active.remove(eqclass)

    def move(self, eqclass: EquivalenceClass) -> None:
        """An inadmissible class has another head. If its list has a representative, the class may
        have to be tried before it."""
        listed_in = eqclass.of_list
        if listed_in is None or listed_in.representative is not None:
            self.requeue(eqclass)
        else:
            del listed_in.line[_index(eqclass, listed_in)]
            _insert(eqclass, listed_in)

    # -- the walk ------------------------------------------------------------------------------

    def take_requeued(self) -> list[EquivalenceClass]:
        """The classes that have been requeued since the last call."""
        called, self._requeued = self._requeued, []
        return called

    def refuse(self, eqclass: EquivalenceClass, refusal: Refusal, now: Instant) -> None:
        """The class was refused; it is inadmissible until what it waits for may be there."""
        listed_in = self._list_for(eqclass, refusal)
        self.active.remove(eqclass)
        if listed_in.representative is eqclass:
            listed_in.representative = None
        else:
            self.hand_over(eqclass)
        if listed_in.refusal is not refusal:  # else it was given what others had found out
            listed_in.refusal, listed_in.tested_at = refusal, now
            self._tested.pop(listed_in, None)
            self._tested[listed_in] = None
        eqclass.follow(ClassSignal.REFUSE, listed_in)
        _insert(eqclass, listed_in)
        self._note(listed_in)

    def hand_over(self, eqclass: EquivalenceClass) -> None:
        """The class ends representing its list, if it did. The next one takes over, unless the list
        has a verdict by now."""
        listed_in = eqclass.of_list
        if listed_in is not None and eqclass.state is ClassState.REPRESENTATIVE:
            eqclass.follow(ClassSignal.HAND_OVER)
            listed_in.representative = None
            self._note(listed_in)
            if listed_in.refusal is None:
                self._appoint(listed_in)
            else:
                self._tidy(listed_in)

    def requeue(self, eqclass: EquivalenceClass) -> None:
        """The class needs a verdict."""
        if eqclass.is_inadmissible:
            self._remove(eqclass)
            self._requeued.append(eqclass)
        self.active.add(eqclass)

    def judge_anew(self, eqclass: EquivalenceClass) -> None:
        """The verdict on the class and on those that share it does not stand, whatever happens."""
        lists = [eqclass.of_shape]
        if eqclass.of_list is not None and eqclass.of_list is not eqclass.of_shape:
            lists.append(eqclass.of_list)
        self._retry(lists, everyone=True)
        self.requeue(eqclass)

    def requeue_for_nodes(self, *, everyone: bool) -> None:
        """Requeue the classes that nodes may let in after what happened: the first of each list, or
        ``everyone``."""
        self._turns.renew()
        for listed_in in list(self._contested) if self._turns.change else ():
            if listed_in.representative is not None:
                self.reconsider(listed_in.representative)
        for shape in self._capacity.take_requeued():  # a reservation may know it alone
            self._retry([*self._of_shapes.get(shape, {}).values()], everyone=everyone)

    def requeue_others(self, until: Instant, *, everyone: bool) -> bool:
        """The same for those that shares may let in, and for those tested at ``until`` or before.
        Returns whether old verdicts are left."""
        self._retry(self._let_in(), everyone=everyone)
        old = takewhile(lambda each: each.tested_at <= until, self._tested)
        expired = list(islice(old, RETRIED_PER_PASS))
        self._retry(expired, everyone=everyone)
        self._requeued = []  # the caller gets them with this answer
        return len(expired) == RETRIED_PER_PASS

    def reconsider(self, eqclass: EquivalenceClass) -> None:
        """The shares have changed since the class was requeued, and it was not dispatched: if it
        represents its list, and another class of it comes first by now, that one takes over."""
        listed_in = eqclass.of_list
        if eqclass.state is not ClassState.REPRESENTATIVE or listed_in is None:
            return
        if not listed_in.line:
            return
        first = self._turns.first(listed_in.line)
        # of one slope, so at whatever instant
        if self._turns.of(first, 0) < self._turns.of(eqclass, 0):
            eqclass.follow(ClassSignal.HAND_OVER)
            self._represent(first, listed_in)

    def check(self, eqclasses: Iterable[EquivalenceClass]) -> None:
        """Each class is active or at its place in a list; raises ``InvariantViolated``. O(all)."""
        known, listed = list(eqclasses), self._all_inadmissible()
        for eqclass in known:
            self._check_class(eqclass)
        self.active.check(known)
        everyone = len(listed) + len(self.active)
        check(everyone == len(known), "each-class-is-active-or-listed", str(everyone))
        for listed_in in dict.fromkeys(one.of_list for one in listed if one.of_list is not None):
            self._check_list(listed_in)

    def _check_class(self, eqclass: EquivalenceClass) -> None:
        story, of_list = f"{eqclass.path} {eqclass.group}", eqclass.of_list
        is_inadmissible = eqclass.is_inadmissible
        check((eqclass in self.active) != is_inadmissible, "active-or-inadmissible", story)
        if of_list is not None and is_inadmissible:
            place = (eqclass.listed_by, eqclass)
            check(place in of_list.line, "listed-in-its-list", story)
            check(eqclass.listed_by == eqclass.key, "listed-by-its-head", story)
            is_own = of_list.at is not None or of_list is eqclass.of_shape
            check(is_own, "listed-with-its-shape", story)
        elif of_list is not None:
            check(of_list.representative is eqclass, "represents-its-list", story)
        is_alone = eqclass.state is ClassState.ACTIVE
        check((of_list is None) == is_alone, "lists-by-state", story)

    def _check_list(self, listed_in: InadmissibleList) -> None:
        keys, known = [key for key, _ in listed_in.line], listed_in.representative
        check(keys == sorted(keys), "lists-are-in-order", str(listed_in.at))
        is_contested = listed_in.representative is not None and bool(keys)
        check((listed_in in self._contested) == is_contested, "contested-lists", str(listed_in.at))
        is_known = known is None or known.of_list is listed_in
        check(is_known, "lists-know-their-representative", str(listed_in.at))

    # -- lists ---------------------------------------------------------------------------------

    def _list_for(self, eqclass: EquivalenceClass, refusal: Refusal) -> InadmissibleList:
        limit = refusal.quota
        if limit is None:
            return eqclass.of_shape
        where, amount = (limit.tree, limit.node or limit.leaf), (limit.requested, eqclass.slope)
        lists = self._at_nodes.setdefault(where, {}).setdefault(limit.resource, SortedDict())
        listed_in: InadmissibleList | None = lists.get(amount)
        if listed_in is None:
            listed_in = lists[amount] = InadmissibleList((where, limit.resource, amount))
        return listed_in

    def _let_in(self) -> list[InadmissibleList]:
        """The lists at nodes of quota trees that have room enough now, and all of a tree of which a
        share has changed: what was possible may be impossible by now, and the reverse. Classes
        whose path to the root has changed are requeued at once. Where heads block so are those that
        wait for nodes: one that has become impossible blocks none."""
        news = self._forest.take_news()
        regrown = news.regrown if self._turns.heads_block else frozenset()
        if news.rerouted or regrown:
            for eqclass in self._all_inadmissible():
                is_rerouted = not news.rerouted.isdisjoint(eqclass.path)
                if is_rerouted or any(tree in regrown for tree, _ in eqclass.path):
                    self.requeue(eqclass)
        found: list[InadmissibleList] = []
        for tree, node in news.risen:
            for resource, lists in self._at_nodes.get((tree, node), {}).items():
                room = self._forest.room(tree, node, resource)
                for (amount, _), listed_in in lists.items():
                    if amount > room and tree not in news.regrown:
                        break
                    found.append(listed_in)
        return found

    def _all_inadmissible(self) -> list[EquivalenceClass]:
        at_nodes = (lists for of_node in self._at_nodes.values() for lists in of_node.values())
        groups = (*self._of_shapes.values(), *at_nodes)
        return [one for lists in groups for each in lists.values() for _, one in each.line]

    def _retry(self, lists: list[InadmissibleList], *, everyone: bool) -> None:
        for listed_in in lists:
            self._tested.pop(listed_in, None)
            listed_in.refusal = None
            if everyone:
                for _, eqclass in list(listed_in.line):
                    self.requeue(eqclass)
            elif listed_in.representative is None:
                self._appoint(listed_in)

    def _appoint(self, listed_in: InadmissibleList) -> None:
        """Requeue the first class of the list, if there is one, as its representative."""
        if listed_in.line:
            self._represent(self._turns.first(listed_in.line), listed_in)
        else:
            self._tidy(listed_in)

    def _represent(self, eqclass: EquivalenceClass, listed_in: InadmissibleList) -> None:
        listed_in.representative = eqclass  # first, so that a list that gets empty is kept
        self.requeue(eqclass)
        eqclass.follow(ClassSignal.APPOINT, listed_in)
        self._note(listed_in)

    def _note(self, listed_in: InadmissibleList) -> None:
        if listed_in.representative is not None and listed_in.line:
            self._contested[listed_in] = None
        else:
            self._contested.pop(listed_in, None)

    def _remove(self, eqclass: EquivalenceClass) -> None:
        listed_in = eqclass.of_list
        if listed_in is not None and eqclass.is_inadmissible:
            del listed_in.line[_index(eqclass, listed_in)]
            eqclass.listed_by = None
            eqclass.follow(ClassSignal.REQUEUE)
            self._note(listed_in)
            self._tidy(listed_in)

    def _tidy(self, listed_in: InadmissibleList) -> None:
        """Drop the list if it is empty and belongs to a node of a quota tree."""
        if listed_in.at is None or listed_in.line or listed_in.representative is not None:
            return
        where, resource, amount = listed_in.at
        lists = self._at_nodes[where]
        del lists[resource][amount]
        if not lists[resource]:
            del lists[resource]
        if not lists:
            del self._at_nodes[where]
        self._tested.pop(listed_in, None)


def _insert(eqclass: EquivalenceClass, listed_in: InadmissibleList) -> None:
    eqclass.listed_by = eqclass.key
    insort(listed_in.line, (eqclass.listed_by, eqclass))


def _index(eqclass: EquivalenceClass, listed_in: InadmissibleList) -> int:
    return bisect_left(listed_in.line, (eqclass.listed_by,))
