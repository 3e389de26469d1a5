"""What waits, in which order. Equal shapes of one quota path and group stand in one bucket, because
they share their verdict and their turn.

The order is (priority descending, first seen ascending, uid), but for ``fairness``. A
``priorityslope`` ages with a static integer key (core rule R7): slope x first seen - priority x
10^9; what all members of a bucket gain with time is the same, so it is subtracted for heads only
and nothing is ever re-sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mcad.core.queue.equivalence import MS, Bucket, Key
from mcad.core.quota.demand import Waiting
from mcad.core.quota.records import Path
from mcad.core.state.records import Struct
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import Instant
from mcad.core.state.violations import check

if TYPE_CHECKING:
    from mcad.core.fit.capacity import Capacity
    from mcad.core.fit.shape import Shape
    from mcad.core.queue.inadmissible import Beds
    from mcad.core.state.entry import Entry

_Alike = tuple[Path, str]  # and the group that shares what is in use

_SCALE = 10**9  # priority 1 = slope of 10^6 millionths per second over 1000 ms


class Rank(Struct, frozen=True):
    """What an AppWrapper queues with: a priority, and how it climbs (millionths per second).

    ``until`` is when it has to be ranked anew, because it may climb no further; 0 is never.
    """

    priority: int
    slope: int = 0
    until: Instant = 0

    def key(self, entry: Entry) -> Key:
        """The static sort key within a bucket."""
        seen_ms = entry.first_seen // MS
        return (self.slope * seen_ms - self.priority * _SCALE, entry.first_seen, entry.uid)


class Queue:
    """All buckets that have members; the capacity remembers their shapes as long as they have, the
    beds know which of them rest, and ``waiting`` what they ask of every leaf. ``new`` are those
    that one has entered since they were offered what is claimed and free (backfill.py)."""

    def __init__(self, capacity: Capacity, beds: Beds, waiting: Waiting) -> None:
        self._capacity = capacity
        self._beds = beds
        self._waiting = waiting
        self._buckets: dict[Shape, dict[int, dict[_Alike, Bucket]]] = {}
        self._by_path: dict[Path, dict[Bucket, None]] = {}
        self._places: dict[str, tuple[Bucket, Key]] = {}
        self.new: dict[Bucket, None] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, entry: Entry) -> bool:
        return entry.uid in self._places

    def add(self, entry: Entry, shape: Shape, path: Path, group: str, rank: Rank) -> Bucket:
        """Put an AppWrapper in line; in a refused bucket this is an insertion and no more."""
        alike = self._buckets.setdefault(shape, {}).setdefault(rank.slope, {})
        bucket = alike.get((path, group))
        if bucket is None:
            of_shape = self._beds.of_shape(shape, rank.slope)
            bucket = alike[path, group] = Bucket(shape, rank.slope, path, group, of_shape)
            self._by_path.setdefault(path, {})[bucket] = None
            self._beds.enter(bucket)
            self._capacity.remember(shape)
        key = rank.key(entry)
        bucket.members[key] = entry
        if bucket.key == key:
            bucket.planned_at = 0
        self.new[bucket] = None
        self._places[entry.uid] = (bucket, key)
        self._waiting.join(path, shape)
        if bucket.lies_by is not None and key < bucket.lies_by:
            self._beds.move(bucket)
        return bucket

    def remove(self, entry: Entry) -> None:
        """Take an AppWrapper out of the line, if it is there."""
        place = self._places.pop(entry.uid, None)
        if place is None:
            return
        bucket, key = place
        del bucket.members[key]
        self._waiting.join(bucket.path, bucket.shape, -1)
        self._beds.pass_on(bucket)  # with another head it may be behind the next in the bed
        if not bucket.members:
            self._drop(bucket)
        elif bucket.lies_by == key:
            self._beds.move(bucket)

    def _drop(self, bucket: Bucket) -> None:
        self._beds.leave(bucket)
        self.new.pop(bucket, None)
        of_path = self._by_path[bucket.path]
        del of_path[bucket]
        if not of_path:
            del self._by_path[bucket.path]
        slopes = self._buckets[bucket.shape]
        del slopes[bucket.slope][bucket.path, bucket.group]
        if not slopes[bucket.slope]:
            self._beds.forget(bucket.shape, bucket.slope)
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
        """All in line, in no order that matters; a copy."""
        return [entry for bucket in self.buckets() for entry in bucket.members.values()]

    def buckets(self) -> Iterator[Bucket]:
        """All buckets, those with equal shapes together."""
        for slopes in self._buckets.values():
            for alike in slopes.values():
                yield from alike.values()

    def by_path(self) -> Iterator[tuple[Path, Iterable[Bucket]]]:
        """All buckets, those of the same leaves together."""
        return ((path, buckets.keys()) for path, buckets in self._by_path.items())

    def places(self) -> dict[str, tuple[Bucket, Key]]:
        """Where all in line stand (by uid), and their static keys there; a copy."""
        return dict(self._places)

    def check(self) -> None:
        """Buckets, places and sums agree; raises ``InvariantViolated``. O(all in line)."""
        asked = Waiting()
        for bucket in self.buckets():
            story = f"{bucket.path} {bucket.group}"
            check(bool(bucket.members), "buckets-have-members", story)
            check(bucket in self._by_path[bucket.path], "buckets-are-found-by-path", story)
            for key, entry in bucket.members.items():
                check(self._places.get(entry.uid) == (bucket, key), "place-is-known", entry.title)
                asked.join(bucket.path, bucket.shape)
        members = sum(len(bucket.members) for bucket in self.buckets())
        check(members == len(self._places), "each-stands-once", f"{members}, {len(self._places)}")
        buckets = sum(map(len, self._by_path.values()))
        check(buckets == len(list(self.buckets())), "paths-know-what-is-there", str(buckets))
        check(self._waiting.equals(asked), "demand-in-line-is-the-sum", "")
        self._beds.check(self.buckets())
