"""``mcad capacity``: what the nodes have, what is used, what is reserved, and what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import click

from mcad.cli.arguments.completion_candidates import complete_nodes
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.names import node_names
from mcad.cli.arguments.options import Output, output_options, source_options
from mcad.cli.errors import fail_for_missing
from mcad.cli.pages.capacity_amounts import STATES
from mcad.cli.pages.human_amounts import human_amount
from mcad.cli.pages.output_forms import echo_form, is_structured
from mcad.cli.pages.tables import echo, table
from mcad.client.errors import UnavailableError
from mcad.client.figures.source import open_figures
from mcad.client.scope import Scope, Source
from mcad.kube.kinds import CAPACITY_REPORTS

Json = dict[str, Any]

TITLES = ("NODE", "RESOURCE", "ALLOCATABLE", "USED", "RESERVED", "FREE")
STATE = "STATE"
REFUSED = ("WITHOUT-NODE", "PODS", "KUBE-SCHEDULER")
BOOKS = ("allocatable", "used", "reserved", "free")


@click.command()
@click.argument("nodes", metavar="[NODE]...", nargs=-1, shell_complete=complete_nodes)
@click.option("--total", "total_only", is_flag=True, help="Only the sums.")
@source_options
@output_options("json", "yaml", "name")
def capacity(nodes: tuple[str, ...], total_only: bool, source: Source, output: Output) -> None:  # noqa: FBT001 - click passes it by name
    """Show allocatable, used, reserved and free capacity.

    With names, only those nodes: NAME or node/NAME. USED is what bound pods request, RESERVED what
    dispatched AppWrappers demand for pods that are not bound yet. FREE is what is left on nodes
    that are ready and not cordoned; nothing is free of a resource of which more is used and
    reserved than there is (Overcommitted). Below <total> are the sums of tainted nodes, of cordoned
    ones and of those that are not ready. <unplaced> is reserved, but fits no node at present.
    <unknown AppWrappers of NAMESPACE> is reserved for pods that existed when the dispatcher started
    and whose AppWrapper does not exist. A second table has the AppWrappers with pods that
    kube-scheduler refuses, and its reason.
    """
    nodes = node_names(nodes)
    if nodes and total_only:
        raise click.UsageError("--total is the sum of all nodes: omit it, or the names")
    view = asyncio.run(_capacity(source))
    known = {node["name"]: node for node in view["nodes"]}
    missing = [name for name in nodes if name not in known]
    shown = [known[name] for name in nodes if name in known] if nodes else view["nodes"]
    if is_structured(output.form):
        shown = [] if total_only else shown
        echo_form(view | {"nodes": shown}, output.form, shown, headers=not output.no_headers)
    elif output.form == "name":
        echo(f"node/{node['name']}" for node in shown)
    else:
        rows = [] if total_only else list(_node_rows(shown))
        sums = [] if nodes else list(_sum_rows(view))
        rows += sums if total_only else [(*row, "") for row in sums]
        titles = TITLES if total_only else (*TITLES, STATE)
        if rows:
            echo(table(titles, rows, headers=not output.no_headers, palette=output.palette))
        if not nodes and (refused := list(_without_node(view))):
            echo(["", *table(REFUSED, refused, headers=True, palette=output.palette)])
    fail_for_missing(missing, 'no node "{}"; see `kubectl get nodes`')


async def _capacity(source: Source) -> Json:
    everywhere = Scope(all_namespaces=True)
    async with open_figures(environment(), source, everywhere, wants=CAPACITY_REPORTS) as (
        figures,
        _,
    ):
        view = await figures.capacity()
    if view is None:
        raise UnavailableError("; ".join(("the capacity is not stored", *figures.notes)))
    return view


def _node_rows(nodes: list[Json]) -> Iterator[tuple[str, ...]]:
    for node in nodes:
        for row in rows_of(node["name"], node):
            yield (*row, node.get("state", ""))


def _sum_rows(view: Json) -> Iterator[tuple[str, ...]]:
    yield from total_rows(view)
    for namespace, held in view.get("unknownAppWrappers", {}).items():
        yield from _reserved(f"<unknown AppWrappers of {namespace}>", held)


def rows_of(name: str, node: Json) -> Iterator[tuple[str, ...]]:
    """The rows below ``TITLES``: one per resource that the node has or that is used on it."""
    for resource in sorted({key for book in BOOKS for key in node[book]}):
        amounts = (node[book].get(resource, "0") for book in BOOKS)
        yield (name, resource, *(human_amount(resource, amount) for amount in amounts))


def total_rows(view: Json) -> Iterator[tuple[str, ...]]:
    """The rows of all nodes together, and of what fits no node at present."""
    yield from rows_of("<total>", view["total"])
    for one in view.get("apart", ()):  # absent from older dispatchers, as is the state
        yield from rows_of(f"<{one['nodes']} {STATES[one['state']]}>", one)
    yield from _reserved("<unplaced>", view["unplaced"])


def _without_node(view: Json) -> Iterator[tuple[str, ...]]:
    for one in view.get("withoutNode", ()):  # absent from older dispatchers
        yield f"{one['namespace']}/{one['name']}", str(one["pods"]), one["why"]


def _reserved(title: str, reserved: Json) -> Iterator[tuple[str, ...]]:
    for resource, amount in reserved.items():
        yield (title, resource, "0", "0", human_amount(resource, amount), "0")
