"""QuotaSubtrees that are told what becomes of them: which statuses are written, and when.

Of every tree in turn, and of each at most once a second; what is shown already is not written
again. Nothing of that costs anything while no figure changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcad.core.commands import WriteQuota
from mcad.core.events import QuotaGone, QuotaRefused, QuotaSeen, QuotaWritten
from mcad.core.pacing import QUOTA_INTERVAL, Tries
from mcad.core.quota.records import QuotaView
from mcad.core.quota.status import findings, view
from mcad.core.units import Instant

if TYPE_CHECKING:
    from mcad.core.world import World


@dataclass(slots=True)
class Notice:
    """One QuotaSubtree: what its status shows as far as we know, and what is being written."""

    shown: QuotaView | None = None
    flying: QuotaView | None = None
    serial: int = 0
    not_before: Instant = 0
    is_stale: bool = False  # there may be something else to say since it was written
    tries: Tries = field(default_factory=Tries)


class Board:
    """All notices by uid, and which trees may have something to tell when."""

    def __init__(self) -> None:
        self.notices: dict[str, Notice] = {}
        self._due: dict[str, Instant] = {}
        self._not_before: dict[str, Instant] = {}

    def want(self, tree: str, at: Instant = 0) -> None:
        """The tree may have something to tell, from this instant on."""
        self._due[tree] = min(at, self._due.get(tree, at))

    def next(self) -> tuple[Instant, str] | None:
        """The tree whose turn it is, and from when on."""
        turns = ((max(at, self._not_before.get(name, 0)), name) for name, at in self._due.items())
        return min(turns, default=None)

    def has_its_say(self, tree: str, now: Instant, *, exists: bool) -> None:
        """The tree tells what there is; one that still ``exists`` may do so again."""
        del self._due[tree]
        self._not_before.pop(tree, None)
        if exists:
            self._not_before[tree] = now + QUOTA_INTERVAL


def heard(world: World, event: QuotaSeen | QuotaGone | QuotaWritten | QuotaRefused) -> None:
    """What happens to QuotaSubtrees, and to the writes of their statuses."""
    match event:
        case QuotaSeen():
            world.forest.seen(event.subtree)
            notice = world.board.notices.setdefault(event.subtree.uid, Notice())
            notice.shown = event.shown
            world.board.want(event.subtree.tree)
        case QuotaGone():
            world.forest.gone(event.uid)
            world.board.notices.pop(event.uid, None)
        case QuotaWritten() | QuotaRefused():
            notice = world.board.notices.get(event.uid, Notice())
            if notice.flying is not None and notice.serial == event.serial:
                _answered(world, event, notice)


def _answered(world: World, event: QuotaWritten | QuotaRefused, notice: Notice) -> None:
    """What was refused is said again, ever more slowly: what the object shows then the watch tells,
    if that is news."""
    if isinstance(event, QuotaWritten):
        notice.shown, notice.tries = notice.flying, Tries()
    else:
        notice.is_stale = True
        notice.not_before = world.now + max(QUOTA_INTERVAL, notice.tries.pause(event.answer))
    notice.flying = None
    if notice.is_stale:
        world.board.want(world.forest.tree_of(event.uid), notice.not_before)


def tell(world: World) -> None:
    """One tree has its say, if it is time; the next one in another pass."""
    board = world.board
    for name in world.forest.take_moved():
        board.want(name)
    turn = board.next()
    if turn is not None and turn[0] <= world.now:
        _tell_tree(world, turn[1])
        turn = board.next()
    if turn is not None:
        world.wake_at(max(turn[0], world.now))


def _tell_tree(world: World, name: str) -> None:
    board = world.board
    board.has_its_say(name, world.now, exists=bool(world.forest.subtrees(name)))
    for finding in findings(world.forest, name, world.admission.demand):
        notice = board.notices[finding.subtree.uid]
        said = view(finding, notice.shown, world.now)
        if notice.flying is not None:
            notice.is_stale = True
        elif said != notice.shown:
            _write(world, name, finding.subtree.uid, said)


def _write(world: World, tree: str, uid: str, said: QuotaView) -> None:
    notice = world.board.notices[uid]
    if world.now < notice.not_before:
        world.board.want(tree, notice.not_before)
        return
    notice.serial += 1
    notice.flying, notice.is_stale = said, False
    notice.not_before = world.now + QUOTA_INTERVAL
    world.emit(WriteQuota(uid, notice.serial, said))
