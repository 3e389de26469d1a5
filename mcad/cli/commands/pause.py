"""``mcad pause`` and ``mcad resume``: create and delete DispatchPauses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import click
from msgspec import Struct

from mcad.api.pauses import read_pause
from mcad.api.quotas import read_quota
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import GlobalOption
from mcad.cli.arguments.options import record, target_options
from mcad.cli.errors import warn
from mcad.client.errors import McadError, NotFoundError, explain, not_installed
from mcad.client.figures.pauses import read_pauses
from mcad.client.scope import Target
from mcad.client.session import Session
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.quota_records import QuotaSubtree
from mcad.core.state.spelling import did_you_mean
from mcad.kube.client import Client, DeleteOptions
from mcad.kube.errors import ApiError
from mcad.kube.kinds import DISPATCH_PAUSES, NAMESPACES, QUOTA_SUBTREES

Json = dict[str, Any]

NAME_MAX = 253


class PauseScope(Struct, frozen=True):
    """--namespace or --quota; the whole cluster without either."""

    namespace: str | None = None
    quota: str | None = None

    @property
    def pause(self) -> DispatchPause:
        """A DispatchPause of this scope, with the name that this command gives it."""
        if self.namespace and self.quota:
            raise click.UsageError("--namespace and --quota exclude each other: run it twice")
        if self.namespace:
            return DispatchPause("", f"namespace-{self.namespace}", namespace=self.namespace)
        if self.quota is None:
            return DispatchPause("", "cluster")
        tree, slash, node = self.quota.partition("/")
        if not (tree and slash and node):
            raise click.UsageError(f"--quota {self.quota!r}: write TREE/NODE")
        return DispatchPause("", _name(f"quota-{tree}-{node}"), tree=tree, node=node)


scope_options = record(
    "scope",
    PauseScope,
    click.option(
        "-n",
        "--namespace",
        metavar="NAME",
        cls=GlobalOption,
        help="Only AppWrappers of this namespace.",
    ),
    click.option(
        "--quota",
        metavar="TREE/NODE",
        help="Only AppWrappers that are charged at this node of a quota tree or below it.",
    ),
)


@click.command()
@scope_options
@click.option("--reason", default="", metavar="TEXT", help="Why: shown to all users.")
@target_options
def pause(scope: PauseScope, reason: str, target: Target) -> None:
    """Stop dispatch in the whole cluster, a namespace or a quota node.

    Nothing new is dispatched and no AppWrapper is evicted for others there, until `mcad resume`;
    what runs is left alone. A scope that does not exist yet is a warning. This creates a
    DispatchPause, an object that all users can see. The right to create it is in the role
    mcad-pause-admin of the chart.
    """
    asyncio.run(_pause(scope.pause, reason, target))


@click.command()
@scope_options
@click.option("--all", "everything", is_flag=True, help="Every DispatchPause that there is.")
@target_options
def resume(scope: PauseScope, everything: bool, target: Target) -> None:  # noqa: FBT001 - click's
    """Resume dispatch.

    This deletes the DispatchPauses of exactly this scope, or --all. What waited for them queues at
    its original position.
    """
    if everything and scope != PauseScope():
        raise click.UsageError("--all has no scope: omit --namespace and --quota")
    asyncio.run(_resume(scope.pause, target, everything=everything))


async def _pause(wanted: DispatchPause, reason: str, target: Target) -> None:
    async with environment().connect(target, watches=False) as session:
        for one in await _present(session):
            if _is_same(one, wanted):
                raise McadError(f"{one.text} already; `mcad resume` ends that")
        if doubt := await _doubt(session.client, wanted):
            warn(doubt)
        try:
            await session.client.create(DISPATCH_PAUSES, None, _object(wanted, reason))
        except ApiError as error:
            raise _explained(error) from error
    click.echo(f"Dispatch is paused for {wanted.scope}.")


async def _doubt(client: Client, wanted: DispatchPause) -> str:
    """What there is not yet of the scope; "" if all is there, or cannot be read."""
    try:
        if wanted.namespace:
            names = [one["metadata"]["name"] for one in (await client.list_all(NAMESPACES))[0]]
            return _missing(f"there is no namespace {wanted.namespace}", wanted.namespace, names)
        if wanted.tree:
            found, _ = await client.list_all(QUOTA_SUBTREES)
            return _missing_node(wanted, [read_quota(obj) for obj in found])
    except ApiError:
        pass  # without the right to look, or without quota trees
    return ""


def _missing_node(wanted: DispatchPause, subtrees: Sequence[QuotaSubtree]) -> str:
    trees = [one.tree for one in subtrees]
    if wanted.tree not in trees:
        return _missing(f"there is no quota tree {wanted.tree}", wanted.tree, trees)
    own = [one for one in subtrees if one.tree == wanted.tree]
    nodes = [node for one in own for node in (one.parent, *(child.name for child in one.children))]
    return _missing(f"quota tree {wanted.tree} has no node {wanted.node}", wanted.node, nodes)


def _missing(what: str, name: str, known: Sequence[str]) -> str:
    return "" if name in known else f"{what} yet. {did_you_mean(name, known)}".rstrip()


async def _resume(wanted: DispatchPause, target: Target, *, everything: bool) -> None:
    async with environment().connect(target, watches=False) as session:
        present = await _present(session)
        chosen = [one for one in present if everything or _is_same(one, wanted)]
        if not chosen:
            others = "".join(f"; {one.text}" for one in present)
            raise NotFoundError(f"dispatch is not paused for {wanted.scope}{others}")
        for one in chosen:
            try:
                options = DeleteOptions(one.uid)
                await session.client.delete(DISPATCH_PAUSES, None, one.name, options)
            except ApiError as error:
                raise _explained(error) from error
            click.echo(f"Dispatch is resumed for {one.scope}.")


async def _present(session: Session) -> list[DispatchPause]:
    return [read_pause(obj) for obj in await read_pauses(session.client)]


def _is_same(one: DispatchPause, other: DispatchPause) -> bool:
    """Whether both have the same scope."""
    return (one.namespace, one.tree, one.node) == (other.namespace, other.tree, other.node)


def _object(wanted: DispatchPause, reason: str) -> Json:
    spec: Json = {"reason": reason} if reason else {}
    if wanted.namespace:
        spec["namespace"] = wanted.namespace
    if wanted.tree:
        spec["quotaNode"] = {"tree": wanted.tree, "node": wanted.node}
    return {
        "apiVersion": DISPATCH_PAUSES.api_version,
        "kind": DISPATCH_PAUSES.kind,
        "metadata": {"name": wanted.name},
        "spec": spec,
    }


def _name(text: str) -> str:
    """The text as the name of an object."""
    return re.sub(r"[^a-z0-9-]+", "-", text.lower())[:NAME_MAX].strip("-")


def _explained(error: ApiError) -> McadError:
    if error.not_found and not error.details.get("name"):
        return McadError(not_installed(DISPATCH_PAUSES))
    if error.already_exists:
        name = error.details.get("name")
        return McadError(f"DispatchPause {name} exists with another scope; delete it with kubectl")
    return explain(error)
