"""The protocol by which a hub runs one AppWrapper in one of two clusters, as a state machine.

Rules are M1 to M12 of docs/inside/clusters.md, each a switch (``Rules``); accidents are switches,
too (``World``). ``Model.steps`` gives every step that is possible in a state.

How requests are modelled: each write is one step at the API server that it goes to, with the
preconditions that the request carries, and nothing else. A leader decides by what it has *seen*,
which may be of any age. So a late request is a leader that acts on an old view; a lost answer is a
leader that does not read what it wrote; a repeated request is a leader that acts twice. With two
leaders, each of which may pause for any time, read and act, all of these come in any order. A crash
needs no step of its own: what a new leader knows, an old one can read anew.

Fences: an API server compares versions, the model compares contents. Equal versions have equal
contents, so a write that an API server accepts is accepted here, and a few more are.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum, StrEnum
from typing import NamedTuple

CLUSTERS = (0, 1)
NAMES = "AB"


class Rules(NamedTuple):
    """The rules, each of which can be off. M2, M7, M8 and M9 are several promises each."""

    m1_suspended: bool = True
    m2_record_first: bool = True
    m2_fenced: bool = True
    m2_proven: bool = True
    m3_uid: bool = True
    m4_own_grant: bool = True
    m5_version: bool = True
    m6_read_after: bool = True
    m7_finalizer: bool = True
    m7_no_attempt: bool = True
    m8_outcome_first: bool = True
    m8_kept: bool = True
    m9_adopted: bool = True
    m9_live_read: bool = True
    m10_all_listed: bool = True
    m11_lease: bool = True
    m11_every_lease: bool = True
    m12_taken_back: bool = True


ALL = Rules()

TEXTS = {
    "m1_suspended": "a copy is created suspended",
    "m2_record_first": "a copy is granted only after it was recorded on the hub",
    "m2_fenced": "a record is written only onto the version of the AppWrapper that was read",
    "m2_proven": "a copy is recorded only when the copy that was recorded before is dead",
    "m3_uid": "a grant names the uid of the recorded copy, not only its name",
    "m4_own_grant": "a member starts a copy only if its grant names its own uid",
    "m5_version": "a withdrawal deletes only the version that was seen, without an attempt",
    "m6_read_after": "a copy counts as dead only by a read that was made after its record was read",
    "m7_finalizer": "a copy has a finalizer of the hub",
    "m7_no_attempt": "the finalizer of a deleted copy goes only when no attempt stands",
    "m8_outcome_first": "an ended copy goes only after its outcome was written to the hub",
    "m8_kept": "an ended copy goes only after the AppWrapper was deleted on the hub",
    "m9_adopted": "after a restore, a granted copy without a record is recorded",
    "m9_live_read": "a granted stray is revoked only after a live read of the AppWrapper",
    "m10_all_listed": "after a restore, all clusters are listed before a record or a grant",
    "m11_lease": "a hub writes in a member only while it holds its Lease there",
    "m11_every_lease": "after it met another hub, it records and grants only with every Lease",
    "m12_taken_back": "a member takes back an AppWrapper that is deleted and kept by a finalizer",
}
"""What each rule says."""


class World(NamedTuple):
    """The accidents that may happen. Without any, one leader does everything in time."""

    leaders: int = 1  # 2: late, lost and repeated requests, crashes, paused old leaders
    deletes_copies: bool = False  # users delete copies in members
    resumes_copies: bool = False  # users set `suspend: false` on copies
    recreates: int = 0  # so often tools create a copy again, with the grant that it had
    deletes: bool = False  # a user deletes the AppWrapper on the hub
    restores: int = 0  # so often the hub is restored from a backup, with its dispatcher stopped
    dies: bool = False  # a cluster dies for good, and is fenced
    clones: bool = False  # a second hub is made from the first one, and both go on
    # Known gaps: the rules do not cover them (docs/inside/clusters.md)
    unnoticed: bool = False  # a restore of which only granted copies without a record give evidence
    returns: bool = False  # a fenced cluster comes back, and goes on where it was


class Attempt(IntEnum):
    """The attempt of a copy, as its status says."""

    NONE = 0  # not begun
    RUNNING = 1
    LEAVING = 2  # it is being taken back (P4)
    RELEASED = 3  # it was taken back, and nothing is left
    ENDED = 4  # completed or failed
    EMPTY = 5  # its intent was written when the copy was deleted already: nothing is created (P9)


NONE, RUNNING, LEAVING, RELEASED, ENDED, EMPTY = Attempt
NOT_STANDING = (NONE, RELEASED)
ALIVE = (RUNNING, LEAVING)


class Copy(NamedTuple):
    """A copy of the AppWrapper in a cluster, as it is or as a leader saw it."""

    uid: int
    is_suspended: bool = False
    is_granted: bool = False  # its grant names its own uid
    is_deleted: bool = False
    attempt: Attempt = NONE


ABSENT = Copy(0)
UNREAD = Copy(-1)
"""Of a leader: it has not read that cluster since it read the hub."""


class Hub(NamedTuple):
    """The AppWrapper on the hub, as it is or as a leader saw it."""

    cluster: int = 0  # the record: which copy may run
    uid: int = 0  # 0: no record; -1, of a leader: it has not read the hub
    has_outcome: bool = False
    is_deleted: bool = False
    is_doubtful: bool = False  # restored from a backup, or another hub was met: M10, M11

    def is_version_of(self, other: Hub) -> bool:
        """Whether a write that is fenced by one succeeds on the other."""
        return self[:4] == other[:4]

    def is_wanted(self) -> bool:
        """Whether there is something to run."""
        return not self.is_deleted and not self.has_outcome


class Leader(NamedTuple):
    """What a leader has seen."""

    of: int = 0  # its hub
    hub: Hub = Hub(0, -1)
    copies: tuple[Copy, Copy] = (UNREAD, UNREAD)
    is_ghost: bool = False  # it ended with a restore: its requests may arrive, it learns nothing


class State(NamedTuple):
    """Hubs, members and what leaders know of them."""

    hubs: tuple[Hub, ...] = (Hub(),)
    copies: tuple[Copy, Copy] = (ABSENT, ABSENT)
    leaders: tuple[Leader, ...] = (Leader(),)
    remains: tuple[bool, bool] = (False, False)  # pods of a copy that is gone
    is_dead: tuple[bool, bool] = (False, False)
    is_fenced: tuple[bool, bool] = (False, False)
    leases: tuple[int, int] = (0, 0)  # the hub that holds the Lease in each member
    backup: Hub = Hub(0, -1)  # uid -1: there is none
    restores: int = 0
    recreated: int = 0
    has_ended: bool = False


class Kind(StrEnum):
    """Steps. Those of the first group are writes of hub and members, which can be observed."""

    OFFER = "creates the copy {uid} in {cluster}"
    RECORD = "records {uid} in {cluster}"
    GRANT = "grants {uid} in {cluster}"
    WITHDRAW = "withdraws {uid} in {cluster}: a delete of the version that it saw"
    REVOKE = "revokes {uid} in {cluster}: a delete by uid"
    UNFINALIZE = "removes the finalizer of {uid} in {cluster}"
    DROP = "removes the ended copy {uid} from {cluster}"
    OUTCOME = "writes the outcome of {uid} to the hub"
    START = "{cluster} starts {uid}"
    END = "{uid} ends in {cluster}"
    TAKE_BACK = "{cluster} takes {uid} back"
    RELEASE = "nothing is left of {uid} in {cluster}"
    COLLECT = "the last pods of a copy that is gone end in {cluster}"

    READ_HUB = "reads the hub"
    READ = "reads {cluster}"
    CRASH = "ends, and a new leader begins"
    LEASE = "takes the Lease in {cluster}"

    DELETE_COPY = "a user deletes the copy {uid} in {cluster}"
    RESUME = "a user resumes the copy {uid} in {cluster}"
    RECREATE = "a tool creates the copy again as {uid} in {cluster}, granted as it was"
    DELETE = "a user deletes the AppWrapper on the hub"
    BACKUP = "a backup of the hub is made"
    RESTORE = "the hub is restored from its backup"
    CLONE = "a second hub is made from the first one, and both go on"
    DIE = "cluster {cluster} dies"
    FENCE = "cluster {cluster} is fenced"
    RETURN = "the fenced cluster {cluster} comes back"


ACCIDENTS = frozenset(list(Kind)[list(Kind).index(Kind.DELETE_COPY) :])
"""What is no part of the protocol: an ending must be reachable without it."""


class Step(NamedTuple):
    """One step and the state after it."""

    kind: Kind
    cluster: int
    uid: int
    leader: int  # -1: of no leader
    after: State

    def __str__(self) -> str:
        text = self.kind.format(uid=f"u{self.uid}", cluster=NAMES[self.cluster])
        return text if self.leader < 0 else f"leader {self.leader + 1} {text}"


def harm(before: State, step: Step) -> str:
    """What must never happen and did in this step, or nothing."""
    if before.has_ended and step.kind is Kind.START and _alive(step.after) > _alive(before):
        return "it runs again after it has ended"
    return "two are alive" if _alive(step.after) > 1 else ""


def _alive(state: State) -> int:
    """Copies with running pods: of a living cluster, even where the copy itself is gone."""
    return sum(
        not state.is_dead[c] and (state.copies[c].attempt in ALIVE) + state.remains[c]
        for c in CLUSTERS
    )


def is_ending(state: State) -> bool:
    """Whether all is done: an outcome, or a deleted AppWrapper of which nothing is left."""
    hub = state.hubs[0]
    return (not hub.is_wanted() and not any(state.remains)) and all(
        state.is_dead[c]
        or copy == ABSENT
        or (copy.attempt is ENDED and hub.has_outcome and not hub.is_deleted)
        for c, copy in enumerate(state.copies)
    )


def is_waiting_for_fence(state: State) -> bool:
    """Whether a cluster is dead and not fenced: to wait is right then."""
    return any(state.is_dead[c] and not state.is_fenced[c] for c in CLUSTERS)


class Model:
    """All steps of a world under some rules."""

    def __init__(self, rules: Rules = ALL, world: World = World()) -> None:
        self.rules = rules
        self.world = world

    def start(self) -> State:
        """An AppWrapper that waits; nothing was read yet."""
        return State(leaders=(Leader(),) * self.world.leaders)

    def steps(self, state: State) -> Iterator[Step]:
        """Every step that is possible."""
        yield from self._accidents(state)
        for cluster in CLUSTERS:
            yield from self._member(state, cluster)
        for number, leader in enumerate(state.leaders):
            if leader.is_ghost:
                yield Step(Kind.CRASH, 0, 0, number, _learn(state, number, Leader()))
            else:
                yield from self._reads(state, number)
            if leader.hub.uid >= 0:
                for cluster in CLUSTERS:
                    if not state.is_dead[cluster]:
                        yield from self._writes(state, number, cluster)

    # The member: a plain dispatcher, which knows the hub only by the grant (M4)

    def _member(self, state: State, cluster: int) -> Iterator[Step]:
        copy = state.copies[cluster]

        def step(kind: Kind, attempt: Attempt) -> Step:
            after = _put(state, cluster, copy._replace(attempt=attempt))
            if attempt is ENDED:
                after = after._replace(has_ended=True)
            return Step(kind, cluster, copy.uid, -1, after)

        if state.remains[cluster]:
            after = state._replace(remains=_changed(state.remains, cluster, False))
            yield Step(Kind.COLLECT, cluster, 0, -1, after)
        if state.is_dead[cluster] or copy == ABSENT:
            return
        may_start = not copy.is_suspended and (copy.is_granted or not self.rules.m4_own_grant)
        if may_start and copy.attempt in NOT_STANDING:
            # The intent may be written just after a delete that the member has not seen yet.
            yield step(Kind.START, EMPTY if copy.is_deleted else RUNNING)
        if copy.is_deleted and not self.rules.m12_taken_back:
            return
        if copy.attempt is RUNNING:
            yield step(Kind.END, ENDED)
            yield step(Kind.TAKE_BACK, LEAVING)  # evicted, failed and tried again, deleted...
        if copy.attempt is LEAVING or copy.attempt is EMPTY:
            yield step(Kind.RELEASE, RELEASED)

    # What a leader learns

    def _reads(self, state: State, number: int) -> Iterator[Step]:
        leader = state.leaders[number]
        hub = state.hubs[leader.of]
        if leader.hub != hub:
            copies = (UNREAD, UNREAD) if self.rules.m6_read_after else leader.copies
            seen = leader._replace(hub=hub, copies=copies)
            yield Step(Kind.READ_HUB, 0, 0, number, _learn(state, number, seen))
        if leader.hub.uid < 0:
            return
        for cluster in CLUSTERS:
            copy = state.copies[cluster]
            if not state.is_dead[cluster] and leader.copies[cluster] != copy:
                seen = leader._replace(copies=_changed(leader.copies, cluster, copy))
                yield Step(Kind.READ, cluster, 0, number, _learn(state, number, seen))
            if state.leases[cluster] != leader.of:
                yield self._takes_lease(state, number, cluster)

    @staticmethod
    def _takes_lease(state: State, number: int, cluster: int) -> Step:
        """The Lease had another hub's name: this hub is one of two."""
        leader = state.leaders[number]
        doubtful = state.hubs[leader.of]._replace(is_doubtful=True)
        after = state._replace(
            leases=_changed(state.leases, cluster, leader.of),
            hubs=_changed(state.hubs, leader.of, doubtful),
        )
        return Step(Kind.LEASE, cluster, 0, number, _learn(after, number, Leader(leader.of)))

    # What a leader writes. `seen` is what it knows; only what the request carries is compared with
    # what there is.

    def _writes(self, state: State, number: int, cluster: int) -> Iterator[Step]:
        leader = state.leaders[number]
        is_read = leader.copies[cluster].uid > 0
        is_open = not state.is_fenced[cluster]
        if state.leases[cluster] == leader.of or not self.rules.m11_lease:
            if is_open:
                yield from self._offer(state, number, cluster)
                yield from self._grant(state, number, cluster)
            if is_read:
                yield from self._deletes(state, number, cluster)
                yield from self._removes(state, number, cluster)
        if is_read and is_open:
            yield from self._record(state, number, cluster)
        if is_read:
            yield from self._outcome(state, number, cluster)

    def _offer(self, state: State, number: int, cluster: int) -> Iterator[Step]:
        """M1: a copy that starts nothing needs no record."""
        leader = state.leaders[number]
        if leader.hub.is_wanted() and state.copies[cluster] == ABSENT:
            copy = Copy(_free_uid(state), is_suspended=self.rules.m1_suspended)
            yield Step(Kind.OFFER, cluster, copy.uid, number, _put(state, cluster, copy))

    def _record(self, state: State, number: int, cluster: int) -> Iterator[Step]:
        """M2: which copy may run. After a restore the copy that runs already (M9)."""
        leader = state.leaders[number]
        copy = leader.copies[cluster]
        if not leader.hub.is_wanted() or _is_recorded(leader, cluster):
            return
        may = self._is_proven_dead(state, leader) and (
            self._is_adopted(leader, cluster)
            or (_is_unused(copy) and self._may_go_on(state, leader, cluster))
        )
        hub = state.hubs[leader.of]
        is_stored = hub.is_version_of(leader.hub) or not self.rules.m2_fenced
        if may and is_stored and hub.is_wanted():
            recorded = hub._replace(cluster=cluster, uid=copy.uid)
            yield Step(Kind.RECORD, cluster, copy.uid, number, _write(state, leader, recorded))

    def _grant(self, state: State, number: int, cluster: int) -> Iterator[Step]:
        """M3: the recorded copy may start."""
        leader, live = state.leaders[number], state.copies[cluster]
        seen = leader.copies[cluster]
        if not leader.hub.is_wanted() or seen.is_granted or seen.is_deleted:
            return
        uid = leader.hub.uid if leader.hub.cluster == cluster else 0
        if not self.rules.m2_record_first and self._is_proven_dead(state, leader):
            uid = seen.uid
        if uid <= 0 or not self._may_go_on(state, leader, cluster):
            return
        is_there = live.uid == uid if self.rules.m3_uid else live != ABSENT
        if is_there and (live.is_suspended or not live.is_granted):
            granted = live._replace(is_suspended=False, is_granted=True)
            yield Step(Kind.GRANT, cluster, live.uid, number, _put(state, cluster, granted))

    def _deletes(self, state: State, number: int, cluster: int) -> Iterator[Step]:
        """M5: a copy that does not start is withdrawn, one that is not wanted is revoked."""
        leader, live = state.leaders[number], state.copies[cluster]
        seen = leader.copies[cluster]
        if seen.is_deleted or seen.attempt is ENDED or self._is_adopted(leader, cluster):
            return
        if live.uid != seen.uid or live.is_deleted:
            return
        after = self._deleted(state, cluster)
        if seen.attempt in NOT_STANDING and (live == seen or not self.rules.m5_version):
            yield Step(Kind.WITHDRAW, cluster, live.uid, number, after)
        is_known = _is_recorded(leader, cluster) or leader.hub == state.hubs[leader.of]
        if _is_begun_or_granted(seen) and (is_known or not self.rules.m9_live_read):
            yield Step(Kind.REVOKE, cluster, live.uid, number, after)

    def _removes(self, state: State, number: int, cluster: int) -> Iterator[Step]:
        """M7, M8: what is left of a copy goes."""
        leader = state.leaders[number]
        seen = leader.copies[cluster]
        if state.copies[cluster].uid != seen.uid:
            return
        if seen.attempt is ENDED:
            may = leader.hub.is_deleted or not self.rules.m8_outcome_first
            if may or (leader.hub.has_outcome and not self.rules.m8_kept):
                yield Step(Kind.DROP, cluster, seen.uid, number, _gone(state, cluster))
        elif seen.is_deleted and (seen.attempt in NOT_STANDING or not self.rules.m7_no_attempt):
            yield Step(Kind.UNFINALIZE, cluster, seen.uid, number, _gone(state, cluster))

    def _outcome(self, state: State, number: int, cluster: int) -> Iterator[Step]:
        """M8: the outcome of the recorded copy is written once, fenced."""
        leader = state.leaders[number]
        hub = state.hubs[leader.of]
        seen = leader.copies[cluster]
        if seen.attempt is not ENDED or not _is_recorded(leader, cluster):
            return
        if leader.hub.is_wanted() and hub.is_version_of(leader.hub):
            ended = hub._replace(has_outcome=True)
            yield Step(Kind.OUTCOME, cluster, seen.uid, number, _write(state, leader, ended))

    # What a leader concludes

    def _is_proven_dead(self, state: State, leader: Leader) -> bool:
        """M6: whether the recorded copy can never run again. Silence and time prove nothing."""
        hub = leader.hub
        if hub.uid == 0 or state.is_fenced[hub.cluster] or not self.rules.m2_proven:
            return True
        seen = leader.copies[hub.cluster]
        if seen == UNREAD:
            return False
        return seen.uid != hub.uid or _is_harmless(seen)

    def _is_adopted(self, leader: Leader, cluster: int) -> bool:
        """M9: whether a granted copy without a record is taken over, because the hub is old."""
        return (
            self.rules.m9_adopted
            and self._is_doubtful(leader)
            and leader.hub.is_wanted()
            and not _is_recorded(leader, cluster)
            and _is_begun_or_granted(leader.copies[cluster])
        )

    def _may_go_on(self, state: State, leader: Leader, cluster: int) -> bool:
        """M10, M11: whether a hub that may have forgotten a copy knows that there is none."""
        if not self._is_doubtful(leader):
            return True
        for other in CLUSTERS:
            if state.is_fenced[other]:
                continue
            if self.rules.m11_every_lease and state.leases[other] != leader.of:
                return False
            seen = leader.copies[other]
            is_gone = seen == ABSENT or _is_harmless(seen)
            if other != cluster and self.rules.m10_all_listed and not is_gone:
                return False
        return True

    def _is_doubtful(self, leader: Leader) -> bool:
        if not self.world.unnoticed:
            return leader.hub.is_doubtful
        return any(
            _is_begun_or_granted(leader.copies[c]) and not _is_recorded(leader, c) for c in CLUSTERS
        )

    # Accidents

    def _accidents(self, state: State) -> Iterator[Step]:
        world, hub = self.world, state.hubs[0]

        def step(kind: Kind, after: State, cluster: int = 0, uid: int = 0) -> Step:
            return Step(kind, cluster, uid, -1, after)

        if world.deletes and hub.is_wanted():
            deleted = _changed(state.hubs, 0, hub._replace(is_deleted=True))
            yield step(Kind.DELETE, state._replace(hubs=deleted))
        if world.restores or world.clones:
            yield from self._backups(state)
        for c in CLUSTERS:
            copy = state.copies[c]
            if state.recreated < world.recreates and copy == ABSENT and not state.is_dead[c]:
                again = _put(state, c, Copy(_free_uid(state)))
                again = again._replace(recreated=state.recreated + 1)
                yield step(Kind.RECREATE, again, c, again.copies[c].uid)
            if world.resumes_copies and copy.is_suspended and not state.is_dead[c]:
                resumed = copy._replace(is_suspended=False)
                yield step(Kind.RESUME, _put(state, c, resumed), c, copy.uid)
            if world.deletes_copies and copy != ABSENT and not copy.is_deleted:
                if not state.is_dead[c]:
                    yield step(Kind.DELETE_COPY, self._deleted(state, c), c, copy.uid)
            if world.dies:
                yield from self._deaths(state, c)

    def _backups(self, state: State) -> Iterator[Step]:
        hub, backup = state.hubs[0], state.backup
        if backup.uid < 0:
            if state.restores < max(self.world.restores, self.world.clones):
                yield Step(Kind.BACKUP, 0, 0, -1, state._replace(backup=hub))
            return
        after = state._replace(backup=Hub(0, -1), restores=state.restores + 1)
        if self.world.clones:
            # The second leader is that of the clone, whatever it was before.
            leaders = (state.leaders[0], Leader(of=1))
            yield Step(Kind.CLONE, 0, 0, -1, after._replace(hubs=(hub, backup), leaders=leaders))
        elif hub != backup and not hub.is_deleted:  # a deleted one comes back: restores do that
            after = after._replace(
                hubs=(backup._replace(is_doubtful=True),),
                leaders=tuple(one._replace(is_ghost=one.hub.uid >= 0) for one in state.leaders),
                has_ended=state.has_ended and not any(state.is_dead),
            )
            yield Step(Kind.RESTORE, 0, 0, -1, after)

    def _deaths(self, state: State, cluster: int) -> Iterator[Step]:
        if not any(state.is_dead):
            # What ended there and was not written yet is known nowhere: it runs again.
            after = state._replace(
                is_dead=_changed(state.is_dead, cluster, True),
                has_ended=state.has_ended and state.hubs[0].has_outcome,
            )
            yield Step(Kind.DIE, cluster, 0, -1, after)
        if state.is_dead[cluster] and not state.is_fenced[cluster]:
            fenced = _changed(state.is_fenced, cluster, True)
            yield Step(Kind.FENCE, cluster, 0, -1, state._replace(is_fenced=fenced))
        if state.is_dead[cluster] and state.is_fenced[cluster] and self.world.returns:
            back = _changed(state.is_dead, cluster, False)
            yield Step(Kind.RETURN, cluster, 0, -1, state._replace(is_dead=back))

    def _deleted(self, state: State, cluster: int) -> State:
        """M7: a copy that is deleted stays, for its finalizer."""
        if not self.rules.m7_finalizer:
            return _gone(state, cluster)
        return _put(state, cluster, state.copies[cluster]._replace(is_deleted=True))


def _is_recorded(leader: Leader, cluster: int) -> bool:
    uid = leader.copies[cluster].uid
    return uid > 0 and leader.hub.uid == uid and leader.hub.cluster == cluster


def _is_unused(copy: Copy) -> bool:
    """Whether a copy may be recorded: it was never granted, and nothing has begun."""
    return not copy.is_deleted and not copy.is_granted and copy.attempt is NONE


def _is_harmless(copy: Copy) -> bool:
    """Whether a copy can never start again (P9) and nothing of it runs."""
    return copy.is_deleted and copy.attempt in NOT_STANDING


def _is_begun_or_granted(copy: Copy) -> bool:
    return copy.is_granted or copy.attempt is not NONE


def _changed(items: tuple, number: int, item: object) -> tuple:  # type: ignore[type-arg]
    return (*items[:number], item, *items[number + 1 :])


def _put(state: State, cluster: int, copy: Copy) -> State:
    return state._replace(copies=_changed(state.copies, cluster, copy))


def _write(state: State, leader: Leader, hub: Hub) -> State:
    return state._replace(hubs=_changed(state.hubs, leader.of, hub))


def _learn(state: State, number: int, seen: Leader) -> State:
    return state._replace(leaders=_changed(state.leaders, number, seen))


def _gone(state: State, cluster: int) -> State:
    """The copy is gone; what runs of it goes on until the garbage collector is done."""
    alive = state.copies[cluster].attempt in ALIVE
    remains = _changed(state.remains, cluster, state.remains[cluster] or alive)
    return _put(state, cluster, ABSENT)._replace(remains=remains)


def _free_uid(state: State) -> int:
    """A uid that nothing refers to any more."""
    used = set(uids(state))
    return next(uid for uid in range(1, len(used) + 2) if uid not in used)


def uids(state: State) -> list[int]:
    """Every uid in a state, in a fixed order; 0 and -1 are none."""
    found = [one.uid for one in state.hubs]
    found += [one.uid for one in state.copies]
    found.append(state.backup.uid)
    for one in state.leaders:
        found += (one.hub.uid, one.copies[0].uid, one.copies[1].uid)
    return found
