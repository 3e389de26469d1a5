"""AppWrappers as rows for users: the CLI and the HTTP port show the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from operator import itemgetter

from mcad.core.attempts import teardown
from mcad.core.cluster import Cluster
from mcad.core.cycle import cycle
from mcad.core.eligibility import pre_enqueue
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.quota.explain import Words
from mcad.core.running import stalls
from mcad.core.state.entry import Entry, Wait
from mcad.core.state.lifecycle import ENDED, TEARING_DOWN, Phase
from mcad.core.state.model import Condition, DispatchRecord, Resources, Workload
from mcad.core.state.reasons import PODS_MISSING, PODS_STARTING, ConditionType, State
from mcad.core.state.records import Struct
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import Instant
from mcad.core.state.waiting_reason import Hold
from mcad.core.status.status import failure, queue_job_state, state


class Row(Struct, frozen=True):
    """One AppWrapper.

    ``position`` is its place in line from 1, 0 if it is not in line. ``waits_for`` is a reason in
    one word, "" if it does not wait; ``stalled`` is the reason of a running AppWrapper with pods
    that do not run. ``why`` is a sentence with figures about either reason. ``demand`` is None if
    it is not read.
    """

    uid: str
    namespace: str
    name: str
    position: int
    head: bool
    state: str
    queue_job_state: str
    priority: int
    first_seen: Instant
    demand: Resources | None
    attempt: int
    waits_for: str
    why: str
    stalled: str = ""


class Outline(Struct, frozen=True):
    """The fields by which lists filter, sort and count, no verdict.

    ``waits``: in line, or on hold.
    """

    place: int
    uid: str
    namespace: str
    name: str
    state: str
    in_line: bool
    waits: bool
    priority: int
    first_seen: Instant


HEADS_ASKED = 100
"""How many shapes are tested for a head of the line. Beyond this many that would not fit on an
empty cluster no head is shown: each test costs a look at every node."""

_IN_LINE, _ON_HOLD, _OTHER = range(3)
_PENDING = str(State.PENDING)
_Key = tuple[int, bool, int, int, int, str]
_Still = tuple[Workload, Instant, Phase, Hold | None, DispatchRecord | None, dict[str, Condition]]

TOGETHER = 8  # how many are put in order in one step

_VAGUE = (PODS_MISSING, PODS_STARTING)

FITS_NEXT = "It fits and is dispatched next."


def _all(_: int, __: Workload) -> bool:
    return True


class Picture:
    """The AppWrappers of one moment, as copies: rows are made one at a time, even later.

    The record and the place of an AppWrapper are of that moment. The reason why it waits is of the
    moment at which its row is made; a caller that lets events in between calls ``renew``.
    """

    def __init__(self, cluster: Cluster, now: Instant) -> None:
        self._cluster = cluster
        self.now = now
        cluster.waiting.turns.renew()
        self._places = cluster.waiting.queue.places()
        self._turns: dict[EquivalenceClass, tuple[bool, int, int]] = {}
        self._stills = [
            (
                e.workload if e.edited is None else subject(e),
                e.first_seen,
                e.phase,
                e.wait.hold,
                e.dispatch,
                e.conditions.copy(),
            )
            for e in cluster.entries.values()
            if e.phase is not Phase.GONE
        ]
        self._ordered: list[tuple[_Key, _Still]] | None = None
        self._waiting = {still[0].uid for still in self._stills if still[2] is Phase.WAITING}
        self._head = ""
        self._searched = 0  # this many, from the front
        self._judged: set[EquivalenceClass] = set()
        self._verdicts: dict[EquivalenceClass, Refusal | None] = {}
        self.in_line = len(self._places)
        self.renew()

    def renew(self) -> None:
        """Answer later questions anew: events may have come in."""
        self._asked = self._cluster.capacity.questions()
        self._words = Words(self._cluster.forest)

    def order(self) -> Iterator[None]:
        """Sort the copies in small steps; the first row sorts them if they are not sorted."""
        if self._ordered is None:
            keyed = []
            for number, still in enumerate(self._stills):
                keyed.append((self._key(still), still))
                if number % TOGETHER == 0:
                    yield
            self._ordered = sorted(keyed, key=itemgetter(0))

    def outlines(self) -> list[Outline]:
        """All AppWrappers in the order of ``rows``, at a fraction of the cost of rows."""
        deque(self.order(), maxlen=0)
        made = []
        for place, (key, still) in enumerate(self._ordered or (), 1):
            work, seen, phase, hold, *_ = still
            in_line = key[0] == _IN_LINE
            shown = _PENDING if phase is Phase.WAITING else str(state(_copy(still)))
            waits = in_line or (hold is not None and hold.code != "")
            names = work.uid, work.namespace, work.name
            made.append(Outline(place, *names, shown, in_line, waits, work.priority, seen))
        return made

    def rows(self, wanted: Callable[[int, Workload], bool] = _all) -> Iterator[Row | None]:
        """AppWrappers in line in their order, then on hold, then others by first-seen time. None
        replaces an AppWrapper that is not ``wanted`` (by place from 1 and record)."""
        deque(self.order(), maxlen=0)
        for place, (_, still) in enumerate(self._ordered or (), 1):
            self._search_head(place)
            yield self._row(place, still) if wanted(place, still[0]) else None

    def row(self, place: int) -> Row:
        """The AppWrapper at a place from 1 in the order of ``rows``."""
        deque(self.order(), maxlen=0)
        self._search_head(place)
        return self._row(place, (self._ordered or [])[place - 1][1])

    def _search_head(self, until: int) -> None:
        """Look for the head of the line among the first ``until`` AppWrappers."""
        for place in range(self._searched, until):
            (group, *_), still = (self._ordered or [])[place]
            if self._head or group != _IN_LINE or len(self._judged) == HEADS_ASKED:
                break
            eqclass = self._places[still[0].uid][0]
            if eqclass not in self._judged:
                self._judged.add(eqclass)
                if cycle.may_be_head(self._cluster, self._asked, eqclass):
                    self._head = still[0].uid
        self._searched = until

    def _verdict(self, eqclass: EquivalenceClass) -> Refusal | None:
        if eqclass not in self._verdicts:
            self._verdicts[eqclass] = cycle.verdict(self._cluster, self._asked, eqclass)
        return self._verdicts[eqclass]

    def _row(self, place: int, still: _Still) -> Row:
        work, first_seen, _, hold, *_ = still
        entry, demand, cluster, stalled = _copy(still), None, self._cluster, ""
        eqclass = self._places[work.uid][0] if work.uid in self._places else None
        if eqclass is not None:
            waits_for, why = self._waits_in_line(entry, self._verdict(eqclass))
            demand = cluster.admission.demand(eqclass.shape)
        else:
            waits_for, why = (hold.code, hold.message) if hold else ("", "")
            stalled, why = self._out_of_line(entry) if not hold else ("", why)
            demand = cluster.admission.demand(cluster.capacity.shape(work.sets))
        return Row(
            uid=work.uid,
            namespace=work.namespace,
            name=work.name,
            position=place if eqclass is not None else 0,
            head=self._head == work.uid,
            state=state(entry),
            queue_job_state=queue_job_state(entry),
            priority=work.priority,
            first_seen=first_seen,
            demand=demand,
            attempt=entry.attempt,
            waits_for=waits_for,
            why=why,
            stalled=stalled,
        )

    def _waits_in_line(self, entry: Entry, refusal: Refusal | None) -> tuple[str, str]:
        if refusal is not None:
            why = (self._words.explain(refusal), self._cluster.eviction_pace.explain(entry.uid))
            return refusal.code, " ".join(filter(None, why))
        hindrance = pre_enqueue.obstacle(self._cluster, entry)
        if hindrance is not None:
            return hindrance.code, hindrance.message
        return "", FITS_NEXT

    def _out_of_line(self, still: Entry) -> tuple[str, str]:
        """What the teardown waits for, or why pods do not run: in one word, and as a sentence."""
        if still.phase in TEARING_DOWN:
            return "", teardown.explain(still)
        if failed := failure(still):
            return "", failed
        entry = self._cluster.entries.get(still.uid)
        if entry is None:
            return "", ""
        found, shown = (
            stalls.look(self._cluster, entry),
            entry.conditions.get(ConditionType.STALLED),
        )
        if found is not None and (shown is None or found.reason not in _VAGUE):
            return str(found.reason), found.explain(self.now)
        # The dispatcher's readings of Events are known here from the condition alone.
        return (shown.reason, shown.message) if shown and not entry.run.calm_since else ("", "")

    def line(self, count: int) -> list[str]:
        """The uids of the first in line, at most ``count``."""
        deque(self.order(), maxlen=0)
        first = islice(self._ordered or (), count)
        return [still[0].uid for (group, *_), still in first if group == _IN_LINE]

    def waits(self, _: int, work: Workload) -> bool:
        """Whether the AppWrapper was waiting, for ``rows``."""
        return work.uid in self._waiting

    def _key(self, still: _Still) -> _Key:
        work, first_seen, phase = still[:3]
        place = self._places.get(work.uid)
        if place is not None:
            eqclass, (static, seen, uid) = place
            turn = self._turns.get(eqclass)
            if turn is None:
                turn = self._turns[eqclass] = self._cluster.waiting.turns.of_class(
                    eqclass, self.now
                )
            spent, aged, share = turn
            return (_IN_LINE, spent, static - aged, share, seen, uid)
        return (_ON_HOLD if phase is Phase.WAITING else _OTHER, False, 0, 0, first_seen, work.uid)


def _copy(still: _Still) -> Entry:
    work, first_seen, phase, hold, dispatch, conditions = still
    wait = Wait(hold=hold)
    return Entry(work, first_seen, phase=phase, wait=wait, dispatch=dispatch, conditions=conditions)


def subject(entry: Entry) -> Workload:
    """The record that a row shows: for an ended AppWrapper the present spec."""
    edited = entry.edited if entry.phase in ENDED else None
    return edited if edited is not None else entry.workload
