"""Who waits, in which order. Equal shapes stand in one bucket, because they share their verdict.

The order is (priority descending, first seen ascending, uid). A ``priorityslope`` ages with a
static integer key (core rule R7): slope x first seen - priority x 10^9; what all members of a
bucket gain with time is the same, so it is subtracted for heads only and nothing is ever re-sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from mcad.core.records import Struct
from mcad.core.units import Instant
from mcad.core.verdicts import Refusal

if TYPE_CHECKING:
    from mcad.core.capacity import Capacity, Shape
    from mcad.core.entry import Entry

_MS = 1_000
_SCALE = 10**9  # priority 1 = slope of 10^6 millionths per second over 1000 ms

Key = tuple[int, int, str]


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
class Bucket:
    """Waiting AppWrappers of one shape and slope.

    ``refusal`` is their common verdict, reached at ``tested_at``. While the bucket rests it stands.
    """

    shape: Shape
    slope: int
    members: SortedDict[Key, Entry] = field(default_factory=SortedDict)
    refusal: Refusal | None = None
    tested_at: Instant = 0

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

    A bucket rests while the verdict on it stands: then nothing has to look at it (core rule R4).
    """

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._buckets: dict[Shape, dict[int, Bucket]] = {}
        self._awake: dict[Bucket, None] = {}
        self._resting: dict[Bucket, None] = {}  # in the order of their last test
        self._places: dict[str, tuple[Bucket, Key]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, entry: Entry) -> bool:
        return entry.uid in self._places

    def add(self, entry: Entry, shape: Shape, rank: Rank) -> Bucket:
        """Put an AppWrapper in line; in a refused bucket this is an insertion and no more."""
        alike = self._buckets.setdefault(shape, {})
        bucket = alike.get(rank.slope)
        if bucket is None:
            bucket = alike[rank.slope] = Bucket(shape, rank.slope)
            self._awake[bucket] = None
            self._capacity.remember(shape)
        key = rank.key(entry)
        bucket.members[key] = entry
        self._places[entry.uid] = (bucket, key)
        return bucket

    def remove(self, entry: Entry) -> None:
        """Take an AppWrapper out of the line, if it is there."""
        place = self._places.pop(entry.uid, None)
        if place is None:
            return
        bucket, key = place
        del bucket.members[key]
        if not bucket.members:
            self._awake.pop(bucket, None)
            self._resting.pop(bucket, None)
            alike = self._buckets[bucket.shape]
            del alike[bucket.slope]
            if not alike:
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

    def buckets(self) -> Iterator[Bucket]:
        """All buckets, those with equal shapes together."""
        return (bucket for alike in self._buckets.values() for bucket in alike.values())

    # -- rest ----------------------------------------------------------------------------------

    def awake(self) -> Iterator[Bucket]:
        """The buckets that need a verdict."""
        return iter(self._awake)

    def rests(self, bucket: Bucket) -> bool:
        """Whether the verdict on the bucket stands."""
        return bucket in self._resting

    def rest(self, bucket: Bucket) -> None:
        """The bucket was refused just now, and may rest until its shape wakes."""
        self._awake.pop(bucket, None)
        self._resting.pop(bucket, None)
        self._resting[bucket] = None

    def wake(self, bucket: Bucket) -> None:
        """The bucket needs a verdict."""
        self._resting.pop(bucket, None)
        self._awake[bucket] = None

    def wake_all(self, until: Instant) -> None:
        """Those of woken shapes, and those that were tested at that time or before."""
        for shape in self._capacity.take_woken():
            for bucket in self._buckets[shape].values():
                self.wake(bucket)
        for bucket in list(takewhile(lambda each: each.tested_at <= until, self._resting)):
            self.wake(bucket)

    def places(self) -> dict[str, tuple[Bucket, Key]]:
        """Where everybody in line stands (by uid), and its static key there; a copy."""
        return dict(self._places)


def current(bucket: Bucket, key: Key, now: Instant) -> Key:
    """How a member of a bucket compares with members of others at this instant."""
    static, seen, uid = key
    return (static - bucket.slope * (now // _MS), seen, uid)
