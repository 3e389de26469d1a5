"""Candidates for shell completion from the API server: bounded in time, silent on failure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container

import click
from click.shell_completion import CompletionItem

from mcad.api.labels import TREE
from mcad.cli.arguments.names import APPWRAPPER_TYPES, NODE_TYPES
from mcad.client.scope import Target
from mcad.client.session import Environment
from mcad.kube.client import METADATA_LIST
from mcad.kube.kinds import APPWRAPPERS, NAMESPACES, NODES, QUOTA_SUBTREES
from mcad.kube.port import Request
from mcad.kube.resource import Resource

PATIENCE_S = 2.0  # a shell that hangs on the tab key is worse than one that does not complete
NAMES_MAX = 500

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(resource: Resource, types: Container[str] = ()) -> Completer:
    """A completer of names of a resource, also after the name of one of its types and a slash."""

    def complete(
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG001 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        return _complete(ctx, resource, incomplete, types)

    return complete


def _complete(
    ctx: click.Context, resource: Resource, incomplete: str, types: Container[str]
) -> list[CompletionItem]:
    given, slash, begun = incomplete.rpartition("/")
    if slash and given.lower() not in types:
        return []
    logging.disable()  # a log line would appear in the command line that is being typed
    try:
        names = asyncio.run(_names(ctx, resource))
    except Exception:  # noqa: BLE001 - no completion is always better than an error here
        return []
    finally:
        logging.disable(logging.NOTSET)
    return [CompletionItem(given + slash + name) for name in names if name.startswith(begun)]


async def _names(ctx: click.Context, resource: Resource) -> list[str]:
    given = {key: ctx.params[key] for key in Target.__struct_fields__ if key in ctx.params}
    target = Target(**given)
    environment = ctx.find_object(Environment) or Environment()
    async with asyncio.timeout(PATIENCE_S), environment.open_quickly(target) as (api, own):
        namespace = ctx.params.get("namespace") or own if resource != QUOTA_SUBTREES else None
        params = {"limit": str(NAMES_MAX)}
        request = Request("GET", resource.path(namespace), params, headers=METADATA_LIST)
        answer = await api.request(request, PATIENCE_S)
    if answer.status != 200:
        return []
    found = [item["metadata"] for item in answer.json()["items"]]
    if resource == QUOTA_SUBTREES:  # which has the name of its tree as a label
        return sorted({str(one.get("labels", {}).get(TREE, "")) for one in found} - {""})
    return [str(one["name"]) for one in found]


complete_namespaces = _completer(NAMESPACES)
complete_appwrappers = _completer(APPWRAPPERS, APPWRAPPER_TYPES)
complete_nodes = _completer(NODES, NODE_TYPES)
complete_trees = _completer(QUOTA_SUBTREES)
