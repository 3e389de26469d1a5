"""The page of ``mcad why`` about one AppWrapper (JSON of ``mcad.controller.answer_views``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcad.cli.pages.colours import Palette, printable
from mcad.cli.pages.describe import NAME_WIDTH, indented, pair
from mcad.cli.pages.human_amounts import human_amount
from mcad.cli.pages.rows import place
from mcad.cli.pages.tables import NONE, table

Json = dict[str, Any]


def page(told: Json, palette: Palette, *, with_proof: bool = False) -> Iterator[str]:
    """All lines of the page; ``with_proof``: with the figures of the refusal, node by node."""
    yield pair("Name", told["name"])
    yield pair("Namespace", told["namespace"])
    state = printable(f"{told['state']} ({told['queuejobstate']})")
    yield pair("State", "").ljust(NAME_WIDTH) + palette.state(state)
    yield from _position(told)
    if told["waitsFor"]:
        yield pair("Waits for", told["waitsFor"])
    yield pair("Why", told["why"] or NONE)
    if told.get("scaleUp"):
        yield pair("Scale-up", told["scaleUp"])
    if with_proof:
        yield from _proof(told.get("certificate"), palette)
    yield from _held(told.get("heldBy"), palette)
    if told.get("mayEvict"):
        yield pair("May evict", ", ".join(told["mayEvict"]))
    if told.get("wouldStart") or ("wouldStart" in told and told["position"] and told["waitsFor"]):
        yield from _would_start(told["wouldStart"])
        if not told["allTried"]:
            yield "Not all was tried: too many AppWrappers may be concerned."


def _position(told: Json) -> Iterator[str]:
    """Its place in line, and why each of the first ahead goes before it and waits itself."""
    if not told["position"]:
        yield pair("Position", place(told))
        return
    yield pair("Position", f"{told['position']} of {told['inLine']}, priority {told['priority']}")
    for number, one in enumerate(told["ahead"]):
        waits = f"waits for {one['waitsFor']}" if one["waitsFor"] else "it fits"
        name = f"{one['namespace']}/{one['name']}"
        text = f"{name} (priority {one['priority']}, seen {one['firstSeen']}; {waits})"
        yield pair("Ahead", text) if number == 0 else " " * NAME_WIDTH + printable(text)
    more = told["position"] - 1 - len(told["ahead"])
    if more > 0:
        yield " " * NAME_WIDTH + f"and {more} more"


def _held(held: Json | None, palette: Palette) -> Iterator[str]:
    """The AppWrappers that hold what it lacks, the largest amount first."""
    if held is None:
        return
    resource = held["resource"]
    rows = [
        (one["appwrapper"], human_amount(resource, one["amount"])) for one in held["appwrappers"]
    ]
    if held["more"]:
        rows.append((f"and {held['more']} more", ""))
    if held["others"] != "0":
        rows.append(("other pods", human_amount(resource, held["others"])))
    if rows:
        yield "Held by:"
        yield from indented(table(("APPWRAPPER", resource.upper()), rows, palette=palette))


def _would_start(remedies: list[Json]) -> Iterator[str]:
    if not remedies:
        yield pair("Would start", f"{NONE}: no single change that was tried starts it now")
        return
    yield "Would start it now, each by itself:"
    yield from indented(printable(one["text"]) for one in remedies)


_SAID = {
    "sum": "{requested} of {resource} is requested, and {available} is free on these nodes:",
    "set": "{requested} pods of pod set {podSet}, and room for {available} on these nodes:",
    "together": "Each pod set by itself finds room on these nodes; all together do not:",
    "undecided": "The search for a placement on these nodes was not finished:",
    "quota": "{resource}: {requested} requested; at {tree}/{node} {used} of {nominal} is used.",
    "leaf": "Quota tree {tree} has no leaf {leaf}.",
}
"""By the kind of a proof. A node with less than nothing free counts as nothing."""

_BY_NODES = frozenset({"sum", "set", "together", "undecided"})


def _proof(certificate: Json | None, palette: Palette) -> Iterator[str]:
    if certificate is None:
        yield pair("Proof", f"{NONE}: neither room nor quota refuses it")
        return
    if certificate["proof"] in _BY_NODES and not certificate["nodes"]:
        yield pair("Proof", "No node admits its pods, so there is none to list.")
        return
    yield pair("Proof", _SAID[certificate["proof"]].format_map(certificate))
    names = list(dict.fromkeys(name for one in certificate["nodes"] for name in one["free"]))
    has_pods = certificate["proof"] == "set"
    rows = [
        (
            one["name"],
            *(human_amount(name, one["free"].get(name, "0")) for name in names),
            *([str(one["pods"])] if has_pods else []),
        )
        for one in certificate["nodes"]
    ]
    if rows:
        titles = ("NODE", *map(str.upper, names), *(["PODS THAT FIT"] * has_pods))
        yield from indented(table(titles, rows, palette=palette))
