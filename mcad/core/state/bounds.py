"""Every waiting time and bound of the dispatcher that is not a setting, with its reason."""

from dataclasses import dataclass
from enum import StrEnum

from mcad.core.state.answer import Answer
from mcad.core.state.units import SECOND, Duration, Instant

DISPATCHES_PER_PASS = 24
"""Dispatches of one cycle, which must not keep the loop from reading its inbox (R5), nor decide for
longer ahead than intents can be written soon (ADR 51)."""

WORK_PER_PASS = 6_000
"""Work of one cycle, in steps of one to five microseconds. Beyond it no long step begins; such a
step goes first in the next cycle (R5, ADR 50)."""

DISPATCH_STEPS = 40
"""The work of a dispatch, besides a few steps for each pod or node."""

DISPATCH_STEPS_PER_POD = 3

RETRIED_PER_PASS = 500
"""Refused shapes that one cycle tests again because their verdict has grown old."""

HOLD_STEPS = 15
"""The work of putting one AppWrapper on hold."""

LEFT_PER_STEP = 8
"""Classes that keep their verdict until the next walk without being tried, in a step of work."""

PAUSED_PER_PASS = 1_000
"""AppWrappers that one cycle puts on hold, or back in line, after a DispatchPause has changed."""

REPORTS_PER_PASS = 250
"""Status writes about refusals in one cycle, of about 30 microseconds; they give way to dispatches.
"""

RECOVERED_PER_PASS = 250
"""AppWrappers with an attempt that one cycle takes up after a start, 60 microseconds each. Nothing
is dispatched until all are taken up."""

RANKED_PER_PASS = 250
"""AppWrappers in line that one cycle ranks anew after a quota tree came or went, 12 microseconds
each, or 100 with dozens of pod sets. Nothing is dispatched until all are ranked."""

RECOVER_STEPS = 30
"""The work of taking up one AppWrapper after a start."""

LISTED_PER_STEP = 20
"""AppWrappers that are listed in a step of work, to be ranked."""

RANK_STEPS = 10
"""The work of ranking one AppWrapper, and each of its pod sets."""

JUDGED_PER_PASS = 160
"""AppWrappers whose objects, pods or status are judged in one cycle, 40 microseconds each: a change
of a node or a start concerns thousands at the same time."""

NOTED_PER_PASS = 1_000
"""Pod sets whose changes are noted in one cycle, 4 microseconds each."""

SWEPT_PER_PASS = 1_000
"""Objects that one cycle compares with the attempts of their AppWrappers, a microsecond each."""

JUDGE_STEPS = 25
"""The work of judging an AppWrapper."""

TIMERS_PER_PASS = 500
"""Timers that one cycle handles: timers of thousands of AppWrappers may run out together."""

RESTATED_PER_SHAPE = 100
"""Members of an equivalence class whose status is rewritten when another resource binds them: a
change must not rewrite 100,000 objects. The others are rewritten when they are nearer the head."""

QUOTA_INTERVAL: Duration = SECOND
"""Minimum time between two status writes of a QuotaSubtree, and between two counts of its tree."""

FIGURES_STEPS = 8
"""The work for the figures of one quota node."""

RESTATE_INTERVAL: Duration = 60 * SECOND
"""Minimum time between two reports of a refusal for one AppWrapper."""

RETRY_BASE: Duration = SECOND // 2
RETRY_MAX: Duration = 15 * SECOND
"""Retry of one request whose outcome is unknown or transient."""

NAME_GRACE: Duration = 300 * SECOND
"""How long an attempt waits for a name of an object that is being deleted (P6 ii)."""

CREATION_BACKOFF_BASE: Duration = 10 * SECOND
CREATION_BACKOFF_MAX: Duration = 300 * SECOND
CREATION_ATTEMPTS_MAX = 6
"""After an admission plugin or a ResourceQuota refused an item: wait, exponentially, then give up.
Six attempts span about ten minutes, in which a quota is usually raised or freed."""

REFUSED_WRITE_RETRY: Duration = 60 * SECOND
"""A request that the server refuses outright (403, 422) is caused by the installation: it is
repeated at intervals that grow up to this, so that a repair of the installation is enough."""

DENIALS_BORNE = 3
"""Refusals with 403 in a row that are only retried: an API server that has just started refuses
everything until it has read the roles, which takes seconds."""

RIGHT_TEST_BASE: Duration = 5 * SECOND
RIGHT_TEST_MAX: Duration = 60 * SECOND
"""The longest interval between two tests of a missing right; the intervals grow."""

LOOK_BASE: Duration = 5 * SECOND
LOOK_MAX: Duration = 300 * SECOND
"""Between two live lists of a teardown while no watch event reports a removal."""


WARNING_READS_PER_SECOND = 2
"""Reads of the Events of a namespace about missing pods: there may be hundreds in each."""

READS_PER_SECOND = 50
"""Live reads of items that no watch has shown: they share the lane of the dispatches."""


@dataclass(slots=True)
class PerSecond:
    """A bound on how often an action is done in a second."""

    most: int
    second: int = 0
    count: int = 0

    def take(self, now: Instant) -> bool:
        """Whether the action may be done once more."""
        second = now // SECOND
        self.count = 1 + (self.count if second == self.second else 0)
        self.second = second
        return self.count <= self.most


class Look(StrEnum):
    """The periodic steps, which are not done in every cycle."""

    RESERVATIONS = "reservations"  # is there room elsewhere, and which AppWrappers are in the way
    BACKFILL = "backfill"  # which AppWrappers may use free reserved room
    EVICTIONS = "evictions"  # for which AppWrappers victims are searched
    SCALE_UPS = "scale-ups"  # which AppWrappers ask for nodes


LOOKS: dict[Look, Duration] = {
    Look.RESERVATIONS: 10 * SECOND,
    Look.BACKFILL: 20 * SECOND,
    Look.EVICTIONS: SECOND,
    Look.SCALE_UPS: SECOND,
}
"""Minimum time between two looks. Slurm looks for backfill every 30 s (``bf_interval``)."""

FIRSTS_LOOK: Duration = 30 * SECOND
"""How often, with the policy Backfill, the head of the line gets a start time; at once if a
reservation ended."""

BACKFILL_TRIES = 20
"""AppWrappers tried for backfill at a time: each costs a look at every node."""

BACKFILL_TESTS = 2_000
"""Pod sets of equivalence classes that are tested for room there, 6 microseconds each; the next
cycle continues."""

BACKFILL_TEST_STEPS = 6
"""The work of such a test."""

BACKFILL_MEMBERS = 20
"""Members of an equivalence class that are tested for an end in time."""

BACKFILL_MEMBER_STEPS = 1
"""The work of this test, for each of the members and each reservation."""

AVOIDED_MAX = 128
"""Names of reserved nodes in the affinity of a pod template: each takes 60 bytes of it."""

OUTRANKING_TRIED = 20
"""AppWrappers of a higher priority that are offered free reserved room; each costs a look at every
node."""

REFUSED_STEPS = 1
"""The work of each class when the refused classes are put in order."""

FIRSTS_MAX = 8
"""Reservations at a time that protect a starved head of the line (R8)."""

FIRSTS_LOOKED_AT = 2_000
"""Equivalence classes whose head is tested for being first in line for its nodes."""

BINDING_WAIT: Duration = 5 * SECOND
"""How long a gang that fits waits at most until pods of gangs in flight are bound (R2). With a real
kube-scheduler the longest wait was 0.3 s (ADR 52); a stopped one must hold up nothing."""

BINDING_WAITS_MAX = 500
"""Equivalence classes that wait for bindings in a cycle and keep their nodes from classes behind;
beyond, all classes behind wait."""

BESIDE_MAX = 16
"""Heads that lack only a share, beside which AppWrappers may start with StrictFIFO; beyond, no
competitor for their nodes starts."""

BLOCKED_LOOKS_MAX = 20_000
"""Nodes that one cycle with StrictFIFO visits to find what blocked classes keep from classes
behind; beyond, all classes behind wait."""

OWNERS_MAX = 64
"""Heads that may defer borrowers at a time: all are visited in every cycle in which an AppWrapper
would borrow."""

ENDS_PER_PASS = 4_000
"""AppWrappers whose ends one cycle determines for the order in which they end, 5 microseconds each.
"""

RESERVATION_TRIES_MAX = 8
"""A reservation without a start time lasts twice as long as the previous one, up to 2^8 times
``protectAfter``: a day and a half by default."""

RESERVED_RETRY: Duration = SECOND
"""Pause before an owner of free reserved room that could not start is planned for again, if its
plan takes most of a pass."""

RIGHT_STEPS = 4
"""The work of finding the right by which a candidate may be evicted, where shares count."""

EVICTION_STEPS = 6_000
"""Work of the plans of one look, about a microsecond each; plans begin while some work is left."""

HEADS_TRIED = 20
"""Heads of a class that are tried in a search for evictions, until one of them may evict."""

RUN_TIME_DOUBLED: Duration = 30 * SECOND
"""The minimum that each eviction doubles, where ``minRunTime`` is shorter: nothing else slows down
two AppWrappers that evict each other in turn."""

RUN_TIME_DOUBLES_MAX = 6
"""An AppWrapper that was evicted this often runs at least 64 times ``minRunTime`` before the next
eviction: 5 hours by default."""

POD_COUNTS_INTERVAL: Duration = 30 * SECOND
"""How old the pod counts in status may be: 5 s, as MCAD once had it, would double the writes of
gangs that come up (ADR 22)."""

START_TIMES_AHEAD = 100
START_TIMES_STEPS = 30_000
"""AppWrappers in line that get a start time estimate, and the work for all, about a microsecond
each: a question must not hold up the loop."""

STALL_AFTER: Duration = 10 * SECOND
"""How long kube-scheduler may look for nodes before that is reported."""

STARTED_AFTER: Duration = 30 * SECOND
"""The usual time to create and start pods, with an image to pull."""

STALL_INTERVAL: Duration = 60 * SECOND
"""Between two reports of the same reason: kube-scheduler's words contain figures of the whole
cluster, which change all the time."""

STALL_NEWS: Duration = 5 * SECOND
"""Between reports of different reasons: a reader that looks for one should not see the last one."""

STALL_OVER: Duration = 30 * SECOND
"""How long pods must run without a stall before that is reported: a container that crashes in a
loop runs for a moment in between."""

WARNINGS_AFTER: Duration = 5 * SECOND
WARNINGS_INTERVAL: Duration = 30 * SECOND
"""How long pods may be missing before their Events are read, and the time between two reads."""

START_WARNINGS_AFTER: Duration = 8 * SECOND
"""How long the node of a pod may take to start it before its Events are read: most pods have
started by then, and a pod that cannot start is named within ten seconds."""

SLOW_PLACEMENT: Duration = 10 * SECOND
"""The longest search of kube-scheduler where there is room: shorter waits count as run time."""

RECORD_AFTER: Duration = 10 * SECOND
"""How long the record of a placed gang waits for another write of status: its pods run soon, which
is written too. A crash before that forgets it, which matters only if a node is lost, too."""

STUCK_AFTER: Duration = 60 * SECOND
"""After this a teardown reports the remaining objects: by default pods get 30 s to end."""

TEARDOWN_MARGIN: Duration = 30 * SECOND
"""The time of a teardown besides the grace period of its pods: status writes, deletions, lists."""

COMMIT_GRACE: Duration = 75 * SECOND
"""How long a create without an answer may still be committed: kube-apiserver gives up on a request
after 60 s (its ``--request-timeout``); the rest is for the way there."""

LEFTOVERS_PART = 10
"""Unbound pods of unknown AppWrappers hold at most this fraction (1/10) of the nodes' resources,
per namespace: any tenant may write the labels of such pods."""

TOMBSTONE_GRACE: Duration = 600 * SECOND
"""The longest time that a deleted AppWrapper holds room without pods on nodes (protocol P9)."""

TOMBSTONE_LOOK: Duration = 30 * SECOND
"""After this an object that was created and not observed since is read: it may have come and gone
in a gap of its watch."""


SCALE_UP_TIMEOUT: Duration = 900 * SECOND
"""How long an AppWrapper waits for the nodes that it asked for, unless the setting says other."""

USUAL_SCALE_UP: Duration = 120 * SECOND
"""How long nodes take to come, before there is a scale-up to learn from."""

SCALE_UPS_KEPT = 15
"""The last scale-ups whose median duration is expected of the next."""


SCALE_UP_PAUSE: Duration = 30 * SECOND
SCALE_UP_PAUSE_MAX: Duration = 1800 * SECOND
"""After a scale-up that failed: wait, exponentially, before the next request of the AppWrapper. A
request that has become too small is made anew after the first pause."""

SCALE_UP_OVERDUE: Duration = 15 * SECOND
"""An autoscaler says that nodes are provisioned when it has ordered them. If pods still lack a
place after twice the usual duration of a scale-up, and at least this, the request is made anew."""

SCALE_UP_BINDING: Duration = 10 * SECOND
"""How long a request that stands beside the pods on its nodes keeps others from asking for nodes.
To bind pods takes a second; a pod that is never bound keeps no other AppWrapper waiting."""

SCALE_UPS_JUDGED = 20
"""AppWrappers of which one look finds out whether they should ask; each costs a look at every node.
"""


def backoff(failures: int, base: Duration, ceiling: Duration) -> Duration:
    """Exponential, saturating: ``base`` after the first failure, never above ``ceiling``."""
    return min(ceiling, base << min(max(failures - 1, 0), 20))


def is_denial(answer: Answer) -> bool:
    """Whether the refusal is final: the same request has the same answer."""
    return 400 <= answer.status < 500 and answer.status not in (401, 408, 409, 429)


@dataclass(slots=True)
class Tries:
    """Failures in a row of equal requests; ``denials`` counts final refusals."""

    failures: int = 0
    denials: int = 0

    def pause(self, answer: Answer, *, count: bool = True) -> Duration:
        """Count one more failure, if ``count`` is set; returns the wait before the next try."""
        if is_denial(answer):
            self.denials += count
            return backoff(self.denials, RETRY_BASE, REFUSED_WRITE_RETRY)
        self.failures += count
        return max(answer.retry_after, backoff(self.failures, RETRY_BASE, RETRY_MAX))

    def is_lasting(self, answer: Answer) -> bool:
        """Whether this is the refusal from which on the cause counts as lasting."""
        return is_denial(answer) and self.denials == DENIALS_BORNE + 1
