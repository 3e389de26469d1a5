"""``mcad history --journal``: what ended in random lives, with every attempt."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcad.cli.main import main
from mcad.client.history.ended import Ended
from mcad.client.history.journal import DELETED, journal_history
from mcad.core.commands import WriteStatus
from mcad.core.events import AppWrapperGone, AppWrapperSeen
from mcad.core.state.model import Dialect, PodPhase
from mcad.core.state.reasons import ConditionType, State
from mcad.core.state.settings import Settings
from mcad.core.state.status_view import StatusView
from mcad.core.state.units import SECOND
from mcad.journal.reader import sessions
from mcad.journal.replay import Made, replay
from mcad.journal.writer import Limits
from tests import budget
from tests.core.bench import Bench, node, workload
from tests.journal.recording import LARGE, SMALL, flush, recorded_bench

Json = dict[str, Any]
SUBMITTED = 30


def life(folder: Path, seed: int, limits: Limits = LARGE) -> None:
    """A life in which AppWrappers complete, fail, are held and released, and are deleted."""
    rng, settings = Random(seed), Settings(preemption=seed % 2 == 0, min_run_time=0)
    nodes = [node(f"n{number}", rng.randint(300, 900)) for number in range(3)]
    bench = recorded_bench(folder, settings, f"leader-{seed}", limits, nodes=nodes)
    for number in range(SUBMITTED):
        sizes = [rng.randint(10, 300) for _ in range(rng.randint(1, 2))]
        space = f"team-{number % 2}"
        limit = rng.choice((0, 50 * SECOND))
        given = {"namespace": space, "dialect": Dialect.V1BETA2, "run_limit": limit}
        bench.start(workload(f"w{number}", *sizes, priority=rng.randint(0, 2), **given))
        for _ in range(rng.randint(0, 3)):
            _happen(bench, rng)
        bench.advance(rng.choice((0, 1, 30)))
        flush(bench.dispatcher.journal)
    bench.dispatcher.journal.close()


def _happen(bench: Bench, rng: Random) -> None:
    """One thing that users, pods or the machine of the dispatcher do."""
    names = sorted(ref.name for ref in bench.things)
    uid = rng.choice(sorted(bench.works)) if bench.works else ""
    match rng.choice(("ends", "ends", "ends", "fails", "held", "deleted", "killed")):
        case "ends" if names:
            bench.change(rng.choice(names), node="n0", phase=PodPhase.SUCCEEDED)
        case "fails" if names:
            bench.change(rng.choice(names), node="n0", phase=PodPhase.FAILED)
        case "held" if uid:
            bench.edit(uid, suspended=not bench.works[uid].suspended)
        case "deleted" if uid and rng.random() < 0.3:
            bench.delete(uid)
        case "killed" if rng.random() < 0.3:
            bench.crash()
    bench.settle()


ENDS = {State.COMPLETED: ConditionType.COMPLETED, State.FAILED: ConditionType.FAILED}


def history(folder: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["history", "--journal", str(folder), *args])


def told(folder: Path, *args: str) -> list[Json]:
    result = history(folder, *args, "-o", "json")
    assert result.exit_code == 0, result.output
    found: list[Json] = json.loads(result.stdout)["items"]
    return found


class Seen:
    """What a reader of all steps would write down about AppWrappers, by uid."""

    def __init__(self, folder: Path) -> None:
        self.last: dict[str, StatusView] = {}
        self.begun: dict[tuple[str, int], int] = {}  # by attempt
        self.gone: dict[str, int] = {}
        self.names: dict[str, str] = {}
        found, wrong = sessions(folder)
        assert wrong == []
        for session in found:
            for made in replay(session):
                assert isinstance(made, Made)
                self._step(made)

    def _step(self, made: Made) -> None:
        event = made.step.event
        if isinstance(event, AppWrapperSeen):
            self.names[event.workload.uid] = event.workload.name
        elif isinstance(event, AppWrapperGone) and event.uid in self.names:
            self.gone[event.uid] = made.step.now
        for command in made.commands:
            if isinstance(command, WriteStatus):
                self.last[command.uid] = command.status
                record = command.status.dispatch
                if record is not None:
                    self.begun.setdefault((command.uid, record.attempt), record.since)


@pytest.mark.parametrize("seed", budget.slow_but_first(range(12)))
def test_every_end_of_a_random_life_is_told_with_all_attempts(seed: int, tmp_path: Path) -> None:
    life(tmp_path, seed, SMALL if seed % 4 == 0 else LARGE)
    seen = Seen(tmp_path)
    found, wrong = journal_history(tmp_path)
    assert wrong == []
    by_uid = {one.uid: one for one in found}
    ended = {uid for uid, status in seen.last.items() if status.state in {*ENDS, State.DELETED}}
    assert set(by_uid) == ended | (seen.gone.keys() & seen.names.keys())
    for uid in ended:
        _compare(by_uid[uid], seen)
    for uid in seen.gone.keys() - ended:
        one = by_uid[uid]
        assert (one.state, one.reason, one.ended) == (State.DELETED, DELETED, seen.gone[uid])
    for one in found:
        begun = [run.begun for run in one.runs]
        assert begun == [at for (uid, _), at in sorted(seen.begun.items()) if uid == one.uid]
        assert all(run.begun <= run.ended for run in one.runs), one
        assert all(a.ended <= b.begun for a, b in zip(one.runs, one.runs[1:], strict=False)), one
        assert one.started == min(begun, default=0)
        assert one.demand


def _compare(one: Ended, seen: Seen) -> None:
    """An AppWrapper that ended says what its last status says."""
    status = seen.last[one.uid]
    assert (one.name, one.state) == (seen.names[one.uid], status.state)
    if (kind := ENDS.get(State(status.state))) is not None:
        (shown,) = [each for each in status.conditions if each.type == kind]
        assert (one.reason, one.message, one.ended) == (shown.reason, shown.message, shown.changed)
    elif status.dispatch is not None:
        assert one.ended == status.dispatch.entered
    attempt = status.dispatch.attempt if status.dispatch is not None else 0
    assert one.attempts == attempt


def test_what_the_first_file_of_a_ring_begins_with_is_known(tmp_path: Path) -> None:
    """Files before it are gone; its snapshot has AppWrappers that no step shows again."""
    life(tmp_path / "ring", SEED, Limits(files=2, file_bytes=3000))
    life(tmp_path / "all", SEED)
    part, whole = journal_history(tmp_path / "ring"), journal_history(tmp_path / "all")
    last = {one.uid: one for one in part[0]}
    assert part[1] == []
    assert 0 < len(last) <= len(whole[0])
    shown = {uid for uid, status in Seen(tmp_path / "ring").last.items() if status.state in ENDS}
    assert last.keys() - shown, "the snapshot alone has some of them"
    for one in whole[0]:
        if one.uid in last:
            found = last[one.uid]
            assert (found.name, found.state, found.ended) == (one.name, one.state, one.ended)
            assert found.runs[-1:] == one.runs[-1:]


SEED = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("journal")
    life(found, SEED)
    return found


def test_filters_and_order(folder: Path) -> None:
    everything = told(folder)
    assert [one["ended"] for one in everything] == sorted(one["ended"] for one in everything)
    assert {one["labels"] for one in everything} == {None}
    middle = everything[len(everything) // 2]["ended"]
    assert told(folder, "--since", middle) == [one for one in everything if one["ended"] >= middle]
    before = [one for one in everything if one["ended"] <= middle]
    assert [one["uid"] for one in told(folder, "--until", middle)] == [one["uid"] for one in before]
    failed = [one for one in everything if one["state"] == "Failed"]
    assert told(folder, "--state", "failed") == failed
    space = everything[0]["namespace"]
    assert told(folder, "-n", space) == [one for one in everything if one["namespace"] == space]
    assert told(folder, "-n", "nope") == []


def test_csv_has_the_same_figures(folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(history(folder, "-o", "csv").stdout)))
    everything = told(folder)
    assert [one["uid"] for one in rows] == [one["uid"] for one in everything]
    for row, one in zip(rows, everything, strict=True):
        assert float(row["ranSeconds"]) == one["ranSeconds"]
        for name, seconds in one["requestedSeconds"].items():
            assert float(row[f"requestedSeconds.{name}"]) == pytest.approx(seconds)


def test_totals_are_the_sums_of_the_rows(folder: Path) -> None:
    everything = told(folder)
    result = history(folder, "--totals", "-o", "json")
    rows = json.loads(result.stdout)["totals"]
    assert sum(row["appwrappers"] for row in rows) == len(everything)
    for row in rows:
        own = [one for one in everything if one["namespace"] == row["namespace"]]
        assert row["ranSeconds"] == pytest.approx(sum(one["ranSeconds"] for one in own))
        cpu = sum(one["requestedSeconds"].get("cpu", 0) for one in own)
        assert row["requestedSeconds"].get("cpu", 0) == pytest.approx(cpu)
    lines = history(folder, "--totals").stdout.splitlines()
    assert lines[0].split()[:3] == ["NAMESPACE", "LEAF", "APPWRAPPERS"]
    assert lines[-1].split()[:3] == ["<total>", "<none>", str(len(everything))]


def test_a_damaged_journal_is_read_as_far_as_it_goes(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        content = path.read_bytes()
        (tmp_path / path.name).write_bytes(content[: len(content) - 7])
    result = history(tmp_path)
    assert result.exit_code == 1
    assert result.stdout
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("-l", "a=b"), 2, "a journal has no labels: omit -l, or --journal"),
        (("--totals", "-o", "name"), 2, "--totals has no -o name"),
        (("--since", "soon"), 2, "'soon' is neither a duration such as 12h or 7d nor a time"),
    ],
)
def test_mistakes(args: tuple[str, ...], code: int, words: str, folder: Path) -> None:
    result = history(folder, *args)
    assert result.exit_code == code
    assert words in result.stderr


def test_a_folder_without_a_journal(tmp_path: Path) -> None:
    result = history(tmp_path)
    assert result.exit_code == 1
    assert f"no journal in {tmp_path}: `mcad run --journal" in result.stderr
