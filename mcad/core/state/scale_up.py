"""Scale-up requests: what the autoscaler was asked for, and what has become of it.

The controller makes an object of the autoscaler for each request; its name follows from the uid of
the AppWrapper and the attempt that the dispatch would begin.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from mcad.core.state.answer import Answer
from mcad.core.state.bounds import SCALE_UPS_KEPT, USUAL_SCALE_UP, Tries
from mcad.core.state.units import Duration, Instant


class ScaleUpState(StrEnum):
    """The progress of a request, as the autoscaler shows it."""

    ASKED = "Asked"  # the object exists, and the autoscaler has said nothing
    ACCEPTED = "Accepted"
    PROVISIONED = "Provisioned"
    FAILED = "Failed"
    EXPIRED = "Expired"  # provisioned, but the nodes are not kept for it any more
    REVOKED = "Revoked"  # provisioned, and the nodes were lost


FAILURES = frozenset({ScaleUpState.FAILED, ScaleUpState.REVOKED})
"""States in which no node comes any more."""

Pods = tuple[tuple[int, int, int], ...]
"""(item, index of the pod set in the item, pods)"""

Key = tuple[str, int]
"""(uid, attempt): what the name of a request is derived from."""


@dataclass(slots=True)
class ScaleUpRequest:
    """One request, from the command that asks for it until its object is gone.

    ``lacking`` are the pods without a place when it was made, () in a request of an earlier leader.
    ``seen`` is whether the object was observed; before, ``state`` is ASKED. ``until_bound``: the
    pods of the attempt name the object, so that it stays until they are bound. ``withdrawn_at``
    is when its deletion was requested, 0 if it was not. ``provisioned_at`` is when it was first
    seen as PROVISIONED. ``small_since`` is since when more pods lack a place than when it was made,
    0 if none do. ``again_at`` is when a refused request is repeated, 0 if none is.
    """

    uid: str
    attempt: int
    since: Instant
    lacking: Pods = ()
    state: ScaleUpState = ScaleUpState.ASKED
    message: str = ""
    object: str = ""
    until_bound: bool = False
    seen: bool = False
    withdrawn_at: Instant = 0
    again_at: Instant = 0
    provisioned_at: Instant = 0
    small_since: Instant = 0
    tries: Tries = field(default_factory=Tries)

    @property
    def withdrawn(self) -> bool:
        """Whether its deletion is requested."""
        return self.withdrawn_at > 0

    def refused(self, answer: Answer, now: Instant) -> None:
        """Note that the object was not created. A refusal that lasts is a failure."""
        self.again_at = now + self.tries.pause(answer)
        if self.tries.is_lasting(answer):
            self.state, self.message = ScaleUpState.FAILED, answer.message


class Searched(NamedTuple):
    """The last search for places of a reservation: the change of the books, and of the nodes."""

    changes: int
    moved: int
    at: Instant


class ScaleUps:
    """All requests that exist, by uid and attempt, and how long the last ones took.

    ``searched`` has the last search for places by the uid of the reservation's owner, and
    ``nodes_before`` the nodes that there were when it asked, unknown after a restart. ``judged`` is
    when it was last judged whether an AppWrapper should ask, and ``near`` since when pods that
    terminate keep one from asking. ``shown`` (an ordered set) are the uids of those whose status
    says that they wait for nodes.
    """

    def __init__(self) -> None:
        self.served = True  # the cluster serves a kind by which to ask, as far as is known
        self.searched: dict[str, Searched] = {}
        self.nodes_before: dict[str, frozenset[str]] = {}
        self.judged: dict[str, Instant] = {}
        self.near: dict[str, Instant] = {}
        self.shown: dict[str, None] = {}
        self._requests: dict[Key, ScaleUpRequest] = {}
        self._took: list[Duration] = []

    def __iter__(self) -> Iterator[ScaleUpRequest]:
        return iter(list(self._requests.values()))

    def __len__(self) -> int:
        return len(self._requests)

    def get(self, uid: str, attempt: int) -> ScaleUpRequest | None:
        """The request of the attempt, None without one."""
        return self._requests.get((uid, attempt))

    def ask(self, uid: str, attempt: int, now: Instant, lacking: Pods = ()) -> ScaleUpRequest:
        """Note a new request."""
        request = self._requests[uid, attempt] = ScaleUpRequest(uid, attempt, now, lacking)
        return request

    def seen(self, uid: str, attempt: int, since: Instant) -> ScaleUpRequest:
        """The request of an object that was observed, perhaps made by an earlier leader."""
        request = self._requests.get((uid, attempt)) or self.ask(uid, attempt, since)
        request.seen, request.since = True, since
        return request

    def gone(self, uid: str, attempt: int) -> None:
        """Forget a request whose object does not exist any more."""
        self._requests.pop((uid, attempt), None)

    def of(self, uid: str) -> bool:
        """Whether a request of the AppWrapper exists, of any attempt."""
        return any(of == uid for of, _ in self._requests)

    def keep_only(self, owners: Container[str]) -> None:
        """Forget the searches, and the nodes before, of reservations that have ended."""
        for of_owner in (self.searched, self.nodes_before):
            for uid in [uid for uid in of_owner if uid not in owners]:
                del of_owner[uid]

    def forget_judged(self, before: Instant) -> None:
        """Forget judgements up to this instant: these AppWrappers are judged anew."""
        kept = {uid: at for uid, at in self.near.items() if uid in self.judged}
        self.near = kept
        self.judged = {uid: at for uid, at in self.judged.items() if at > before}

    def took(self, duration: Duration) -> None:
        """Note how long nodes took to come, from the request until all pods had places."""
        self._took = [*self._took[1 - SCALE_UPS_KEPT :], duration]

    @property
    def usual(self) -> Duration:
        """How long a scale-up usually takes: the median of the last ones."""
        return sorted(self._took)[len(self._took) // 2] if self._took else USUAL_SCALE_UP
