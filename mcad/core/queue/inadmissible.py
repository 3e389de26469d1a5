"""Which buckets rest, and which are woken. A bucket rests while the verdict on it stands: then
nothing has to look at it (core rule R4).

Of those that wait for the same only the first is woken, so a release of room costs as much whether
one leaf of a quota tree waits for it or a thousand do.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from mcad.core.queue.equivalence import Bed, Bucket, Node
from mcad.core.quota.usage import Forest
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import Instant
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from mcad.core.fit.capacity import Capacity
    from mcad.core.fit.shape import Shape
    from mcad.core.queue.ordering import Turns


class Beds:
    """All buckets that are in line, those that need a verdict and those that rest."""

    def __init__(self, capacity: Capacity, forest: Forest, turns: Turns) -> None:
        self._capacity = capacity
        self._forest = forest
        self._turns = turns
        self._awake: dict[Bucket, None] = {}
        self._called: list[Bucket] = []  # woken since the last question
        self._tested: dict[Bed, None] = {}  # beds with a verdict, in the order of their last test
        self._of_shapes: dict[Shape, dict[int, Bed]] = {}  # by slope
        self._at_nodes: dict[Node, dict[str, SortedDict[tuple[int, int], Bed]]] = {}

    # -- the line ------------------------------------------------------------------------------

    def of_shape(self, shape: Shape, slope: int) -> Bed:
        """Where those of one shape and slope lie that wait for nodes."""
        return self._of_shapes.setdefault(shape, {}).setdefault(slope, Bed())

    def forget(self, shape: Shape, slope: int) -> None:
        """None of that shape and slope is in line any more."""
        beds = self._of_shapes[shape]
        self._tested.pop(beds.pop(slope), None)
        if not beds:
            del self._of_shapes[shape]

    def enter(self, bucket: Bucket) -> None:
        """A new bucket is in line; it needs a verdict."""
        self._awake[bucket] = None

    def leave(self, bucket: Bucket) -> None:
        """None stands in the bucket any more."""
        self._get_up(bucket)
        self._awake.pop(bucket, None)

    def move(self, bucket: Bucket) -> None:
        """It rests and has another head. Where one leads, this one may have to go before it."""
        bed = bucket.bed
        if bed is None or bed.leader is not None:
            self.wake(bucket)
        else:
            del bed.line[_index(bucket, bed)]
            _lie_down(bucket, bed)

    # -- the walk ------------------------------------------------------------------------------

    def awake(self) -> Iterator[Bucket]:
        """The buckets that need a verdict."""
        return iter(self._awake)

    def take_called(self) -> list[Bucket]:
        """Those that have come to need one since the last call."""
        called, self._called = self._called, []
        return called

    def rest(self, bucket: Bucket, refusal: Refusal, now: Instant) -> None:
        """The bucket was refused, and may rest until what it waits for may be there."""
        bed = self._bed_for(bucket, refusal)
        self._awake.pop(bucket, None)
        if bucket.leads is bed:
            bucket.leads = bed.leader = None
        else:
            self.pass_on(bucket)
        if bed.refusal is not refusal:  # else it was told what others had found out
            bed.refusal, bed.tested_at = refusal, now
            self._tested.pop(bed, None)
            self._tested[bed] = None
        _lie_down(bucket, bed)

    def pass_on(self, bucket: Bucket) -> None:
        """It does not lead any more, if it did; the next one does, unless the bed has a verdict by
        now."""
        bed, bucket.leads = bucket.leads, None
        if bed is not None:
            bed.leader = None
            if bed.refusal is None:
                self._lead(bed)
            else:
                self._tidy(bed)

    def wake(self, bucket: Bucket) -> None:
        """The bucket needs a verdict."""
        if bucket.rests:
            self._get_up(bucket)
            self._called.append(bucket)
        self._awake[bucket] = None

    def wake_all(self, until: Instant, *, everyone: bool) -> None:
        """Those that may be let in by what happened, and those that were tested at that time or
        before: of all that wait for the same the first, or ``everyone``."""
        self._turns.renew()
        for bucket in list(self._awake) if self._turns.change else ():
            self.reconsider(bucket)
        for shape in self._capacity.take_woken():
            for bed in list(self._of_shapes.get(shape, {}).values()):  # a claim may know it alone
                self._open(bed, everyone=everyone)
        for bed in self._let_in():
            self._open(bed, everyone=everyone)
        for bed in list(takewhile(lambda each: each.tested_at <= until, self._tested)):
            self._open(bed, everyone=everyone)
        self._called = []  # the caller gets them with this answer

    def reconsider(self, leader: Bucket) -> None:
        """It has not gone on, and shares are others than when it was woken: what comes first in its
        bed by now leads instead."""
        bed = leader.leads
        if bed is None or not bed.line:
            return
        first = self._turns.first(bed.line)
        if self._turns.of(first, 0) < self._turns.of(leader, 0):  # of one slope, so whenever
            bed.leader, leader.leads, first.leads = first, None, bed
            self.wake(first)

    def check(self, buckets: Iterable[Bucket]) -> None:
        """Each bucket is awake or lies in one bed, where that says; raises ``InvariantViolated``.
        O(all)."""
        count, resting = 0, list(self._resting())
        for bucket in buckets:
            count += 1
            story = f"{bucket.path} {bucket.group}"
            bed = bucket.bed
            check((bucket in self._awake) == (bed is None), "awake-or-at-rest", story)
            if bed is not None:
                check((bucket.lies_by, bucket) in bed.line, "lies-in-its-bed", story)
                check(bucket.lies_by == bucket.key, "lies-by-its-head", story)
                of_shape = self._of_shapes[bucket.shape][bucket.slope]
                check(bed.at is not None or bed is of_shape, "lies-with-its-shape", story)
            if bucket.leads is not None:
                check(bucket.leads.leader is bucket, "leads-its-bed", story)
        check(len(resting) + len(self._awake) == count, "no-bucket-is-left-behind", str(count))
        for bed in dict.fromkeys(one.bed for one in resting if one.bed is not None):
            keys = [key for key, _ in bed.line]
            check(keys == sorted(keys), "beds-are-in-order", str(bed.at))
            check(
                bed.leader is None or bed.leader.leads is bed, "beds-know-their-leader", str(bed.at)
            )

    # -- beds ----------------------------------------------------------------------------------

    def _bed_for(self, bucket: Bucket, refusal: Refusal) -> Bed:
        limit = refusal.quota
        if limit is None:
            return bucket.of_shape
        where, amount = (limit.tree, limit.node or limit.leaf), (limit.requested, bucket.slope)
        beds = self._at_nodes.setdefault(where, {}).setdefault(limit.resource, SortedDict())
        bed: Bed | None = beds.get(amount)
        if bed is None:
            bed = beds[amount] = Bed((where, limit.resource, amount))
        return bed

    def _let_in(self) -> list[Bed]:
        """The beds at nodes of quota trees that have room enough now. One with another way to the
        root is woken at once."""
        news = self._forest.take_news()
        if news.rerouted:
            rerouted = [b for b in self._resting() if not news.rerouted.isdisjoint(b.path)]
            for bucket in rerouted:
                self.wake(bucket)
        found: list[Bed] = []
        for tree, node in news.risen:
            for resource, beds in self._at_nodes.get((tree, node), {}).items():
                room = self._forest.room(tree, node, resource)
                for (amount, _), bed in beds.items():
                    if amount > room:
                        break
                    found.append(bed)
        return found

    def _resting(self) -> Iterator[Bucket]:
        for of_shape in self._of_shapes.values():
            for bed in of_shape.values():
                yield from (bucket for _, bucket in bed.line)
        for resources in self._at_nodes.values():
            for beds in resources.values():
                for bed in beds.values():
                    yield from (bucket for _, bucket in bed.line)

    def _open(self, bed: Bed, *, everyone: bool) -> None:
        self._tested.pop(bed, None)
        bed.refusal = None
        if everyone:
            for _, bucket in list(bed.line):
                self.wake(bucket)
        elif bed.leader is None:
            self._lead(bed)

    def _lead(self, bed: Bed) -> None:
        """The first of the bed wakes, if there is one."""
        if bed.line:
            bucket = bed.leader = self._turns.first(bed.line)
            bucket.leads = bed
            self.wake(bucket)
        else:
            self._tidy(bed)

    def _get_up(self, bucket: Bucket) -> None:
        bed = bucket.bed
        if bed is not None:
            del bed.line[_index(bucket, bed)]
            bucket.bed = bucket.lies_by = None
            self._tidy(bed)

    def _tidy(self, bed: Bed) -> None:
        """None waits for that at this node of a quota tree any more."""
        if bed.at is None or bed.line or bed.leader is not None:
            return
        where, resource, amount = bed.at
        beds = self._at_nodes[where]
        del beds[resource][amount]
        if not beds[resource]:
            del beds[resource]
        if not beds:
            del self._at_nodes[where]
        self._tested.pop(bed, None)


def _lie_down(bucket: Bucket, bed: Bed) -> None:
    bucket.bed, bucket.lies_by = bed, bucket.key
    insort(bed.line, (bucket.lies_by, bucket))


def _index(bucket: Bucket, bed: Bed) -> int:
    return bisect_left(bed.line, (bucket.lies_by,))
