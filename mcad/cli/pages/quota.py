"""The page of ``mcad quota NODE`` about one quota node, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mcad.cli.pages.colours import Palette
from mcad.cli.pages.describe import indented, pair
from mcad.cli.pages.human_amounts import human_amount
from mcad.cli.pages.rows import place
from mcad.cli.pages.tables import NONE, UNKNOWN, Row, amounts, table
from mcad.core.state.quota_records import BOOKS

Json = dict[str, Any]

FIGURES = ("RESOURCE", "NOMINAL", "USED", "LEAVING", "RESERVED", "BORROWED", "LENT", "WAITING")
HOLDERS = ("NAMESPACE", "NAME", "LEAF", "STATE", "HOLDS")
QUEUE = ("POSITION", "NAMESPACE", "NAME", "LEAF", "DEMAND", "WAITS-FOR")


def page(node: Json, palette: Palette, *, wide: bool) -> Iterator[str]:
    """All lines about a node, the JSON of ``quota_views.node_steps``."""
    yield pair("Node", node["node"])
    yield pair("Tree", node["tree"])
    yield pair("Path", " < ".join(node["path"]))
    if not node["parent"]:
        limit = "root: its quota is that of the whole tree"
    elif node["hardLimit"]:
        limit = "hard: no borrowing"
    else:
        limit = "may borrow idle quota of other nodes"
    yield pair("Limit", limit)
    yield from _section(
        "Share", FIGURES, ((name, *figures(node, name)) for name in node["nominal"]), palette
    )
    yield from _section("Held by", HOLDERS, map(_holder, node["holders"]), palette)
    queue = QUEUE + ("WHY",) * wide
    yield from _section(
        "Waiting", queue, (_waits(one, wide=wide) for one in node["queue"]), palette
    )


def _section(title: str, columns: Row, rows: Iterable[Row], palette: Palette) -> Iterator[str]:
    lines = list(rows)
    if not lines:
        yield pair(title, NONE)
        return
    yield f"{title}:"
    yield from indented(table(columns, lines, palette=palette))


def figures(node: Json, resource: str) -> Row:
    """The figures of a node in the columns of ``FIGURES``; unknown ones are marked: those that are
    not stored, or that an older dispatcher does not tell."""
    books = (node.get(book) for book in BOOKS)
    return tuple(
        human_amount(resource, book.get(resource, "0")) if book is not None else UNKNOWN
        for book in books
    )


def _holder(one: Json) -> Row:
    """A row of a holder; a deleted AppWrapper with remaining objects has no name."""
    names = (one["namespace"] or UNKNOWN, one["name"] or UNKNOWN, one["leaf"] or UNKNOWN)
    return (*names, one["state"] or UNKNOWN, amounts(one["amounts"]))


def _waits(one: Json, *, wide: bool) -> Row:
    names = (place(one), one["namespace"], one["name"], one["leaf"])
    return (
        *names,
        amounts(one["demand"]),
        one["waitsFor"] or NONE,
        *((one["why"] or NONE,) * wide),
    )
