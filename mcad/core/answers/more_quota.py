"""Which nodes of quota trees would need a larger share, and how large."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.core.answers.changes import RaiseQuota, with_shares
from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.cycle import cycle
from mcad.core.state.quantity import format_amount
from mcad.core.state.quota_records import QuotaSubtree
from mcad.core.state.refusal import QuotaLimit

ROUNDS_MAX = 16
"""How many shares are raised one after the other, until none refuses the AppWrapper."""

_Shares = dict[tuple[str, str, str], int]
"""Shares by tree, node and resource."""


def more_quota(run: DryRun, uid: str, limit: QuotaLimit) -> Iterator[Remedy]:
    """The answer, none if larger shares alone do not start the AppWrapper."""
    before: _Shares = {}
    shares: _Shares = {}
    least: _Shares = {}
    missing: QuotaLimit | None = limit
    for _ in range(ROUNDS_MAX):
        if missing is None or not missing.node:
            return
        at = (missing.tree, missing.node, missing.resource)
        if at not in shares:  # later rounds add the room that AppWrappers ahead take
            before[at] = missing.nominal
            missing = missing._replace(used=_used(run, *at))
            least[at] = missing.used + missing.requested
        shares[at] = missing.used + missing.requested
        change = _change(run, shares)
        if change is None:
            return
        with run.tried(change) as started:
            if uid in started:
                break
            missing = _refused_by(run, uid)
    else:
        return
    for at in [one for one in shares if shares[one] > least[one]]:
        fewer = shares | {at: least[at]}
        lower = _change(run, fewer)
        if lower is not None and run.starts(uid, lower):
            shares, change = fewer, lower
    text = "; ".join(_text(at, share, before[at]) for at, share in shares.items())
    yield Remedy(Kind.QUOTA, f"{text}.", change, number=sum(shares.values()))


def _used(run: DryRun, tree: str, node: str, resource: str) -> int:
    """The present use of the node."""
    return run.cluster.forest.trees[tree].nodes[node].usage.get(resource, 0)


def _refused_by(run: DryRun, uid: str) -> QuotaLimit | None:
    """The share that refuses the AppWrapper at present; None if something else does."""
    cluster = run.cluster
    eqclass = cluster.waiting.queue.eqclass_of(run.entry(uid))
    if eqclass is None:
        return None
    refusal = cycle.verdict(cluster, cluster.capacity.questions(), eqclass)
    return refusal.quota if refusal is not None else None


def _change(run: DryRun, shares: _Shares) -> RaiseQuota | None:
    before: dict[str, QuotaSubtree] = {}
    after: dict[str, QuotaSubtree] = {}
    for (tree, node, resource), share in shares.items():
        known = _defining(run, tree, node)
        if known is None:
            return None
        before[known.uid] = known
        after[known.uid] = with_shares(after.get(known.uid, known), node, {resource: share})
    return RaiseQuota(tuple(before.values()), tuple(after.values()))


def _defining(run: DryRun, tree: str, node: str) -> QuotaSubtree | None:
    """The QuotaSubtree that defines the node: of several the oldest."""
    found = [
        one
        for one in run.cluster.forest.subtrees_of(tree)
        if any(child.name == node and not child.flaw for child in one.children)
    ]
    return min(found, key=lambda one: (one.created, one.namespace, one.name), default=None)


def _text(at: tuple[str, str, str], share: int, before: int) -> str:
    tree, node, resource = at
    more, less = (format_amount(resource, n) for n in (share, before))
    return f'Quota tree "{tree}", node "{node}": {resource} {more} instead of {less}'
