"""Writes a history of the model down as it would be observed: what ``accept`` reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.clusters.accept import Event, Seen
from tests.clusters.model import ABSENT, NAMES, Hub, Kind, State, Step

HUBS = ("", "clone")

OF_A_COPY = {
    Kind.OFFER: Seen.OFFERED,
    Kind.RECORD: Seen.RECORDED,
    Kind.GRANT: Seen.GRANTED,
    Kind.WITHDRAW: Seen.WITHDRAWN,
    Kind.REVOKE: Seen.REVOKED,
    Kind.UNFINALIZE: Seen.UNFINALIZED,
    Kind.OUTCOME: Seen.OUTCOME,
    Kind.START: Seen.BEGUN,
    Kind.END: Seen.ENDED,
    Kind.TAKE_BACK: Seen.TAKEN_BACK,
    Kind.RELEASE: Seen.RELEASED,
    Kind.DELETE_COPY: Seen.COPY_DELETED,
    Kind.RESUME: Seen.RESUMED,
    Kind.RECREATE: Seen.RECREATED,
    Kind.LEASE: Seen.LEASE,
    Kind.DIE: Seen.DIED,
    Kind.FENCE: Seen.FENCED,
}


def observed(history: Iterable[tuple[State, Step]]) -> Iterator[Event]:
    """The events of a history: of each step, with the state before it."""
    observer = _Observer()
    for before, step in history:
        yield from observer.look(before, step)


class _Observer:
    """The model uses uids again, and its leaders and records have no names: here they get some."""

    def __init__(self) -> None:
        self.uids: dict[int, str] = {0: ""}
        self.copies = 0
        self.leaders: dict[int, str] = {}
        self.names = 0
        self.numbers = [0, 0]
        self.backup = 0

    def look(self, before: State, step: Step) -> Iterator[Event]:
        if not self.leaders:
            yield from self._begin(before)
        if step.kind in (Kind.OFFER, Kind.RECREATE):
            self.copies += 1
            self.uids[step.uid] = f"u{self.copies}"
        if step.kind is Kind.BACKUP:
            self.backup = self.numbers[0]
        elif step.kind in (Kind.RESTORE, Kind.CLONE):
            yield from self._restore(before.backup, step)
        elif step.kind is Kind.CRASH:
            yield self._new_leader(step.leader)
        elif step.kind is Kind.DELETE:
            yield Event(Seen.DELETED)
        elif step.kind is Kind.DROP:
            if not before.copies[step.cluster].is_deleted:
                yield self._event(Seen.REVOKED, before, step)
            yield self._event(Seen.UNFINALIZED, before, step)
        elif step.kind in OF_A_COPY:
            yield self._event(OF_A_COPY[step.kind], before, step)
        if before.copies[step.cluster] != ABSENT == step.after.copies[step.cluster]:
            yield self._event(Seen.GONE, before, step)

    def _begin(self, state: State) -> Iterator[Event]:
        for cluster in NAMES:
            yield Event(Seen.LEASE, cluster)
        for leader in range(len(state.leaders)):
            yield self._new_leader(leader)

    def _new_leader(self, leader: int) -> Event:
        self.names += 1
        self.leaders[leader] = f"leader {self.names}"
        return Event(Seen.LEADER, leader=self.leaders[leader])

    def _restore(self, backup: Hub, step: Step) -> Iterator[Event]:
        is_clone = step.kind is Kind.CLONE
        self.numbers[is_clone] = self.backup
        kind = Seen.CLONED if is_clone else Seen.RESTORED
        cluster = NAMES[backup.cluster]
        yield Event(kind, cluster, self.uids[backup.uid], self.backup, hub=HUBS[is_clone])
        for number, leader in enumerate(step.after.leaders):
            if leader.hub.uid < 0:
                yield self._new_leader(number)

    def _event(self, kind: Seen, before: State, step: Step) -> Event:
        leader = before.leaders[step.leader] if step.leader >= 0 else None
        of = leader.of if leader else 0
        if step.kind is Kind.RECORD and leader and leader.hub.is_version_of(before.hubs[of]):
            self.numbers[of] += 1  # otherwise it writes the number that was written since it read
        return Event(
            kind,
            NAMES[step.cluster],
            self.uids.get(step.uid, ""),
            number=self.numbers[of] if step.kind is Kind.RECORD else 0,
            is_suspended=step.after.copies[step.cluster].is_suspended,
            hub=HUBS[of],
            leader=self.leaders[step.leader] if leader else "",
        )
