"""From figures to HTML: whole pages, and their parts as they are sent to open pages.

A part has the same text as long as its figures are the same: ages are written by the script of the
page, from the instants in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from secrets import token_hex
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from mcad.api.list_page import WAITING
from mcad.api.wire import as_map
from mcad.cli.pages.capacity_amounts import STATES
from mcad.cli.pages.human_amounts import human_amount
from mcad.cli.pages.reservation_lines import eviction, kept_off, reservation_facts
from mcad.cli.pages.rows import place
from mcad.cli.pages.start_times import start_column, start_lines
from mcad.cli.pages.tables import amounts
from mcad.client.figures.presence import Presence
from mcad.ui.bars import NODES_SHOWN, capacity_bars, node_cells, quota_rows
from mcad.ui.board import Moment
from mcad.ui.details import Details, Told
from mcad.ui.history import HEIGHT, WIDTH, lines
from mcad.ui.pods import PODS_SHOWN, OnePod, Pod
from mcad.ui.rows import PAGE_ROWS, Query, Shown
from mcad.version import __version__

Json = dict[str, Any]

PARTS = ("health", "capacity", "history", "nodes", "quota", "evictions", "queue")
"""The parts of a page that are sent when they change."""


class Pages:
    """Renders pages and parts; each part once for all pages with the same query."""

    def __init__(self, user: str = "") -> None:
        """``user`` is the name of a caller with a login; "" is the owner of the kubeconfig."""
        self._jinja = _templates()
        self._user = user
        self._mark = token_hex(4)  # a page of another process, or of another login, has another one
        self._version = -1
        self._known: dict[tuple[str, Query | None], str] = {}
        self.rendered = 0  # parts, for tests

    async def parts(self, moment: Moment, query: Query) -> dict[str, str]:
        """The parts of the page for a query, as HTML."""
        if moment.version != self._version:
            self._version, self._known = moment.version, {}
        is_known = moment.version == self._version and ("queue", query) in self._known
        found = await moment.listing.shown(query) if not is_known else None
        common = {name: self._part(name, moment, None) for name in PARTS[:-1]}
        return common | {"queue": self._part("queue", moment, query, found)}

    def _part(
        self, name: str, moment: Moment, query: Query | None, found: Shown | None = None
    ) -> str:
        key = (name, query)
        if moment.version == self._version and key in self._known:
            return self._known[key]
        self.rendered += 1
        values = _queue(moment, query, found) if query and found else _COMMON[name](moment)
        text = self._jinja.get_template(f"{name}.html").render(values)
        if moment.version == self._version:
            self._known[key] = text
        return text

    def page(
        self, moment: Moment, query: Query, parts: Mapping[str, str], details: Details | None = None
    ) -> str:
        """A whole page, with a drawer if ``details`` are given."""
        return self._render(
            "page.html",
            user=self._user,
            titled=f"{details.title} - mcad" if details is not None else "mcad",
            parts=parts,
            query=query,
            seen=f"{self._mark}-{moment.version}",
            choices=_choices(moment),
            drawer=self.drawer(moment, query, details) if details is not None else "",
        )

    def version_of(self, seen: str) -> int:
        """The version of the figures that a page was rendered from, -1 if it is not of here."""
        mark, _, number = seen.partition("-")
        is_number = number.isascii() and number.isdigit() and len(number) < 16
        return int(number) if mark == self._mark and is_number else -1

    def drawer(self, moment: Moment, query: Query, details: Details) -> str:
        """One AppWrapper."""
        facts = self.facts(moment, query, details)
        return self._render("drawer.html", one=details, query=query, facts=facts)

    def facts(self, moment: Moment, query: Query, details: Details) -> str:
        """The part of the drawer that changes with the figures."""
        detail = details.detail or {}
        starts = detail.get("starts")  # absent from older dispatchers
        return self._render(
            "facts.html",
            one=details,
            query=query,
            starts=list(start_lines(starts, moment.at_us)) if starts else [],
            reserved=_reservation(detail),
        )

    def answer(self, told: Json | None, problem: str = "") -> str:
        """What blocks an AppWrapper and what would start it, or why that is not known."""
        return self._render("answer.html", told=told, problem=problem)

    def told(self, found: Sequence[Told]) -> str:
        """The Events about an AppWrapper or a pod."""
        return self._render("events.html", found=found)

    def pods(self, row: Json, found: Sequence[Json]) -> str:
        """The pods of an AppWrapper, with links to their logs."""
        pods, more = list(map(Pod.of, found[:PODS_SHOWN])), max(len(found) - PODS_SHOWN, 0)
        return self._render("pods.html", row=row, pods=pods, more=more)

    def pod(self, row: Json, one: OnePod) -> str:
        """A pod of an AppWrapper with a log."""
        events = self.told(one.events or ())
        return self._render("pod.html", row=row, one=one, events=events)

    def manifest(self, text: str, *, is_cut: bool) -> str:
        """YAML."""
        return self._render("manifest.html", text=text, is_cut=is_cut)

    def problem(self, text: str) -> str:
        """Why a part is not shown."""
        return self._render("problem.html", problem=text)

    def login(self, problem: str = "", *, needs_token: bool, back: str = "", user: str = "") -> str:
        """The form of a login; ``user`` is the name of a caller with a login."""
        return self._render(
            "login.html", problem=problem, needs_token=needs_token, back=back, user=user
        )

    def single(self, title: str, text: str, *, is_html: bool = False) -> str:
        """A page of one text: an answer without script, or what is wrong."""
        return self._render("single.html", title=title, content=text, is_html=is_html)

    def _render(self, name: str, **values: Any) -> str:
        return self._jinja.get_template(name).render(values)


@cache
def _templates() -> Environment:
    """The templates, which all callers share; figures are not kept in them."""
    made = Environment(
        loader=PackageLoader("mcad.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "amounts": amounts,
        "human": lambda amount, resource: human_amount(resource, amount),
        "place": place,
        "path": _path,
    }
    made.globals |= {"version": __version__, "size": PAGE_ROWS}
    return made


def instant(at_us: int) -> str:
    """RFC 3339, in seconds."""
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).isoformat().replace("+00:00", "Z")


def _reservation(detail: Json) -> list[tuple[str, str]]:
    """Its reservation, the reservations in its way, and its last eviction."""
    lines = [("Kept off by", told) for told in kept_off(detail)]
    if evicted := as_map(detail.get("eviction")):
        lines.append(("Evicted", eviction(evicted, str)))
    if detail.get("scaleUp"):
        lines.append(("Scale-up", detail["scaleUp"]))
    if reservation := as_map(detail.get("reservation")):
        lines += [
            ("Reservation", f"{key}: {text}") for key, text in reservation_facts(reservation, str)
        ]
    return lines


def _path(row: Json) -> str:
    return f"/appwrappers/{quote(row['namespace'], '')}/{quote(row['name'], '')}"


def _choices(moment: Moment) -> Json:
    """What the filters offer."""
    trees = (moment.quota or {}).get("trees", [])
    return {
        "namespaces": moment.listing.facts.namespaces,
        "states": [WAITING, *moment.listing.facts.states],
        "leaves": [f"{tree['tree']}/{node['node']}" for tree in trees for node in tree["nodes"]],
    }


def _health(moment: Moment) -> Json:
    facts = moment.listing.facts
    return {
        "is_stored": moment.figures.is_stored,
        "leader": moment.leader,
        "leads": moment.leader.presence is Presence.RUNNING,
        "absent": moment.leader.presence is Presence.ABSENT,
        "namespace": moment.namespace,
        "notes": _notes(moment),
        "trouble": moment.trouble,
        "at": instant(moment.at_us) if moment.trouble else "",
        "counts": [
            ("in line", facts.in_line),
            ("on hold", facts.on_hold),
            *sorted(facts.others.items()),
        ],
    }


def _notes(moment: Moment) -> list[str]:
    """Warnings about all figures; figures that are asked do not mention a pause themselves."""
    notes, paused = list(moment.figures.notes), moment.listing.facts.paused
    return [*notes, paused] if paused and paused not in notes else notes


def _capacity(moment: Moment) -> Json:
    view = moment.capacity
    return {
        "known": view is not None,
        "bars": capacity_bars(view) if view is not None else [],
        "apart": [{**one, "what": STATES[one["state"]]} for one in (view or {}).get("apart", ())],
        "unplaced": view["unplaced"] if view is not None else {},
    }


def _nodes(moment: Moment) -> Json:
    view = moment.capacity
    count = len(view["nodes"]) if view is not None else 0
    cells = node_cells(view) if view is not None else []
    return {"count": count, "cells": cells, "more": max(count - NODES_SHOWN, 0)}


def _quota(moment: Moment) -> Json:
    trees = (moment.quota or {}).get("trees", [])
    return {"trees": [{**tree, "rows": list(quota_rows(tree))} for tree in trees]}


def _history(moment: Moment) -> Json:
    charts = lines(moment.history)
    since = instant(moment.history[0].at_us) if charts else ""
    return {"lines": charts, "since": since, "width": WIDTH, "height": HEIGHT}


def _evictions(moment: Moment) -> Json:
    return {"found": moment.listing.facts.evictions}


_COMMON = {
    "health": _health,
    "capacity": _capacity,
    "history": _history,
    "nodes": _nodes,
    "quota": _quota,
    "evictions": _evictions,
}


def _queue(moment: Moment, query: Query, found: Shown) -> Json:
    starts = [start_column(row.get("starts"), moment.at_us) for row in found.rows]
    return {"rows": found.rows, "facts": found.facts, "starts": starts, "query": query}
