"""Which running AppWrappers would have to end: a set of which each member is needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from mcad.core.answers.changes import End
from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.holding import charged_at
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.answers.search import irreducible
from mcad.core.reservations import release_set
from mcad.core.snapshot.removal import fewest
from mcad.core.state.reasons import some_of
from mcad.core.state.refusal import QuotaLimit

ROUNDS_MAX = 5
"""Rounds at most: AppWrappers ahead may take the room, then more have to end."""

FEW = 16
"""How many AppWrappers all end on trial, where the snapshot finds no set."""

LEFT_OUT_MAX = 24
"""How many members are left out on trial, where AppWrappers ahead take room too."""


def ends(run: DryRun, uid: str, limit: QuotaLimit | None = None) -> Iterator[Remedy]:
    """The answer, none if no set was found. ``limit``: the share that refuses it, if any."""
    found = _enough(run, uid, _useful_first(run, limit))
    if found is None:
        return
    order = {one: number for number, one in enumerate(run.holders)}
    gone = tuple(sorted(found, key=order.__getitem__))
    names = some_of([run.entry(one).title for one in gone])
    verb = "ends" if len(gone) == 1 else "end"
    yield Remedy(Kind.ENDS, f"If {names} {verb}.", End(gone), number=len(gone), uids=gone)


def _useful_first(run: DryRun, limit: QuotaLimit | None) -> list[str]:
    """The holders of room, in order; holders charged to the share first, because nothing starts
    without some of them, and their room on nodes may be enough."""
    if limit is None:
        return list(run.holders)
    charged = charged_at(run.cluster, limit)
    return sorted(run.holders, key=lambda uid: not charged.get(uid))


def _enough(run: DryRun, uid: str, candidates: Sequence[str]) -> tuple[str, ...] | None:
    """The AppWrappers that have to end before this one starts. Where AppWrappers ahead take the
    room, more have to end."""
    gone: dict[str, None] = {}
    for number in range(ROUNDS_MAX):
        with run.tried(End(tuple(gone))) as started:
            is_enough, is_alone = uid in started, started == [uid]
            room = () if is_enough else _room(run, uid, gone, candidates)
        if is_enough:
            # After one round the snapshot has tested that each member is needed.
            is_minimal = number == 1 and is_alone
            return tuple(gone) if is_minimal else needed(run, uid, tuple(gone))
        if not room:
            break
        gone.update(dict.fromkeys(room))
    return _of_all(run, uid)


def _room(
    run: DryRun, uid: str, gone: Collection[str], candidates: Iterable[str]
) -> tuple[str, ...]:
    """Which others have to end before the AppWrapper fits, if none ahead took their room."""
    others = (one for one in candidates if one not in gone)
    snapshot = release_set.what_if(run.cluster, run.entry(uid), (uid,))
    found = fewest(snapshot, others)
    run.spend(snapshot.steps)
    return found.leaving if found is not None else ()


def _of_all(run: DryRun, uid: str) -> tuple[str, ...] | None:
    """The set where the snapshot finds none, as AppWrappers ahead or pods without a node come
    first: all of a few, without those that can be left out."""
    gone = tuple(run.holders)
    if len(gone) > FEW or not run.starts(uid, End(gone)):
        return None
    return needed(run, uid, gone)


def needed(run: DryRun, uid: str, gone: tuple[str, ...]) -> tuple[str, ...] | None:
    """The members of ``gone`` that cannot be left out; None if they are too many to try."""
    if len(gone) > LEFT_OUT_MAX:
        return None
    return irreducible(lambda some: run.starts(uid, End(some)), gone)
