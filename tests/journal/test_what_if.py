"""``mcad what-if --journal``: the state at the end of a journal, with a change."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcad.cli.main import main
from mcad.client.answers.at_journal import read_end
from mcad.controller.views import rows_view
from mcad.core.answers.outcome import outcome
from mcad.core.cluster import Cluster
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import PauseSeen
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.settings import Settings
from mcad.core.state.units import Instant
from mcad.journal import header
from mcad.journal.frames import Kind, pack
from mcad.journal.header import Header, files_of
from mcad.journal.reader import sessions
from mcad.journal.replay import Made, replay
from mcad.journal.restart import present
from tests import budget
from tests.e2e.support import appwrapper, pod
from tests.journal.recording import LARGE, SMALL, live

Json = dict[str, Any]

SEED = 3


def what_if(folder: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["what-if", "--journal", str(folder), *args])


def told(folder: Path, *args: str) -> Json:
    result = what_if(folder, *args, "-o", "json")
    assert result.exit_code == 0, result.output
    answer: Json = json.loads(result.stdout)
    return answer


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    live(tmp_path, SEED)
    return tmp_path


def steps(folder: Path) -> list[Made]:
    found, _ = sessions(folder)
    return [made for session in found for made in replay(session) if isinstance(made, Made)]


def in_line(cluster: Cluster, now: Instant) -> list[str]:
    """The AppWrappers that are in line, in their order."""
    rows = rows_view(cluster, now, waiting_only=True, with_starts=False)
    return [row["name"] for row in rows["items"] if row["position"]]


@pytest.mark.parametrize("seed", budget.slow_but_first(range(4)))
@pytest.mark.parametrize("limits", [SMALL, LARGE])
def test_the_facts_are_those_of_the_end(tmp_path: Path, seed: int, limits: Any) -> None:
    """In files that begin with a snapshot, too."""
    live(tmp_path, seed, limits, submitted=25)
    last = steps(tmp_path)[-1]
    facts = read_end(tmp_path).facts
    assert facts.now == last.step.now
    rebuilt = Dispatcher(facts.settings)
    for event in facts.events:
        rebuilt.step(event, facts.now)
    assert in_line(rebuilt.cluster, facts.now) == in_line(last.cluster, facts.now)
    assert list(rebuilt.cluster.capacity.nodes()) == list(last.cluster.capacity.nodes())
    assert set(rebuilt.cluster.capacity.pods.all()) == set(last.cluster.capacity.pods.all())


def test_more_nodes_start_those_that_wait(journal: Path) -> None:
    answer = told(journal, "--nodes", "+3", "--like", "n0")
    starts = [one for one in answer["changes"] if one["then"] and one["then"]["startsNext"]]
    assert starts
    assert not any(one["now"]["startsNext"] for one in starts)


def test_without_one_and_with_another_setting(journal: Path) -> None:
    facts = read_end(journal).facts
    title = next(iter(outcome(facts).cluster.entries.values())).title
    result = what_if(journal, "--without", title)
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if line.startswith(title)]
    assert what_if(journal, "--set", "policy=StrictFIFO").exit_code == 0


def test_until_an_instant_the_state_is_that_of_then(journal: Path) -> None:
    found, _ = sessions(journal)
    first = [made for made in replay(found[0]) if isinstance(made, Made)]
    until = first[-1].step.now
    facts = read_end(journal, until).facts
    assert facts.now == until
    assert len(facts.events) < len(read_end(journal).facts.events)
    early = what_if(journal, "--until", "2001-01-01T00:00:00Z", "--without", "w0")
    assert early.exit_code == 1
    assert "has no steps up to that time" in early.stderr


def test_dispatch_that_is_paused_stays_paused() -> None:
    core, pause = Dispatcher(Settings()), DispatchPause("u", "stop", reason="an upgrade")
    core.step(PauseSeen(pause), 1)
    assert PauseSeen(pause) in list(present(core.cluster))


def test_a_damaged_file_is_told_as_by_replay_and_the_rest_is_answered(journal: Path) -> None:
    spoilt = files_of(journal)[-1]
    spoilt.write_bytes(spoilt.read_bytes()[:-3])
    result = what_if(journal, "--nodes", "+3", "--like", "n0")
    replayed = CliRunner().invoke(main, ["replay", str(journal)])
    assert (result.exit_code, replayed.exit_code) == (1, 1)
    assert "starts" in result.stdout
    assert result.stderr == replayed.stderr != ""


def test_a_journal_of_another_version_is_refused_as_by_replay(tmp_path: Path) -> None:
    begun = header.encode(Header("leader", 1, Settings(), version="0.0.9"))
    (tmp_path / header.file_name(1)).write_bytes(pack(Kind.HEADER, begun))
    result = what_if(tmp_path, "--without", "x")
    replayed = CliRunner().invoke(main, ["replay", str(tmp_path)])
    assert result.exit_code == 1
    assert result.stderr == replayed.stderr != ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "say what is different"),
        (("--without", "x", "--context", "c"), "--journal asks no cluster"),
        (("--without", "nonesuch"), '--without: there is no AppWrapper "default/nonesuch"'),
        (("--nodes", "+1", "--like", "m0"), 'there is no node "m0"'),
        (("--set", "policy=Nonsense"), "policy"),
        (("--set", "policy"), "KEY=VALUE"),
        (("--set", "polcy=Backfill"), "policy"),
        (("--set", "quotaEnabled=true"), "no decision depends on it"),
        (("--quota", "a/b", "cpu=1"), 'no node "b" in a quota tree "a"'),
        (("--without", "x", "--until", "noon"), "is not a time such as"),
    ],
)
def test_a_mistake_is_told_with_its_flag(journal: Path, given: tuple[str, ...], said: str) -> None:
    result = what_if(journal, *given)
    missing = "there is no" in said or "no node" in said
    assert result.exit_code in ((4,) if missing else (1, 2))
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_without_a_journal_and_an_instant_without_one(tmp_path: Path) -> None:
    assert "no journal in" in what_if(tmp_path, "--without", "x").stderr
    result = CliRunner().invoke(
        main, ["what-if", "--without", "x", "--until", "2026-01-01T00:00:00Z"]
    )
    assert "--until is an instant of a journal" in result.stderr


def test_one_that_was_never_submitted(journal: Path, tmp_path: Path) -> None:
    """In the state at the end of the journal; the file says the rest."""
    path = tmp_path / "new.yaml"
    path.write_text(json.dumps(appwrapper("new", pod("new", "1m"), priority=9)))
    answer = told(journal, "-f", str(path))
    (new,) = [one for one in answer["changes"] if one["appwrapper"] == "default/new"]
    assert new["now"] is None
    assert new["then"]["startsNext"] or new["then"]["waitsFor"]
    path.write_text(json.dumps(appwrapper("new", pod("new", "much"))))
    faulty = what_if(journal, "-f", str(path))
    assert faulty.exit_code == 1
    assert "nothing was tried: 1 fault to correct first" in faulty.stderr
