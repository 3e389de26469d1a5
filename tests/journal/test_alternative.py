"""Other settings on the same journal: the model meets the same world, and tells the truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from benchmarks.replay import MINUTE, Job, Replay, uid_of
from mcad.core.commands import Command
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event
from mcad.core.state.records import replace
from mcad.core.state.settings import Fairness, Fit, Policy, Settings
from mcad.core.state.units import Instant
from mcad.journal import script
from mcad.journal.alternative import play
from mcad.journal.header import Header
from mcad.journal.lives import Lives
from mcad.journal.reader import sessions
from mcad.journal.writer import Journal, Limits
from tests import budget
from tests.core.bench import node
from tests.journal.recording import LARGE, flush, live, run

CPU = 1000
SMALL = Limits(files=1000, file_bytes=2_500)
PLAIN = Settings(protect_after=0, pod_counts_interval=0)


def jobs(seed: int, count: int = 60) -> list[Job]:
    """Of three teams, with bursts, priorities and limits."""
    rng = Random(seed)
    at, found = 0, []
    for number in range(count):
        at += rng.choice((0, 0, rng.randint(1, 4) * MINUTE))
        run = rng.randint(2, 30) * MINUTE
        found.append(
            Job(
                f"j{number}",
                at,
                rng.choice((1, 1, 2, 4, 8)),
                (("cpu", CPU), ("pods", 1)),
                run,
                limit=2 * run,
                priority=rng.choice((0, 0, 0, 5)),
                team=f"team-{number % 3}",
            )
        )
    return found


def cluster() -> list:
    """One node: where kube-scheduler puts pods does not matter."""
    return [node("n0", 16 * CPU)]


class Recorder:
    """A brain with a journal."""

    def __init__(self, folder: Path, settings: Settings, limits: Limits = LARGE) -> None:
        self.core = Dispatcher(settings)
        self.journal = Journal(folder, Header("leader", 1, settings), self.core.cluster, limits)

    def step(self, event: Event, now: Instant) -> tuple[Command, ...]:
        commands = self.core.step(event, now)
        self.journal.note(now, event, commands)
        if self.journal.is_changing_over:
            flush(self.journal)
        return commands


def recorded(folder: Path, settings: Settings, seed: int, limits: Limits = LARGE) -> Replay:
    """Run the jobs to their ends, with a journal."""
    brain = Recorder(folder, settings, limits)
    run = Replay(jobs(seed), cluster(), brain=brain).run()
    brain.journal.close()
    return run


def truth(run: Replay, until: Instant) -> dict[str, tuple[Instant, Instant]]:
    """When each job started first, and when it ended; 0 for what came later."""
    return {
        uid: (at_most(life.starts[0], until), at_most(life.ended, until))
        for uid, life in run.lives.items()
    }


def at_most(at: Instant, until: Instant) -> Instant:
    """The journal has ended then."""
    return at if at <= until else 0


def told(lives: Lives) -> dict[str, tuple[Instant, Instant]]:
    """The same of what the model says."""
    return {uid: (life.first, life.ended or life.deleted) for uid, life in lives.by_uid.items()}


CHANGES: dict[str, Callable[[Settings], Settings]] = {
    "the same": lambda settings: settings,
    "strict": lambda settings: replace(settings, policy=Policy.STRICT_FIFO),
    "backfill": lambda settings: replace(settings, policy=Policy.BACKFILL),
    "fair": lambda settings: replace(settings, fairness=Fairness.NAMESPACE),
    "preemption": lambda settings: replace(settings, preemption=True, min_run_time=0),
    "protection": lambda settings: replace(settings, protect_after=10 * MINUTE),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", budget.draw(range(3), 1, "alternative"))
def test_the_model_does_what_a_run_with_these_settings_does(
    tmp_path: Path, seed: int, change: str
) -> None:
    recorded(tmp_path, PLAIN, seed)
    found, wrong = script.read(sessions(tmp_path)[0])
    assert not wrong
    other = CHANGES[change](PLAIN)
    real = Replay(jobs(seed), cluster(), settings=other).run()
    lives = play(found, other)
    assert told(lives) == truth(real, found.ended)
    evictions = sum(
        eviction.at <= found.ended for life in real.lives.values() for eviction in life.evictions
    )
    assert sum(life.evictions for life in lives.by_uid.values()) == evictions
    assert lives.by_uid[uid_of("j0")].workload.name == "j0"


@pytest.mark.parametrize("seed", range(4))
def test_a_journal_that_begins_in_the_middle_goes_on_as_it_did(tmp_path: Path, seed: int) -> None:
    """Its first files are gone: what runs then runs as long as it ran, and no longer."""
    run = recorded(tmp_path, PLAIN, seed, SMALL)
    files = sorted(tmp_path.glob("*.journal"))
    assert len(files) > 2
    for path in files[: len(files) // 3]:
        path.unlink()
    found, wrong = script.read(sessions(tmp_path)[0])
    assert not wrong
    assert found.begun > run.lives[uid_of("j0")].submitted
    lives = play(found, found.settings)
    expected, seen = truth(run, found.ended), told(lives)
    late = {uid for uid, life in run.lives.items() if life.submitted > found.begun}
    assert len(late) > 5
    assert [uid for uid in late if seen[uid] != expected[uid]] == []
    running = [uid for uid in seen if expected[uid][0] < found.begun]
    assert running
    assert [uid for uid in running if seen[uid][1] != expected[uid][1]] == []


@pytest.mark.parametrize("seed", range(6))
def test_any_journal_can_be_played_with_any_policy(tmp_path: Path, seed: int) -> None:
    """Crashes, deletions, nodes that change, objects that are refused."""
    live(tmp_path, seed)
    found, wrong = script.read(sessions(tmp_path)[0])
    assert not wrong
    for change in CHANGES.values():
        lives = play(found, change(found.settings))
        assert set(lives.by_uid) == set(found.lives.by_uid)
        assert any(life.first for life in lives.by_uid.values())
    sums = play(found, replace(found.settings, fit=Fit.AGGREGATE))
    assert any(life.first for life in sums.by_uid.values())


# -- the command ---------------------------------------------------------------------------------


def test_the_command_compares(tmp_path: Path) -> None:
    recorded(tmp_path, PLAIN, 1)
    code, out, err = run(tmp_path, "--set", "policy=StrictFIFO", "--set", "preemption=true")
    assert (code, err) == (0, "")
    lines = [line.split("   ") for line in out.splitlines()]
    assert out.splitlines()[1].split() == [
        *("RECORDED", "REPLAYED", "WITH"),
        *("policy=StrictFIFO", "preemption=true"),
    ]
    rows = {cells[0]: [one.strip() for one in cells[1:] if one.strip()] for cells in lines[2:]}
    assert rows["AppWrappers"] == ["60"] * 3
    assert rows["completed"][:2] == ["60", "60"]
    assert rows["wait, mean"][0] == rows["wait, mean"][1] != rows["wait, mean"][2]
    assert rows["cpu in use"][0] == rows["cpu in use"][1]
    assert rows["cpu in use"][0].endswith(" %")


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("policy=Backfil", "Backfill"),
        ("polcy=Backfill", "policy"),
        ("quotaEnabled=true", "no decision depends on it"),
        ("policy", "KEY=VALUE"),
    ],
)
def test_a_setting_that_is_none_is_told(tmp_path: Path, assignment: str, told: str) -> None:
    live(tmp_path, 1, submitted=3)
    code, _, err = run(tmp_path, "--set", assignment)
    assert code == 1
    assert told in err


def test_only_one_question_at_a_time(tmp_path: Path) -> None:
    assert run(tmp_path, "--set", "policy=Backfill", "--diff")[0] == 2
