"""The present version goes on from what each former one has stored, at each of its writes.

The end is that of a run in which one version did everything: nothing is lost, made twice, evicted
twice or forced. Of writes that are alike, in what they are and in which fields they leave, one is
a kill point here, in every fourth push; ``python -m tests.upgrades matrix`` takes all of them.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests import budget
from tests.upgrades.journal import Journal, read
from tests.upgrades.versions import JOURNALS, PATIENT, STORIES, VERSIONS, Version
from tests.upgrades.worlds import Standby, trouble


@cache
def points() -> dict[str, list[tuple[str, Journal, int]]]:
    """The kill points of each version: of those that are alike, in whatever version, the first."""
    known: set[str] = set()
    found: dict[str, list[tuple[str, Journal, int]]] = {}
    for version in VERSIONS:
        found[version.name] = []
        for story, journal in read(version.journal).items():
            for number, mark in enumerate(journal.marks):
                if mark.gist not in known:
                    known.add(mark.gist)
                    found[version.name].append((story, journal, number))
    return found


@pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.name)
def test_what_a_former_version_left_is_brought_to_its_end(version: Version) -> None:
    for story, journal, number in points()[version.name]:
        if not budget.in_part("kill point", journal.marks[number].gist):
            continue
        wrong = trouble(STORIES[story], journal, number)
        assert not wrong, f"{story}: write {number}, {journal.marks[number].request}: {wrong}"


LEADERS = [one for one in VERSIONS if one.has_lease]


@pytest.mark.parametrize("version", [LEADERS[0], LEADERS[-1]], ids=lambda one: one.name)
def test_a_standby_follows_a_leader_of_a_former_version(version: Version) -> None:
    journal = read(version.journal)[PATIENT[0]]
    for number, mark in enumerate(journal.marks):
        wrong = trouble(STORIES[PATIENT[0]], journal, number, Standby)
        assert not wrong, f"write {number}, {mark.request}: {wrong}"


def test_every_version_has_its_journal_and_its_stories() -> None:
    assert {path.name for path in JOURNALS.iterdir()} == {one.journal.name for one in VERSIONS}
    for version in VERSIONS:
        assert tuple(read(version.journal)) == tuple(sorted(version.stories))
    assert sum(map(len, points().values())) > 300
    assert sum(path.stat().st_size for path in JOURNALS.iterdir()) < 500_000


def test_the_first_version_has_no_phase_time_and_no_lease() -> None:
    """So that the journals are those of the versions that they are named after."""
    first, third = (_written(read(JOURNALS / f"{name}.xz")) for name in ("1-intent", "3-lives"))
    assert not {"Lease", "phaseTime", "format"} & first
    assert {"Lease", "phaseTime"} <= third


def _written(journals: dict[str, Journal]) -> set[str]:
    """The kinds that were written, and the fields of ``status.dispatch``."""
    found: set[str] = set()
    for journal in journals.values():
        for _, _, obj in journal.changes:
            found |= {*((obj.get("status") or {}).get("dispatch") or ())}
            if obj["metadata"].get("namespace") != "kube-node-lease":
                found.add(obj.get("kind", ""))
    return found
