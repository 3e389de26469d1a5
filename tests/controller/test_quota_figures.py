"""What is used, leaving, reserved and waited for in quota trees: the same everywhere, in random
states of teams that borrow, reclaim and end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

from mcad.controller.metrics.quota import QuotaGauges
from mcad.controller.quota_views import BOOKS, trees_view
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN
from mcad.core.state.quantity import format_amount
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import Bench
from tests.core.quota.test_usage import bench, of
from tests.core.quotas import GOLD

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


def viewed(made: Bench) -> Figures:
    """As the HTTP port, the visibility API, the page and the commands have them."""
    (tree,) = trees_view(made.dispatcher.cluster, enabled=True)["trees"]
    found: Figures = {book: {} for book in BOOKS}
    for one in tree["nodes"]:
        for book in BOOKS:
            amount = one[book].get("cpu", "0")
            if amount != "0":
                found[book][one["node"]] = _milli(amount)
    return found


def _milli(amount: str) -> int:
    return int(amount[:-1]) if amount.endswith("m") else int(amount) * 1000


def measured(made: Bench) -> Figures:
    """As metrics."""
    found: Figures = {book: {} for book in BOOKS}
    for family in QuotaGauges(made.dispatcher.cluster).metrics():
        book = family.name.removeprefix("mcad_quota_") if family is not None else ""
        for sample in family.samples if family is not None and book in found else ():
            if sample.value:
                found[book][sample.labels["node"]] = round(sample.value * 1000)
    return found


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
    """A history of a cluster in which most AppWrappers fit by nodes, and shares run out."""
    rng, number = Random(seed), 0
    made = bench(sum(TEAMS.values()), SETTINGS, **TEAMS)
    made.graceful = True
    made.settle()
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
                for ref, thing in list(made.things.items()):
                    if not thing.node:
                        thing.grace = rng.choice((0, 5, 60)) * SECOND
                        made.bind(ref.name)
            case _:
                made.advance(rng.choice((0.2, 1, 12)))
        yield made


def test_commands_page_metrics_and_statuses_agree_on_every_figure() -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        for made in states(seed):
            expected = naive(made)
            shown = viewed(made)
            assert shown | {"lent": {}} == expected
            assert measured(made) == shown
            seen.update(book for book, sums in shown.items() if sums)
            seen["beside"] += bool(shown["leaving"] and shown["reserved"])
            seen["states"] += 1
        made.advance(3)
        assert written(made) == viewed(made)
    assert seen["states"] == SEEDS * STATES
    assert min(seen.values()) > SEEDS, seen


def test_amounts_are_read_as_they_are_written() -> None:
    assert [_milli(format_amount("cpu", n)) for n in (1, 999, 1000, 2500)] == [1, 999, 1000, 2500]
