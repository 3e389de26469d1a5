"""Capacity, nodes and quota as what the templates draw: shares in percent, texts for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from mcad.cli.pages.capacity_amounts import in_order, number
from mcad.cli.pages.human_amounts import human_amount
from mcad.core.state.quantity import CPU, MILLIS, UNITS, parse_quantity
from mcad.core.state.quota_records import BOOKS

Json = dict[str, Any]

NODES_SHOWN = 400
HEAT_LEVELS = 4  # 0 is below a quarter, 4 is full
UNKNOWN = "?"


class Bar(Struct, frozen=True):
    """One resource: shares of the bar in percent, and the amounts."""

    resource: str
    used: float
    reserved: float
    over: bool
    amounts: dict[str, str]


class Cell(Struct, frozen=True):
    """One node: the share of its scarcest resource in percent, all shares as text, and whether it
    takes pods."""

    name: str
    percent: int
    level: int
    text: str
    state: str = ""  # where it is not simply ready


class QuotaRow(Struct, frozen=True):
    """One resource of a quota node; ``first`` is the first row of the node."""

    node: str
    depth: int
    first: bool
    is_leaf: bool
    is_hard: bool
    resource: str
    share: float
    over: bool
    amounts: dict[str, str]


def capacity_bars(capacity: Json) -> list[Bar]:
    """A bar for each resource that the nodes have."""
    total = capacity["total"]
    return [_bar(total, name) for name in in_order(total["allocatable"]) if number(total, name) > 0]


def _bar(total: Json, name: str) -> Bar:
    whole = number(total, name)
    used = _percent(number(total, name, "used"), whole)
    reserved = min(_percent(number(total, name, "reserved"), whole), 100 - used)
    books = ("allocatable", "used", "reserved", "free")
    texts = {book: human_amount(name, total[book].get(name, "0")) for book in books}
    return Bar(name, used, reserved, number(total, name, "used") > whole, texts)


def node_cells(capacity: Json) -> list[Cell]:
    """The first nodes, in the order of the figures."""
    return [_cell(node) for node in capacity["nodes"][:NODES_SHOWN]]


def _cell(node: Json) -> Cell:
    shares = {
        name: _percent(number(node, name, "used") + number(node, name, "reserved"), whole)
        for name in in_order(node["allocatable"])
        if (whole := number(node, name)) > 0
    }
    most = round(max(shares.values(), default=0))
    text = ", ".join(f"{name} {share:.0f} %" for name, share in shares.items())
    state = "" if node.get("state", "Ready") == "Ready" else node["state"]
    return Cell(node["name"], most, min(most * HEAT_LEVELS // 100, HEAT_LEVELS), text, state)


def quota_rows(tree: Json) -> Iterator[QuotaRow]:
    """The rows of a tree, each node before its children."""
    for node in tree["nodes"]:
        for place, resource in enumerate(tree["resources"]):
            yield _quota_row(node, resource, first=place == 0)


def _quota_row(node: Json, resource: str, *, first: bool) -> QuotaRow:
    books = {book: node.get(book) for book in BOOKS}
    nominal, used = _amount(books["nominal"], resource), _amount(books["allocated"], resource)
    return QuotaRow(
        node=node["node"],
        depth=min(len(node["path"]) - 1, 6),
        first=first,
        is_leaf=node["leaf"],
        is_hard=node["hardLimit"],
        resource=resource,
        share=_percent(used, nominal),
        over=used > nominal,
        amounts={book: _text(amounts, resource) for book, amounts in books.items()},
    )


def _amount(amounts: Mapping[str, str] | None, resource: str) -> int:
    scale = MILLIS if resource == CPU else UNITS
    return parse_quantity((amounts or {}).get(resource, "0"), scale, negative=True)


def _text(amounts: Mapping[str, str] | None, resource: str) -> str:
    return UNKNOWN if amounts is None else human_amount(resource, amounts.get(resource, "0"))


def _percent(part: int, whole: int) -> float:
    """At most 100, with one decimal; 0 of nothing, and 100 of more than that."""
    if whole <= 0:
        return 100.0 if part > 0 else 0.0
    return round(min(max(100 * part / whole, 0.0), 100.0), 1)
