"""Who waits, in which order. Equal shapes of one quota path stand in one bucket, because they share
their verdict.

The order is (priority descending, first seen ascending, uid). A ``priorityslope`` ages with a
static integer key (core rule R7): slope x first seen - priority x 10^9; what all members of a
bucket gain with time is the same, so it is subtracted for heads only and nothing is ever re-sorted.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from mcad.core.quota import Forest, Path
from mcad.core.records import Struct
from mcad.core.units import Instant
from mcad.core.verdicts import Refusal

if TYPE_CHECKING:
    from mcad.core.capacity import Capacity, Shape
    from mcad.core.entry import Entry

_MS = 1_000
_SCALE = 10**9  # priority 1 = slope of 10^6 millionths per second over 1000 ms

Key = tuple[int, int, str]
_Where = tuple[str, str]  # a quota tree and a node of it


class Rank(Struct, frozen=True):
    """What an AppWrapper queues with: a priority, and how it climbs (millionths per second).

    ``until`` is when it has to be ranked anew, because it may climb no further; 0 is never.
    """

    priority: int
    slope: int = 0
    until: Instant = 0

    def key(self, entry: Entry) -> Key:
        """The static sort key within a bucket."""
        seen_ms = entry.first_seen // _MS
        return (self.slope * seen_ms - self.priority * _SCALE, entry.first_seen, entry.uid)


@dataclass(slots=True, eq=False)
class Bed:
    """Refused buckets that wait for the same, in order: room on nodes for one shape, or so much of
    one resource at one node of a quota tree.

    Only its ``leader`` is awake, if anybody is: not before it has gone on need the next one be
    looked at. ``refusal`` is the verdict that all of them share, reached at ``tested_at``; None
    while it has to be reached anew. ``at`` says where it stands in the index of the quota trees.
    """

    at: tuple[_Where, str, tuple[int, int]] | None = None
    line: list[tuple[Key, Bucket]] = field(default_factory=list)
    leader: Bucket | None = None
    refusal: Refusal | None = None
    tested_at: Instant = 0


@dataclass(slots=True, eq=False)
class Bucket:
    """Waiting AppWrappers of one shape, slope and quota path.

    ``refusal`` is their common verdict, reached at ``tested_at``; it stands while the bucket is in
    a ``bed``, where it lies by the key of its first. ``leads`` is the bed that waits for what
    becomes of this one, ``of_shape`` that of those with its shape and slope who wait for nodes.
    """

    shape: Shape
    slope: int
    path: Path
    of_shape: Bed
    members: SortedDict[Key, Entry] = field(default_factory=SortedDict)
    refusal: Refusal | None = None
    tested_at: Instant = 0
    bed: Bed | None = None
    lies_by: Key | None = None
    leads: Bed | None = None

    def first(self) -> Entry:
        """The head of this bucket; the bucket must not be empty."""
        entry: Entry = self.members.peekitem(0)[1]
        return entry

    def key(self, now: Instant) -> Key:
        """How the head compares with heads of other buckets at this instant."""
        return current(self, self.members.peekitem(0)[0], now)

    def front(self, count: int) -> list[Entry]:
        """The first members in order, at most ``count``."""
        return list(self.members.values()[:count])


class Queue:
    """All buckets that have members; the capacity remembers their shapes as long as they have.

    A bucket rests while the verdict on it stands: then nothing has to look at it (core rule R4). Of
    those who wait for the same only the first is woken, so a release of room costs as much whether
    one leaf of a quota tree waits for it or a thousand do.
    """

    def __init__(self, capacity: Capacity, forest: Forest) -> None:
        self._capacity = capacity
        self._forest = forest
        self._buckets: dict[Shape, dict[int, dict[Path, Bucket]]] = {}
        self._awake: dict[Bucket, None] = {}
        self._called: list[Bucket] = []  # who woke since somebody asked
        self._tested: dict[Bed, None] = {}  # beds with a verdict, in the order of their last test
        self._at_nodes: dict[_Where, dict[str, SortedDict[tuple[int, int], Bed]]] = {}
        self._places: dict[str, tuple[Bucket, Key]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, entry: Entry) -> bool:
        return entry.uid in self._places

    def add(self, entry: Entry, shape: Shape, path: Path, rank: Rank) -> Bucket:
        """Put an AppWrapper in line; in a refused bucket this is an insertion and no more."""
        alike = self._buckets.setdefault(shape, {}).setdefault(rank.slope, {})
        bucket = alike.get(path)
        if bucket is None:
            of_shape = _of_shape(alike) if alike else Bed()
            bucket = alike[path] = Bucket(shape, rank.slope, path, of_shape)
            self._awake[bucket] = None
            self._capacity.remember(shape)
        key = rank.key(entry)
        bucket.members[key] = entry
        self._places[entry.uid] = (bucket, key)
        if bucket.lies_by is not None and key < bucket.lies_by:
            self._move(bucket)
        return bucket

    def remove(self, entry: Entry) -> None:
        """Take an AppWrapper out of the line, if it is there."""
        place = self._places.pop(entry.uid, None)
        if place is None:
            return
        bucket, key = place
        del bucket.members[key]
        if bucket.leads is not None:  # with another head it may be behind the next in the bed
            self._hand_over(bucket)
        if not bucket.members:
            self._drop(bucket)
        elif bucket.lies_by == key:
            self._move(bucket)

    def _drop(self, bucket: Bucket) -> None:
        self._get_up(bucket)
        self._awake.pop(bucket, None)
        slopes = self._buckets[bucket.shape]
        del slopes[bucket.slope][bucket.path]
        if not slopes[bucket.slope]:
            self._tested.pop(bucket.of_shape, None)
            del slopes[bucket.slope]
        if not slopes:
            del self._buckets[bucket.shape]
        self._capacity.forget(bucket.shape)

    def bucket_of(self, entry: Entry) -> Bucket | None:
        """Where an AppWrapper stands, None if it is not in line."""
        place = self._places.get(entry.uid)
        return place[0] if place is not None else None

    def refusal_of(self, entry: Entry) -> Refusal | None:
        """The verdict that stands for an AppWrapper, None if it has none or is not in line."""
        bucket = self.bucket_of(entry)
        return bucket.refusal if bucket is not None else None

    def entries(self) -> list[Entry]:
        """Everybody in line, in no order that matters; a copy."""
        return [entry for bucket in self.buckets() for entry in bucket.members.values()]

    def buckets(self) -> Iterator[Bucket]:
        """All buckets, those with equal shapes together."""
        for slopes in self._buckets.values():
            for alike in slopes.values():
                yield from alike.values()

    # -- rest ----------------------------------------------------------------------------------

    def awake(self) -> Iterator[Bucket]:
        """The buckets that need a verdict."""
        return iter(self._awake)

    def take_called(self) -> list[Bucket]:
        """Those that have come to need one since the last call."""
        called, self._called = self._called, []
        return called

    def rests(self, bucket: Bucket) -> bool:
        """Whether the verdict on the bucket stands."""
        return bucket.bed is not None

    def rest(self, bucket: Bucket, refusal: Refusal, now: Instant) -> None:
        """The bucket was refused, and may rest until what it waits for may be there."""
        bed = self._bed_for(bucket, refusal)
        self._awake.pop(bucket, None)
        if bucket.leads is bed:
            bucket.leads = bed.leader = None
        elif bucket.leads is not None:
            self._hand_over(bucket)
        if bed.refusal is not refusal:  # else it was told what others had found out
            bed.refusal, bed.tested_at = refusal, now
            self._tested.pop(bed, None)
            self._tested[bed] = None
        self._lie_down(bucket, bed)

    def pass_on(self, bucket: Bucket) -> None:
        """It was looked at and stays awake: whoever waits for what becomes of it is next."""
        if bucket.leads is not None:
            self._hand_over(bucket)

    def wake(self, bucket: Bucket) -> None:
        """The bucket needs a verdict."""
        if bucket.bed is not None:
            self._get_up(bucket)
            self._called.append(bucket)
        self._awake[bucket] = None

    def wake_all(self, until: Instant, *, everyone: bool) -> None:
        """Those who may be let in by what happened, and those that were tested at that time or
        before: of all who wait for the same the first, or ``everyone``."""
        for shape in self._capacity.take_woken():
            for alike in self._buckets[shape].values():
                self._open(_of_shape(alike), everyone=everyone)
        for bed in self._let_in():
            self._open(bed, everyone=everyone)
        for bed in list(takewhile(lambda each: each.tested_at <= until, self._tested)):
            self._open(bed, everyone=everyone)
        self._called = []  # whoever asks who is awake knows them

    def places(self) -> dict[str, tuple[Bucket, Key]]:
        """Where everybody in line stands (by uid), and its static key there; a copy."""
        return dict(self._places)

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
        """The beds at nodes of quota trees that have room enough now. Whoever has another way to
        the root is woken at once."""
        news = self._forest.take_news()
        if news.rerouted:
            for bucket in [b for b in self.buckets() if not news.rerouted.isdisjoint(b.path)]:
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
            bucket = bed.leader = bed.line[0][1]
            bucket.leads = bed
            self.wake(bucket)
        else:
            self._tidy(bed)

    def _hand_over(self, bucket: Bucket) -> None:
        """It does not lead any more; the next one does, unless the bed has a verdict by now."""
        bed, bucket.leads = bucket.leads, None
        if bed is not None:
            bed.leader = None
            if bed.refusal is None:
                self._lead(bed)
            else:
                self._tidy(bed)

    def _move(self, bucket: Bucket) -> None:
        """It has another head. Where one leads, this one may have to go before it."""
        bed = bucket.bed
        if bed is None or bed.leader is not None:
            self.wake(bucket)
        else:
            del bed.line[_index(bucket, bed)]
            self._lie_down(bucket, bed)

    def _lie_down(self, bucket: Bucket, bed: Bed) -> None:
        key: Key = bucket.members.peekitem(0)[0]
        bucket.bed, bucket.lies_by = bed, key
        insort(bed.line, (key, bucket))

    def _get_up(self, bucket: Bucket) -> None:
        bed = bucket.bed
        if bed is not None:
            del bed.line[_index(bucket, bed)]
            bucket.bed = bucket.lies_by = None
            self._tidy(bed)

    def _tidy(self, bed: Bed) -> None:
        """Nobody waits for that at this node of a quota tree any more."""
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


def _of_shape(alike: dict[Path, Bucket]) -> Bed:
    return next(iter(alike.values())).of_shape


def _index(bucket: Bucket, bed: Bed) -> int:
    return bisect_left(bed.line, (bucket.lies_by,))


def current(bucket: Bucket, key: Key, now: Instant) -> Key:
    """How a member of a bucket compares with members of others at this instant."""
    static, seen, uid = key
    return (static - bucket.slope * (now // _MS), seen, uid)
