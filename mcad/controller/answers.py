"""Answers about a cluster with a change. Nothing is written anywhere: copies of the dispatcher get
what it has observed, and run their next cycles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec import Struct

from mcad.api.appwrapper import Parsed
from mcad.api.config import overridden
from mcad.api.questions import Changes, Question
from mcad.api.quotas import read_quota
from mcad.api.sources import ConfigError, load
from mcad.api.wire import as_map, as_text, format_instant
from mcad.controller.answer_views import why_view
from mcad.controller.what_if_views import what_if_view
from mcad.core.answers.changed_facts import with_nodes, with_share, without
from mcad.core.answers.changes import AddNodes
from mcad.core.answers.dry_run import DryRun, Facts, fed
from mcad.core.answers.node_drain import drain
from mcad.core.answers.outcome import outcome
from mcad.core.answers.why import why
from mcad.core.events import AppWrapperSeen, NodeSeen, QuotaSeen
from mcad.core.outlook import foresee, unhurried
from mcad.core.state.model import Workload
from mcad.core.state.quantity import QuantityError, amount
from mcad.core.state.quota_records import QuotaSubtree
from mcad.core.state.records import replace
from mcad.core.state.spelling import did_you_mean
from mcad.core.state.units import SECOND, Instant
from mcad.core.state.waiting_reason import WaitingReason

Json = dict[str, Any]


class BadQuestionError(Exception):
    """A question without an answer. ``message`` names what is wrong; ``faults`` are those of
    manifests, by their numbers; ``missing``: it names an object that does not exist."""

    def __init__(
        self, message: str, faults: Sequence[tuple[int, str]] = (), *, missing: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.faults = tuple(faults)
        self.missing = missing


class Created(Struct, frozen=True):
    """AppWrappers as if they had been created now, and warnings about manifests, by number."""

    works: tuple[Workload, ...] = ()
    warnings: tuple[tuple[int, str], ...] = ()


def created(manifests: Sequence[Json], read: Callable[[Json], Parsed], now: Instant) -> Created:
    """The AppWrappers with what the API server would give them; raises ``BadQuestionError``."""
    works: list[Workload] = []
    faults: list[tuple[int, str]] = []
    warnings: list[tuple[int, str]] = []
    for number, obj in enumerate(manifests):
        given = {"uid": f"what-if-{number}", "resourceVersion": "0"}
        metadata = as_map(obj.get("metadata")) | given | {"creationTimestamp": format_instant(now)}
        metadata["name"] = as_text(metadata.get("name")) or f"what-if-{number}"
        parsed = read(obj | {"metadata": metadata, "status": {}})
        works.append(parsed.workload)
        warnings += [(number, text) for text in parsed.workload.warnings]
        for problem in parsed.problems:
            is_fault = problem.kind is WaitingReason.INVALID
            (faults if is_fault else warnings).append((number, str(problem)))
    if faults:
        raise BadQuestionError("nothing was tried: the manifests have faults", faults)
    return Created(tuple(works), tuple(warnings))


def answer(facts: Facts, question: Question, new: Created, own: str) -> Json:
    """The answer; ``new`` are the AppWrappers of its manifests, and ``own`` is the namespace of
    names without one. Raises ``BadQuestionError``."""
    if question.drain:
        return _drain(facts, question.drain)
    if question.subtrees:
        return _evictions(facts, [read_quota(one) for one in map(_named, question.subtrees)])
    then = changed(facts, question.changes, own)
    then = replace(then, events=(*then.events, *map(AppWrapperSeen, new.works)))
    told = what_if_view(outcome(facts), outcome(then), facts.now, [one.uid for one in new.works])
    return told | {"warnings": new.warnings}


def why_answer(facts: Facts, uid: str) -> Json:
    """Why an AppWrapper waits and what would start it; {} if the facts do not have it."""
    run = DryRun(facts)
    if uid not in run.cluster.entries:
        return {}
    told = why(run, uid)
    said = {"waitsFor": told.reason, "why": told.text} if told.text else {}
    return said | why_view(run, told)


def changed(facts: Facts, changes: Changes, own: str) -> Facts:
    """The facts with these changes."""
    if changes.left_out:
        facts = without(facts, {_uid(facts, one, own) for one in changes.left_out})
    if changes.nodes is not None and changes.like is not None:
        like = _nodes(facts, [changes.like], "--like: ")[changes.like].node
        facts = with_nodes(facts, AddNodes(like, changes.nodes).nodes())
    for where, amounts in changes.quota:
        facts = _with_quota(facts, where, amounts)
    if changes.assignments:
        try:
            settings = overridden(facts.settings, load(None, {}, changes.assignments))
        except (ConfigError, ValueError) as error:
            raise BadQuestionError(str(error)) from error
        facts = replace(facts, settings=settings)
    return facts


def _uid(facts: Facts, name: str, own: str) -> str:
    """The uid of the AppWrapper that --without names."""
    title = name.removeprefix("aw/")
    title = title if "/" in title else f"{own}/{title}"
    works = [one.workload for one in facts.events if isinstance(one, AppWrapperSeen)]
    for work in works:
        if f"{work.namespace}/{work.name}" == title:
            return work.uid
    told = f'--without: there is no AppWrapper "{title}"; see `mcad get -A`'
    raise BadQuestionError(told, missing=True)


def _nodes(facts: Facts, names: Collection[str], option: str) -> dict[str, NodeSeen]:
    """The nodes, with these names among them."""
    known = {one.node.name: one for one in facts.events if isinstance(one, NodeSeen)}
    for name in sorted({*names} - {*known}):
        hint = did_you_mean(name, list(known)) or "`mcad capacity` lists the nodes."
        raise BadQuestionError(f'{option}there is no node "{name}". {hint}', missing=True)
    return known


def _drain(facts: Facts, names: Sequence[str]) -> Json:
    _nodes(facts, names, "")
    found = drain(facts, frozenset(names))
    return {"moves": [one._asdict() for one in found.moves], "others": found.others}


def _named(subtree: Json) -> Json:
    """As it is when it is applied: with a namespace and a uid."""
    metadata = as_map(subtree.get("metadata"))
    namespace, name = as_text(metadata.get("namespace")) or "default", metadata.get("name")
    given = {"namespace": namespace, "name": name, "uid": f"{namespace}/{name}"}
    return {**subtree, "metadata": {**metadata, **given}}


def _evictions(facts: Facts, subtrees: Sequence[QuotaSubtree]) -> Json:
    """Which AppWrappers would be evicted if these QuotaSubtrees were applied."""
    applied = {one.title: one for one in subtrees}
    events = []
    for event in facts.events:
        if isinstance(event, QuotaSeen) and event.subtree.title in applied:
            present, new = event.subtree, applied.pop(event.subtree.title)
            event = QuotaSeen(replace(new, uid=present.uid, created=present.created))
        events.append(event)
    facts = Facts(
        unhurried(facts.settings), [*map(QuotaSeen, applied.values()), *events], facts.now
    )
    return {
        "evictions": [
            {
                "appwrapper": one.victim,
                "reason": one.reason,
                "for": one.preemptor,
                "afterSeconds": one.after // SECOND,
            }
            for one in foresee(fed(facts), facts.now)
        ]
    }


def _with_quota(facts: Facts, where: str, amounts: str) -> Facts:
    tree, slash, node = where.partition("/")
    if not (tree and slash and node):
        raise BadQuestionError(
            f'--quota: "{where}" is not TREE/NODE; write --quota teams/red cpu=40'
        )
    found = with_share(facts, tree, node, _shares(amounts))
    if found is None:
        raise BadQuestionError(
            f'--quota: there is no node "{node}" in a quota tree "{tree}"; see `mcad quota`',
            missing=True,
        )
    return found


def _shares(text: str) -> dict[str, int]:
    shares = {}
    for part in text.split(","):
        resource, equals, quantity = part.partition("=")
        if not (resource and equals):
            raise BadQuestionError(f'--quota: "{part}" is not RESOURCE=AMOUNT; write cpu=40')
        try:
            shares[resource] = amount(resource, quantity)
        except QuantityError as error:
            raise BadQuestionError(f"--quota: {resource}: {error}") from error
    return shares
