"""Start time estimates: the ends of running AppWrappers are replayed, and the AppWrappers ahead
start first, for as long as they may run. Nothing is changed; valid until the next event.

No AppWrapper starts before a competitor ahead for nodes or shares: it may go around that
AppWrapper, but that cannot be counted on.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import NamedTuple

from mcad.core.cluster import Cluster
from mcad.core.eligibility import end_times
from mcad.core.eligibility.end_times import NEVER, ExpectedEnd
from mcad.core.nodes.shape import Shape
from mcad.core.reservations import release_set
from mcad.core.snapshot.removal import soonest
from mcad.core.snapshot.snapshot import Planned, Snapshot
from mcad.core.state.entry import Entry
from mcad.core.state.quota_records import Path
from mcad.core.state.units import Instant

_Key = tuple[Shape, Path]


class Start(NamedTuple):
    """When an AppWrapper starts, with ``ahead`` others placed before it, and after ``left`` others
    have made room. ``soft`` of all these have no limit, or wait for one without."""

    at: Instant
    ahead: int = 0
    left: int = 0
    soft: int = 0


class _Placed(NamedTuple):
    """An AppWrapper ahead, as if it had started."""

    uid: str
    key: _Key
    start: Start
    end: ExpectedEnd
    planned: Planned


@dataclass(slots=True)
class _Room:
    """The room for one shape at one place in the quota trees, as far as it is replayed.

    ``agenda`` has (when, uid) of the AppWrappers that leave; those before ``at`` have left. The
    first ``seen`` of the placed rivals are assumed.
    """

    removal: Snapshot
    agenda: list[tuple[Instant, str]]
    at: int = 0
    seen: int = 0
    left: int = 0
    soft: int = 0


class StartEstimate:
    """Call ``place`` for one AppWrapper after the other, in the order of the line."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ends = {
            one.uid: end_times.of_present(cluster, one) for one in release_set.present(cluster)
        }
        self._early = sorted((end.early, uid) for uid, end in self._ends.items())
        self._agenda = sorted(
            (end.late, uid) for uid, end in self._ends.items() if end.late != NEVER
        )
        self._rooms: dict[_Key, _Room] = {}
        self._placed: list[_Placed] = []
        self._rivals: dict[tuple[_Key, _Key], bool] = {}
        self._questions = cluster.capacity.questions()
        self._others = 2 * len(self._ends)  # to compute and sort their ends

    @property
    def steps(self) -> int:
        """The work so far, about a microsecond each."""
        asked = sum(room.removal.steps for room in self._rooms.values())
        return self._others + asked

    def is_hopeless(self, entry: Entry) -> bool:
        """Whether the AppWrapper would not fit on an empty cluster; then it delays no other. A wait
        for reservations, or for pods that lost their nodes, is not hopeless."""
        shape, path = self._key(entry)
        removal = self._room((shape, path)).removal
        if not removal.hopeless:
            return False
        return removal.shares.hopeless or not self._questions.would_fit_emptied(shape)

    def compete(self, one: Entry, other: Entry) -> bool:
        """Whether two AppWrappers in line want the same nodes, or shares of the same tree."""
        return self._compete(self._key(one), self._key(other))

    def place(self, entry: Entry, not_before: Instant = 0) -> Start | None:
        """When the next in line starts; it takes its room from then on. None if that is unknown:
        then do not place a rival behind it."""
        key = self._key(entry)
        room = self._room(key)
        rivals = [one for one in self._placed if self._compete(key, one.key)]
        for one in rivals[room.seen :]:
            room.removal.assume(one.uid, one.planned)
            if one.end.late != NEVER:
                insort(room.agenda, (one.end.late, one.uid), lo=room.at)
        room.seen = len(rivals)
        at = max(self._cluster.now, not_before, *(one.start.at for one in rivals))
        while room.at < len(room.agenda) and room.agenda[room.at][0] <= at:
            self._leave(room, room.agenda[room.at][1], to_go=True)
            room.at += 1
        found = soonest(room.removal, [uid for _, uid in room.agenda[room.at :]])
        if found is None:
            return None
        for uid in found.leaving:
            self._leave(room, uid, to_go=False)
        if found.leaving:
            while room.agenda[room.at][1] != found.leaving[-1]:
                room.at += 1
            at = max(at, room.agenda[room.at][0])
            room.at += 1
        soft = room.soft + sum(one.start.soft > 0 for one in rivals)
        start = Start(at, len(rivals), room.left, soft)
        end = end_times.of_start(self._cluster, entry, at)
        self._ends[entry.uid] = end
        planned = room.removal.planned(found.plan)
        self._placed.append(_Placed(entry.uid, key, start, end, planned))
        return start

    def lacking(self, entry: Entry) -> int:
        """How many of the AppWrappers that it waits for declare no end, and have no expected end; 0
        if its start is unknown for another reason."""
        room = self._room(self._key(entry))
        known = [uid for _, uid in room.agenda[room.at :]]
        unknown = [uid for uid, end in self._ends.items() if end.late == NEVER]
        found = soonest(room.removal, [*known, *unknown])
        if found is None:
            return 0
        for uid in found.leaving:
            room.removal.restore(uid)
        return len(set(unknown).intersection(found.leaving))

    def earliest(self, entry: Entry) -> Instant:
        """When there is room at the earliest if no other AppWrapper takes any, reservations
        included, and AppWrappers without an expected end left at once; 0 if at any moment."""
        shape, path = self._key(entry)
        removal = self._cluster.admission.what_if(shape, path, self._cluster.reservations)
        found = soonest(removal, [uid for _, uid in self._early])
        self._others += removal.steps
        if found is None or not found.leaving:
            return 0
        at = self._ends[found.leaving[-1]].early
        return at if at > self._cluster.now else 0

    def _leave(self, room: _Room, uid: str, *, to_go: bool) -> None:
        if not to_go or room.removal.remove(uid):
            room.left += 1
            room.soft += not self._ends[uid].firm

    def _key(self, entry: Entry) -> _Key:
        shape = self._cluster.capacity.shape(entry.workload.sets)
        return shape, self._cluster.path(entry)

    def _room(self, key: _Key) -> _Room:
        room = self._rooms.get(key)
        if room is None:
            removal = self._cluster.admission.what_if(*key, self._cluster.reservations)
            room = self._rooms[key] = _Room(removal, self._agenda.copy())
        return room

    def _compete(self, one: _Key, other: _Key) -> bool:
        known = self._rivals.get((one, other))
        if known is None:
            trees = {tree for tree, _ in one[1]}.intersection(tree for tree, _ in other[1])
            known = one[0] == other[0] or bool(trees)
            mine, others = self._room(one).removal, self._room(other).removal
            known = known or mine.competes(others)
            self._rivals[one, other] = known
        return known
