"""``mcad quota show``: quota trees with their figures, or one node with its holders and queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import click
from msgspec import Struct

from mcad.cli.arguments.completion_candidates import complete_trees
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.options import Output, output_options, source_options
from mcad.cli.errors import INTERRUPTED, warn
from mcad.cli.live.watch_printer import Notes, until_reader_leaves
from mcad.cli.pages.output_forms import echo_form, is_structured, is_template
from mcad.cli.pages.quota import FIGURES, figures, page
from mcad.cli.pages.tables import Columns, Row, echo, echo_structured
from mcad.client.errors import NotFoundError
from mcad.client.figures.figures import warn_of_notes
from mcad.client.figures.quota_trees import read_trees, warnings_of
from mcad.client.figures.source import follow_figures, open_figures
from mcad.client.scope import Scope, Source
from mcad.core.state.spelling import ALIKE_MAX, did_you_mean
from mcad.kube.kinds import QUOTA_REPORTS

Json = dict[str, Any]

EVERYWHERE = Scope(all_namespaces=True)
TITLES = ("TREE", "NODE", *FIGURES)
WIDE_TITLES = ("PARENT", "LIMIT")
INDENT = "  "


class Place(Struct, frozen=True):
    """What is shown: all trees, one tree (``node`` is ""), or one node."""

    tree: str = ""
    node: str = ""


@click.command()
@click.argument(
    "name", metavar="[TREE | NODE | TREE/NODE]", default="", shell_complete=complete_trees
)
@source_options
@click.option("-w", "--watch", is_flag=True, help="Print rows again as they change, until Ctrl-C.")
@output_options("json", "yaml", "wide")
def show(name: str, source: Source, watch: bool, output: Output) -> None:  # noqa: FBT001 - click passes it by name
    """Show quota trees with their figures, or one node with its holders and its queue.

    NOMINAL is the quota of a node, USED what is in use at it or below, LEAVING the part of USED
    that is being torn down, RESERVED what is kept beside USED for AppWrappers that wait until
    others have left, BORROWED the part of USED above NOMINAL, LENT the part of NOMINAL that nodes
    under the same parent use, WAITING the demand of its queue. If a tree and a node have the same
    name, the tree is shown; TREE/NODE is the node.

    With --watch a row is printed again when one of its figures has changed.
    """
    if not watch:
        asyncio.run(_print_once(name, source, output))
        return
    if is_template(output.form):
        raise click.UsageError("--watch excludes -o jsonpath and -o custom-columns")
    try:
        asyncio.run(until_reader_leaves(_watch(name, source, output)))
    except KeyboardInterrupt:  # which is how a watch ends
        raise click.exceptions.Exit(INTERRUPTED) from None


async def _print_once(name: str, source: Source, output: Output) -> None:
    looking = open_figures(environment(), source, EVERYWHERE, may_narrow=True, wants=QUOTA_REPORTS)
    async with looking as (read, _):
        trees = await read_trees(read)
        place = find(name, trees)
        node = await read.quota_node(place.tree, place.node) if place.node else None
    warn_of_notes(read)
    if place.node:
        _print_node(node, place, output)
        return
    shown = [tree for tree in trees if place.tree in ("", tree["tree"])]
    _warn_of_faults(shown)
    if is_structured(output.form):
        nodes = [{"tree": tree["tree"]} | node for tree in shown for node in tree["nodes"]]
        value = shown[0] if place.tree else {"trees": shown}
        echo_form(value, output.form, nodes, headers=not output.no_headers)
    else:
        rows = [row for tree in shown for row in rows_of(tree, wide=output.form == "wide")]
        columns = Columns(titles(wide=output.form == "wide"), output.palette)
        echo(columns.lines(rows, headers=not output.no_headers) if rows else [])


def find(name: str, trees: list[Json]) -> Place:
    """The tree or node of a name; ``NotFoundError`` suggests similar names."""
    if not name:
        return Place()
    nodes = [(tree["tree"], node["node"]) for tree in trees for node in tree["nodes"]]
    if name in (tree["tree"] for tree in trees):
        return Place(name)
    found = [place for place in nodes if name in (place[1], "/".join(place))]
    if len(found) > 1:
        names = ", ".join(map("/".join, found))
        raise click.UsageError(f"{name} is a node of several trees: write one of {names}")
    if found:
        return Place(*found[0])
    hint = _did_you_mean(name, nodes) or "`mcad quota` lists them."
    raise NotFoundError(f'no quota tree or node "{name}". {hint}')


def _did_you_mean(name: str, nodes: list[tuple[str, str]]) -> str:
    """Trees and nodes with similar names; for TREE/NODE, nodes of that tree."""
    tree, slash, node = name.partition("/")
    if slash and any(tree == one for one, _ in nodes):
        return did_you_mean(node, [n for t, n in nodes if t == tree], ALIKE_MAX)
    return did_you_mean(name, [each for place in nodes for each in place], ALIKE_MAX)


def _warn_of_faults(trees: list[Json]) -> None:
    for text in warnings_of(trees):
        warn(text)


# -- rows ----------------------------------------------------------------------------------------


def titles(*, wide: bool) -> Row:
    """The column titles."""
    return TITLES + WIDE_TITLES * wide


def rows_of(tree: Json, *, wide: bool) -> Iterator[Row]:
    """One row per node and resource, children indented below the parent."""
    depth: dict[str, int] = {}
    for node in tree["nodes"]:
        depth[node["node"]] = depth.get(node["parent"], -1) + 1
        title = INDENT * depth[node["node"]] + node["node"]
        is_hard = node["hardLimit"] or not node["parent"]
        more = (node["parent"] or "<root>", "hard" if is_hard else "borrows") * wide
        for resource in tree["resources"]:
            yield (tree["tree"], title, resource, *figures(node, resource), *more)


def _print_node(node: Json | None, place: Place, output: Output) -> None:
    if node is None:
        raise NotFoundError(f'node "{place.node}" of tree "{place.tree}" has just been deleted')
    if is_structured(output.form):
        echo_form(node, output.form, headers=not output.no_headers)
    else:
        echo(page(node, output.palette, wide=output.form == "wide"))


# -- as it changes -------------------------------------------------------------------------------


async def _watch(name: str, source: Source, output: Output) -> None:
    notes, printer = Notes(), _RowPrinter(output)
    following = follow_figures(
        environment(), source, EVERYWHERE, may_narrow=True, wants=QUOTA_REPORTS
    )
    async with following as (feed, _):
        place: Place | None = None
        while True:
            read = await feed.next()
            notes.mention(feed.trouble)
            notes.note(read.notes)
            if place is None:
                place = find(name, await read_trees(read))
            printer.show((await read.quota())["trees"], place)


def _only(tree: Json, place: Place) -> Json:
    """The tree with one node, or with all."""
    if not place.node:
        return tree
    return tree | {"nodes": [one for one in tree["nodes"] if one["node"] == place.node]}


class _RowPrinter:
    """Prints rows that have changed."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._wide = output.form == "wide"
        self._columns = Columns(titles(wide=self._wide), output.palette)
        self._headers = not output.no_headers
        self._last: dict[Any, Any] = {}

    def show(self, all_trees: list[Json], place: Place) -> None:
        """Print the rows that have changed, or the trees for json and yaml."""
        trees = [_only(one, place) for one in all_trees if place.tree in ("", one["tree"])]
        if self._output.form in ("json", "yaml"):
            for tree in self._news({tree["tree"]: tree for tree in trees}):
                echo(["---"] * (self._output.form == "yaml"))
                echo_structured(tree, self._output.form)
            return
        rows = (row for tree in trees for row in rows_of(tree, wide=self._wide))
        news = self._news({row[:3]: row for row in rows})
        if news:
            echo(self._columns.lines(news, headers=self._headers))
            self._headers = False

    def _news(self, now: dict[Any, Any]) -> list[Any]:
        last, self._last = self._last, now
        return [one for key, one in now.items() if last.get(key) != one]
