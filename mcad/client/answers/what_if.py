"""What the dispatcher would do if something were different."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcad.api.catalog import Catalog
from mcad.api.config import Config, to_settings
from mcad.api.wire import format_instant, plural
from mcad.client.answers.changes import Changes
from mcad.client.config import as_dispatched, load_config
from mcad.client.errors import InvalidError, McadError
from mcad.client.figures.figures import warn_of_notes
from mcad.client.figures.listed import list_facts
from mcad.client.figures.progress import working
from mcad.client.manifests.check import check_kind, prepare
from mcad.client.manifests.documents import Document
from mcad.client.scope import Settings
from mcad.client.session import Session
from mcad.controller.served_kinds import Kinds
from mcad.controller.what_if_views import what_if_view
from mcad.core.answers.changed_facts import with_nodes, with_share, without
from mcad.core.answers.changes import AddNodes
from mcad.core.answers.dry_run import Facts
from mcad.core.answers.outcome import outcome
from mcad.core.events import AppWrapperSeen, NodeSeen, QuotaSeen
from mcad.core.state.quantity import QuantityError, amount
from mcad.core.state.records import replace
from mcad.core.state.spelling import did_you_mean
from mcad.core.state.units import Instant
from mcad.kube.client import Client
from mcad.kube.discovery import Discovery

Json = dict[str, Any]

_RUNNING = Settings()
"""The configuration of the running dispatcher."""


async def what_if(
    session: Session,
    changes: Changes,
    documents: Sequence[Document],
    namespace: str | None,
    given: Settings = _RUNNING,
) -> Json:
    """What differs with these changes, among them AppWrappers that are created.

    ``given``: the configuration of the dispatcher, if it is not that of the running one.
    """
    own = namespace or session.namespace
    config = await as_dispatched(session.client, load_config(given))
    then = Settings(given.config, (*given.assignments, *changes.assignments))
    other = await as_dispatched(session.client, load_config(then))
    created = await _created(session, documents, own, other)
    return await _compare(session.client, (config, other), changes, created, own)


async def _created(
    session: Session, documents: Sequence[Document], own: str, config: Config
) -> list[Json]:
    """The AppWrappers of the files as the API server would have created them now."""
    if not documents:
        return []
    kinds = Kinds(Discovery(session.client), config)
    await kinds.refresh()
    return as_created(documents, own, kinds.catalog, session.client.clock.now_us())


def as_created(
    documents: Sequence[Document], own: str, catalog: Catalog, now: Instant
) -> list[Json]:
    """The AppWrappers of the files with what the API server would have given them."""
    for document in documents:
        check_kind(document)
    prepared, faults = prepare(documents, None, own, catalog)
    if faults:
        raise InvalidError(
            f"nothing was tried: {plural(len(faults), 'fault')} to correct first", tuple(faults)
        )
    created = format_instant(now)
    made = []
    for number, one in enumerate(prepared):
        uid, version = f"what-if-{number}", "0"
        given = {"uid": uid, "creationTimestamp": created, "resourceVersion": version}
        name = one.obj["metadata"].get("name") or f"what-if-{number}"
        made.append(one.obj | {"metadata": one.obj["metadata"] | given | {"name": name}})
    return made


async def _compare(
    client: Client,
    configs: tuple[Config, Config],
    changes: Changes,
    created: Sequence[Json],
    own: str,
) -> Json:
    """What differs. ``configs``: of the dispatcher as it is, and as it would be."""
    config, other = configs
    figures, listed = await list_facts(client, other, created)
    new = [str(one["metadata"]["uid"]) for one in created]
    now = replace(without(listed, new), settings=to_settings(config))
    if not config.quota_enabled:
        now = replace(now, events=[one for one in now.events if not isinstance(one, QuotaSeen)])
    then = changed(listed, changes, own)
    warn_of_notes(figures)
    with working("comparing the next cycles"):
        return what_if_view(outcome(now), outcome(then), listed.now, new)


def changed(facts: Facts, changes: Changes, own: str) -> Facts:
    """The facts with these changes, except settings and what is created."""
    if changes.left_out:
        facts = without(facts, {_uid(facts, one, own) for one in changes.left_out})
    if changes.nodes is not None and changes.like is not None:
        facts = with_nodes(facts, _like(facts, changes.like, changes.nodes).nodes())
    for where, amounts in changes.quota:
        facts = _with_quota(facts, where, amounts)
    return facts


def _uid(facts: Facts, name: str, own: str) -> str:
    """The uid of the AppWrapper that --without names."""
    title = name.removeprefix("aw/")
    title = title if "/" in title else f"{own}/{title}"
    works = [one.workload for one in facts.events if isinstance(one, AppWrapperSeen)]
    for work in works:
        if f"{work.namespace}/{work.name}" == title:
            return work.uid
    raise McadError(f'--without: there is no AppWrapper "{title}"; see `mcad get -A`')


def _like(facts: Facts, name: str, count: int) -> AddNodes:
    nodes = {one.node.name: one.node for one in facts.events if isinstance(one, NodeSeen)}
    if name not in nodes:
        hint = did_you_mean(name, list(nodes)) or "`mcad capacity` lists the nodes."
        raise McadError(f'--like: there is no node "{name}". {hint}')
    return AddNodes(nodes[name], count)


def _with_quota(facts: Facts, where: str, amounts: str) -> Facts:
    tree, slash, node = where.partition("/")
    if not (tree and slash and node):
        raise McadError(f'--quota: "{where}" is not TREE/NODE; write --quota teams/red cpu=40')
    changed = with_share(facts, tree, node, _shares(amounts))
    if changed is None:
        raise McadError(
            f'--quota: there is no node "{node}" in a quota tree "{tree}"; see `mcad quota`'
        )
    return changed


def _shares(text: str) -> dict[str, int]:
    shares = {}
    for part in text.split(","):
        resource, equals, quantity = part.partition("=")
        if not (resource and equals):
            raise McadError(f'--quota: "{part}" is not RESOURCE=AMOUNT; write cpu=40')
        try:
            shares[resource] = amount(resource, quantity)
        except QuantityError as error:
            raise McadError(f"--quota: {resource}: {error}") from error
    return shares
