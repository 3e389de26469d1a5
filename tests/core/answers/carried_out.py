"""Checks the answers about random small clusters by carrying them out.

python -m tests.core.answers.carried_out [--worlds 10000] [--first 0] [--evicts]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from random import Random

from mcad.core.answers.changes import AddNodes, Edit, End, Leave, RaiseQuota, resized
from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.answers.why import Why, why
from mcad.core.nodes.resources import resources
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Workload
from mcad.core.state.quota_records import QuotaSubtree
from mcad.core.state.records import replace
from tests.core.answers.worlds import Change, everyone, started, world

Changes = tuple[Change, ...]

MORE_NODES = 4
"""Nodes that are added where no answer says that nodes would do."""


class _Check:
    """One world: asks about every AppWrapper, carries out each answer, and counts in ``figures``.

    Where other AppWrappers start too, an answer may depend on which of equal nodes they take: that
    depends on what happened to the nodes before, and is counted apart.
    """

    def __init__(self, seed: int, *, evicts: bool) -> None:
        self.facts = world(Random(seed), evicts=evicts)
        self.run = DryRun(self.facts)
        self.figures: Counter[str] = Counter(worlds=1)

    def all(self) -> Counter[str]:
        for uid, entry in list(self.run.cluster.entries.items()):
            told = why(self.run, uid)
            assert told.starts == started(self.facts, uid), f"{uid} starts: {told.starts}"
            if entry.phase is Phase.WAITING and not told.starts:
                self.figures["waiting"] += 1
                self.figures[f"waits for {told.reason}"] += 1
                self._one(uid, told)
        return self.figures

    def _one(self, uid: str, told: Why) -> None:
        again = why(DryRun(self.facts), uid)
        for one in {*told.remedies} ^ {*again.remedies}:
            self.figures["other answers when asked anew"] += 1
            assert one.kind is Kind.EVICT or everyone(self.facts, one.change), one.text
        for remedy in told.remedies:
            self.figures[remedy.kind] += 1
            what = f"{remedy.kind}: {remedy.text}"
            changes = _carried_out(remedy)
            if not started(self.facts, uid, *changes):
                self._expect(uid, changes, False, f"{uid}: {what}")
            for less in _smaller(self.run.entry(uid).workload, remedy):
                self.figures["smaller ones"] += 1
                if started(self.facts, uid, *less):
                    self._expect(uid, less, True, f"{uid}: less than {what}")
        for change in _none_found(self.run, uid, told):
            self.figures["none of the kind"] += 1
            if started(self.facts, uid, change):
                self.figures["not found"] += 1  # nothing is claimed of it

    def _expect(self, uid: str, changes: Changes, starts: bool, what: str) -> None:
        """A whole cycle and the answer differ: that is wrong, unless others start too. Then the
        copy comes to another end, or has turned since it was asked."""
        others = everyone(self.facts, *changes) - {uid}
        self.run.allow(10**9)
        with self.run.tried(*changes) as found:
            others |= {*found} - {uid}
            has_turned = (uid in found) == starts
        assert others, what
        self.figures["turned on the copy" if has_turned else "depends on others"] += 1


def check(seed: int, *, evicts: bool = False) -> Counter[str]:
    """What was asked and answered in one world; ``evicts``: in one with answers about evictions."""
    return _Check(seed, evicts=evicts).all()


def _carried_out(remedy: Remedy) -> Changes:
    """The change; of an eviction, the higher priority and the end of the victims."""
    return (remedy.change, End(remedy.uids)) if remedy.kind is Kind.EVICT else (remedy.change,)


def _smaller(work: Workload, remedy: Remedy) -> Iterator[Changes]:
    """All smaller changes of the same kind; of an eviction, fewer victims."""
    if remedy.kind is Kind.EVICT:
        for out in remedy.uids:
            yield remedy.change, End(tuple(one for one in remedy.uids if one != out))
        return
    yield from ((change,) for change in _less(work, remedy))


def _less(work: Workload, remedy: Remedy) -> Iterator[Change]:
    match remedy.change:
        case AddNodes(like, count):
            yield from (AddNodes(like, n) for n in range(count))
        case End(uids):
            yield from (End(tuple(one for one in uids if one != out)) for out in uids)
        case Leave(uids):
            yield from (Leave(tuple(one for one in uids if one != out)) for out in uids)
        case RaiseQuota(before, after):
            yield from _less_quota(before, after)
        case Edit(edited) if remedy.kind is Kind.PRIORITY:
            yield from (
                Edit(replace(work, priority=n)) for n in range(work.priority, edited.priority)
            )
        case Edit(edited) if remedy.kind is Kind.PODS:
            at = _edited_set(work, edited)
            most = work.sets[at].replicas
            for n in range(edited.sets[at].replicas + 1, most + 1):
                yield Edit(resized(work, at, replicas=n))
        case Edit(edited) if remedy.kind is Kind.REQUEST:
            at = _edited_set(work, edited)
            amounts = dict(work.sets[at].request)
            for n in (1, 7, 50, 100):
                more = min(dict(edited.sets[at].request)["cpu"] + n, amounts["cpu"])
                yield Edit(resized(work, at, request=resources(amounts | {"cpu": more})))


def _edited_set(work: Workload, edited: Workload) -> int:
    return next(n for n, one in enumerate(work.sets) if one != edited.sets[n])


def _less_quota(
    before: tuple[QuotaSubtree, ...], after: tuple[QuotaSubtree, ...]
) -> Iterator[RaiseQuota]:
    """Each raised share one less, or not raised."""
    for position, (old, new) in enumerate(zip(before, after, strict=True)):
        for number, (was, now) in enumerate(zip(old.children, new.children, strict=True)):
            if was == now:
                continue
            for less in (1, 10, 100):
                shares = dict(was.nominal)
                share = max(shares["cpu"], dict(now.nominal)["cpu"] - less)
                child = replace(now, nominal=(("cpu", share),))
                children = [*new.children]
                children[number] = child
                subtrees = [*after]
                subtrees[position] = replace(new, children=tuple(children))
                yield RaiseQuota(before, tuple(subtrees))


def _none_found(run: DryRun, uid: str, told: Why) -> Iterator[Change]:
    """Changes of kinds that have no answer."""
    kinds = {one.kind for one in told.remedies}
    work = run.entry(uid).workload
    entries = run.cluster.entries.values()
    if Kind.ENDS not in kinds and told.reason not in ("blocked", "lending", "Suspended"):
        yield End(tuple(one.uid for one in entries if run.cluster.capacity.gangs.exists(one.uid)))
    if Kind.NODES not in kinds and told.reason == "insufficient":
        like = next(iter(run.cluster.capacity.nodes()))
        yield from (AddNodes(like, n) for n in range(1, MORE_NODES))
    if not kinds & {Kind.PRIORITY, Kind.EVICT} and not told.evicts:
        yield Edit(replace(work, priority=max(one.workload.priority for one in entries) + 1))
    if Kind.PODS not in kinds and len(work.sets) == 1 and work.sets[0].replicas > 1:
        yield Edit(resized(work, 0, replicas=1))


def main() -> None:
    """Check many worlds and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--evicts", action="store_true", help="with answers about evictions")
    given = parser.parse_args()
    figures: Counter[str] = Counter()
    for seed in range(given.first, given.first + given.worlds):
        try:
            figures += check(seed, evicts=given.evicts)
        except AssertionError as error:
            print(f"world {seed}: {error!s}", flush=True)
            figures["wrong"] += 1
    for name, count in sorted(figures.items()):
        print(f"{name:32} {count:9,}")


if __name__ == "__main__":
    main()
