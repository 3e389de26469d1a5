"""What is used, leaving, reserved and waited for in quota trees: the same everywhere, in random
states of teams that borrow, reclaim and end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mcad.api.wire import to_json
from mcad.cli.commands.capacity import total_rows
from mcad.cli.commands.quota_show import TITLES, rows_of
from mcad.cli.pages.capacity_amounts import number
from mcad.cli.pages.tables import table
from mcad.controller.metrics.cluster import NodeGauges
from mcad.controller.metrics.quota import QuotaGauges
from mcad.controller.quota_views import trees_view
from mcad.controller.views import capacity_view
from mcad.controller.visibility.documents import cluster_report
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN
from mcad.core.state.quantity import format_amount
from mcad.core.state.quota_records import BOOKS
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from mcad.kube.kinds import QUOTA_REPORTS
from mcad.ui.bars import capacity_bars
from mcad.ui.pages import Pages
from tests import budget
from tests.core.bench import Bench
from tests.core.quota.test_usage import bench, of
from tests.core.quotas import GOLD

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.samples import Sample

    from mcad.ui.board import Moment

Json = dict[str, Any]

SEEDS, STATES = 20, 50
TEAMS = {"red": 6000, "blue": 5000, "green": 3000}
SETTINGS = Settings(preemption=True, min_run_time=0, max_evictions_per_minute=0)

Figures = dict[str, dict[str, int]]
"""Milli-CPU by book and node; zeros are left out."""


def _kind(made: Bench, entry: Entry) -> str:
    """By what the AppWrapper itself says, not by how it is charged."""
    if entry.uid in made.dispatcher.cluster.reservations:
        return "reserved"
    return "leaving" if entry.phase in TEARING_DOWN and not entry.keeps_room else "used"


def naive(made: Bench) -> Figures:
    """Added up from AppWrappers."""
    cluster = made.dispatcher.cluster
    found: dict[str, Counter[str]] = {book: Counter() for book in BOOKS}
    found["nominal"].update({"root": sum(TEAMS.values()), **TEAMS})
    for uid, entry in cluster.entries.items():
        demand = sum(dict(one.request)["cpu"] * one.replicas for one in entry.workload.sets)
        at = ("root", dict(entry.workload.quota)[GOLD])
        if entry in cluster.waiting.queue:
            found["waiting"].update(dict.fromkeys(at, demand))
        if uid in cluster.forest.charges:
            kind = _kind(made, entry)
            for book in {"reserved": ["reserved"], "leaving": ["allocated", "leaving"]}.get(
                kind, ["allocated"]
            ):
                found[book].update(dict.fromkeys(at, demand))
    found["borrowed"] = found["allocated"] - found["nominal"]
    return {book: dict(+sums) for book, sums in found.items()}


def answered(made: Bench) -> Json:
    """The trees as the visibility API answers them; the HTTP port has the same object."""
    view = trees_view(made.dispatcher.cluster, enabled=True)
    status: Json = json.loads(cluster_report(QUOTA_REPORTS, to_json(view)))["status"]
    return status


def served(view: Json) -> Figures:
    """What the API says."""
    found: Figures = {book: {} for book in BOOKS}
    for one in view["trees"][0]["nodes"]:
        for book in BOOKS:
            _note(found, book, one["node"], one[book].get("cpu", "0"))
    return found


def typed(view: Json) -> Figures:
    """What ``mcad quota`` prints, read from its table."""
    titles, *lines = table(TITLES, rows_of(view["trees"][0], wide=False), headers=True)
    columns = [COLUMNS.get(title, title.lower()) for title in titles.split()]
    return _from_rows(columns, (line.split() for line in lines))


COLUMNS = {"USED": "allocated", "Used": "allocated"}


def drawn(pages: Pages, view: Json, number: int) -> Figures:
    """What the page shows, read from its table."""
    moment = SimpleNamespace(version=number, quota=view)
    reader = _Table()
    reader.feed(pages._part("quota", cast("Moment", moment), None))
    titles, *rows = reader.rows
    return _from_rows([COLUMNS.get(title, title.lower()) for title in titles], rows)


class _Table(HTMLParser):
    """The cells of a table, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._is_cell = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._is_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_cell = self._is_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._is_cell:
            self.rows[-1][-1] += data.strip()


def _from_rows(columns: list[str], rows: Iterable[list[str]]) -> Figures:
    found: Figures = {book: {} for book in BOOKS}
    for row in rows:
        cells = dict(zip(columns, row, strict=True))
        assert cells["resource"] == "cpu"
        for book in BOOKS:
            _note(found, book, cells["node"], cells[book])
    return found


def _note(found: Figures, book: str, node: str, amount: str) -> None:
    if amount != "0":
        found[book][node] = _milli(amount)


def _milli(amount: str) -> int:
    return int(amount[:-1]) if amount.endswith("m") else int(amount) * 1000


def measured(made: Bench) -> Figures:
    """What the metrics say."""
    found: Figures = {book: {} for book in BOOKS}
    for book, sample in _samples(QuotaGauges(made.dispatcher.cluster).metrics(), "mcad_quota_"):
        if book in found and sample.value:
            found[book][sample.labels["node"]] = round(sample.value * 1000)
    return found


def _samples(families: Iterable[Metric | None], prefix: str) -> Iterator[tuple[str, Sample]]:
    for family in families:
        for sample in family.samples if family is not None else ():
            if family is not None and family.name.startswith(prefix):
                yield family.name.removeprefix(prefix), sample


def written(made: Bench) -> Figures:
    """As the statuses of QuotaSubtrees have them."""
    found: Figures = {book: {} for book in BOOKS}
    for status in made.quota_status.values():
        for one in status.children:
            for book in BOOKS:
                amount = dict(getattr(one, book)).get("cpu", 0)
                if amount:
                    found[book][one.name] = amount
    return found


def states(seed: int) -> Iterator[Bench]:
    """A history of a cluster in which most AppWrappers fit by nodes, and shares run out. It begins
    with a loan that its owner asks back: chance alone leaves many histories without reclaim."""
    rng, number = Random(seed), 0
    made = bench(sum(TEAMS.values()), SETTINGS, **TEAMS)
    made.graceful = True
    made.settle()
    _lend_all(made, *rng.sample([*TEAMS], 2))
    for _ in range(STATES):
        running = [uid for uid, one in made.dispatcher.cluster.entries.items() if one.dispatch]
        match rng.choice(("submit", "submit", "delete", "bind", "wait")):
            case "submit":
                number += 1
                sizes = [rng.choice((500, 1000, 2500))] * rng.randint(1, 2)
                work = of(rng.choice([*TEAMS]), f"w{number}", *sizes, priority=rng.randint(0, 2))
                made.submit(work)
                made.decide()
            case "delete" if running:
                made.delete(rng.choice(running))
                made.decide()
            case "bind":
                _bind(made, lambda: rng.choice((0, 5, 60)))
            case _:
                made.advance(rng.choice((0.2, 1, 12)))
        yield made


def _lend_all(made: Bench, borrower: str, owner: str) -> None:
    """One team uses the whole tree; then another asks for a part of its share."""
    for one in range(sum(TEAMS.values()) // 2000):
        made.submit(of(borrower, f"lent{one}", 2000))
    made.settle()
    _bind(made, lambda: 60)
    made.submit(of(owner, "owned", 2500))
    made.decide()


def _bind(made: Bench, grace: Callable[[], int]) -> None:
    for ref, thing in list(made.things.items()):
        if not thing.node:
            thing.grace = grace() * SECOND
            made.bind(ref.name)


@pytest.mark.drawn
def test_commands_page_api_metrics_and_statuses_agree_on_every_figure() -> None:
    seen: Counter[str] = Counter()
    pages = Pages()
    seeds = budget.draw(range(SEEDS), budget.examples(SEEDS), "figures")
    for seed in seeds:
        for made in states(seed):
            expected, view = naive(made), answered(made)
            shown = served(view)
            assert shown | {"lent": {}} == expected
            assert typed(view) == drawn(pages, view, seen["states"]) == measured(made) == shown
            agree_on_nodes(made)
            seen.update(book for book, sums in shown.items() if sums)
            seen["beside"] += bool(shown["leaving"] and shown["reserved"])
            seen["states"] += 1
        made.advance(3)
        assert written(made) == served(answered(made))
    assert seen["states"] == len(seeds) * STATES
    assert min(seen.values()) > len(seeds), seen


# -- nodes ---------------------------------------------------------------------------------------

NODE_BOOKS = ("allocatable", "used", "reserved", "free")


def agree_on_nodes(made: Bench) -> None:
    """Commands, page, API and metrics have the same sums over the nodes: what is used and reserved
    of them, and what is free."""
    view = capacity_view(made.dispatcher.cluster)
    bound = Counter({"cpu": 0})
    for thing in made.things.values():
        bound.update({"cpu": dict(thing.request)["cpu"] if thing.node else 0})
    said = {book: number(view["total"], "cpu", book) for book in NODE_BOOKS}
    assert said["used"] == bound["cpu"]
    assert said["allocatable"] == sum(said[book] for book in NODE_BOOKS[1:])
    (row,) = (row for row in total_rows(view) if row[:2] == ("<total>", "cpu"))
    assert [_milli(cell) for cell in row[2:]] == [*said.values()]
    (bar,) = (bar for bar in capacity_bars(view) if bar.resource == "cpu")
    assert {book: _milli(amount) for book, amount in bar.amounts.items()} == said
    samples = _samples(NodeGauges(made.dispatcher.cluster).metrics(), "mcad_cluster_")
    measured = {
        book: round(one.value * 1000) for book, one in samples if one.labels["resource"] == "cpu"
    }
    assert {book: measured[book] for book in NODE_BOOKS} == said


def test_amounts_are_read_as_they_are_written() -> None:
    assert [_milli(format_amount("cpu", n)) for n in (1, 999, 1000, 2500)] == [1, 999, 1000, 2500]
