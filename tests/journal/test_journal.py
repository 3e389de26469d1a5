"""The journal: what is replayed is what was decided, whatever became of the files."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from enum import Enum
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

import mcad
from mcad.core.cluster import Cluster
from mcad.core.commands import WriteQuota
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide, NodeSeen
from mcad.core.state.model import Node
from mcad.core.state.quota_records import NodeStatus, QuotaView
from mcad.core.state.settings import Settings
from mcad.journal import codec, frames, header, snapshot
from mcad.journal.codec import Step
from mcad.journal.header import Header, files_of
from mcad.journal.reader import Gap, Session, sessions
from mcad.journal.replay import Made, replay
from mcad.journal.writer import Journal, Limits
from tests import budget
from tests.core.bench import Bench, node, workload
from tests.journal.recording import LARGE, SMALL, flush, live, run


def made(folder: Path) -> tuple[list[Made], list[str]]:
    """Every step of a folder, made again, and what could not be read."""
    found, wrong = sessions(folder)
    good = []
    for session in found:
        for one in replay(session):
            if isinstance(one, Gap):
                wrong.append(one.why)
            else:
                good.append(one)
    return good, wrong


@pytest.mark.parametrize("seed", range(8))
def test_every_decision_is_made_again(tmp_path: Path, seed: int) -> None:
    live(tmp_path, seed, submitted=70)
    found, wrong = made(tmp_path)
    assert not wrong
    assert len(found) > 200
    assert sum(bool(one.commands) for one in found) > 50
    assert not [one for one in found if one.differs]


GO_ON = """
import sys
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide
from mcad.journal import snapshot

cluster = snapshot.restore(sys.stdin.buffer.read())
shape = cluster.entries["uid-w"].workload.sets
assert cluster.capacity.nodes_for(cluster.capacity.shape(shape)), "its shape is known"
dispatcher = Dispatcher(cluster.settings)
dispatcher.cluster = cluster
dispatcher.step(Decide(), cluster.agenda.now + 1)
"""


def test_another_process_goes_on_from_a_snapshot() -> None:
    """The hash of a text differs from process to process, so no hash may be kept."""
    bench = Bench(nodes=[node(milli=1000)]).start(workload("w", 2000))
    state = snapshot.take(bench.dispatcher.cluster)
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", GO_ON],
        input=state,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert not done.returncode, done.stderr.decode()


@pytest.mark.parametrize("seed", budget.draw(range(4), 1, "files"))
def test_each_file_can_be_replayed_alone(tmp_path: Path, seed: int) -> None:
    live(tmp_path, seed, SMALL, submitted=70)
    found, wrong = sessions(tmp_path)
    assert not wrong
    later = [(one, path) for one in found for path in one.files[1:]]
    assert len(later) > 3
    for session, path in later:
        alone = list(replay(Session(session.header, [path])))
        assert alone
        assert not [one for one in alone if isinstance(one, Gap) or one.differs]
    whole, wrong = made(tmp_path)
    assert not wrong
    numbers = [one.step.number for one in whole]
    assert numbers.count(0) == len(found), "steps that two files have come once"
    assert all(b in (a + 1, 0) for a, b in pairwise(numbers))


def test_the_ring_keeps_the_last_files(tmp_path: Path) -> None:
    live(tmp_path, 1, Limits(files=3, file_bytes=900), submitted=100)
    assert len(files_of(tmp_path)) <= 3
    assert int(files_of(tmp_path)[-1].stem) > 4
    found, wrong = made(tmp_path)
    assert found
    assert not wrong
    assert not [one for one in found if one.differs]


def test_a_frame_that_is_cut_off_costs_what_comes_after_it(tmp_path: Path) -> None:
    live(tmp_path, 3, submitted=10)
    whole, _ = made(tmp_path)
    path = files_of(tmp_path)[0]
    everything = path.read_bytes()
    for size in range(len(everything) - 1, 0, -97):
        path.write_bytes(everything[:size])
        found, wrong = made(tmp_path)
        assert len(found) <= len(whole)
        assert [one.step for one in found] == [one.step for one in whole[: len(found)]]
        assert all("is cut off" in one or "no header" in one for one in wrong)
    path.write_bytes(everything[:-1])
    found, wrong = made(tmp_path)
    assert len(wrong) == 1
    assert 0 < len(found) < len(whole)


def test_a_damaged_frame_is_told_and_what_is_before_it_counts(tmp_path: Path) -> None:
    live(tmp_path, 3, submitted=10)
    whole, _ = made(tmp_path)
    path = files_of(tmp_path)[0]
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    found, wrong = made(tmp_path)
    assert [one.step for one in found] == [one.step for one in whole[: len(found)]]
    assert 0 < len(found) < len(whole)
    assert len(wrong) == 1
    assert "wrong checksum" in wrong[0]
    assert path.name in wrong[0]


def test_after_a_damaged_frame_the_next_file_goes_on(tmp_path: Path) -> None:
    live(tmp_path, 3, SMALL, submitted=60)
    session = max(sessions(tmp_path)[0], key=lambda one: len(one.files))
    assert len(session.files) > 2
    victim = session.files[1]
    victim.write_bytes(victim.read_bytes()[:-3])
    found = list(replay(session))
    gaps = [place for place, one in enumerate(found) if isinstance(one, Gap)]
    assert len(gaps) == 1
    assert found[gaps[0] + 1 :]
    assert not [one for one in found if not isinstance(one, Gap) and one.differs]


def test_a_file_that_is_gone_before_it_is_read_is_told(tmp_path: Path) -> None:
    """A dispatcher that runs deletes its oldest file."""
    live(tmp_path, 3, SMALL, submitted=60)
    session = max(sessions(tmp_path)[0], key=lambda one: len(one.files))
    session.files[0].unlink()
    first, *others = replay(session)
    assert isinstance(first, Gap)
    assert session.files[0].name in first.why
    assert others
    assert not [one for one in others if isinstance(one, Gap) or one.differs]


def test_steps_that_are_in_no_file_are_told(tmp_path: Path) -> None:
    """A file may end with a whole frame before its time, or be lost."""
    live(tmp_path, 3, SMALL, submitted=60)
    session = max(sessions(tmp_path)[0], key=lambda one: len(one.files))
    session.files.pop(1)
    found = list(replay(session))
    place, gap = next((at, one) for at, one in enumerate(found) if isinstance(one, Gap))
    before, after = found[place - 1], found[place + 1]
    assert isinstance(before, Made)
    assert isinstance(after, Made)
    lost = f"steps {before.step.number + 1} to {after.step.number - 1} are missing"
    assert gap.why == f"{session.files[1].name}: {lost}"
    assert not [one for one in found if one is not gap and one.differs]


def test_another_version_is_told(tmp_path: Path) -> None:
    begun = header.encode(Header("leader", 1, Settings(), version="0.0.9"))
    (tmp_path / header.file_name(1)).write_bytes(frames.pack(frames.Kind.HEADER, begun))
    live(tmp_path, 1, submitted=3)
    found, wrong = made(tmp_path)
    assert found
    assert wrong == [
        "00000001.journal: written by mcad 0.0.9 (format 2), this is mcad"
        f" {mcad.__version__} (format 2): use the version that wrote it"
    ]


@pytest.mark.parametrize("payload", [b"", b"null", b"[]", b'{"version": 1}', b"\xff"])
def test_a_header_that_is_none_is_told(tmp_path: Path, payload: bytes) -> None:
    (tmp_path / header.file_name(1)).write_bytes(frames.pack(frames.Kind.HEADER, payload))
    found, wrong = made(tmp_path)
    assert not found
    assert len(wrong) == 1


class Evil:
    """Runs a command when it is unpickled by a careless reader."""

    def __init__(self, function: object, *args: object) -> None:
        self._call = function, args

    def __reduce__(self) -> object:
        return self._call


@pytest.mark.parametrize(
    "evil",
    [
        Evil(os.system, "true"),
        Evil(eval, "1"),
        Evil(getattr, Cluster, "__init__"),
        3,
    ],
)
def test_a_snapshot_makes_nothing_but_what_is_the_cores(evil: object) -> None:
    with pytest.raises(snapshot.CannotRestoreError):
        snapshot.restore(pickle.dumps(evil, protocol=5))


def test_a_snapshot_is_the_same_with_the_python_of_debian_12(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """3.11.2 pickles members of enumerations by the name of an attribute."""

    def by_name(self: Enum, protocol: int) -> tuple[object, tuple[object, str]]:
        return getattr, (type(self), self.name)

    monkeypatch.setattr(Enum, "__reduce_ex__", by_name)
    bench = Bench(nodes=[node(milli=1000)]).start(workload("w", 2000))
    assert snapshot.restore(snapshot.take(bench.dispatcher.cluster)).entries


def test_a_snapshot_names_no_attribute_of_what_it_may_make() -> None:
    for name in (b"Cluster.__init__.__globals__", b"Capacity", b"replace"):
        payload = (
            b"\x80\x04\x8c\x11mcad.core.cluster" + b"\x8c" + bytes([len(name)]) + name + b"\x93."
        )
        with pytest.raises(snapshot.CannotRestoreError, match="not of the core"):
            snapshot.restore(payload)


def begun(folder: Path, limits: Limits = LARGE) -> tuple[Dispatcher, Journal]:
    dispatcher = Dispatcher(Settings())
    return dispatcher, Journal(folder, Header("leader", 1, Settings()), dispatcher.cluster, limits)


def changing_over(folder: Path) -> Journal:
    """A journal while its second file begins."""
    dispatcher, journal = begun(folder, Limits(file_bytes=1))
    journal.note(1, NodeSeen(node("n1")), dispatcher.step(NodeSeen(node("n1")), 1))
    journal.flush()
    assert journal.is_changing_over
    return journal


def test_what_cannot_be_written_ends_the_journal_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dispatcher, journal = begun(tmp_path)
    os.dup2(full := os.open("/dev/full", os.O_WRONLY), journal._file.fileno())  # type: ignore[union-attr]
    os.close(full)
    for now in range(1, 4):
        journal.note(now, NodeSeen(node("n1")), dispatcher.step(NodeSeen(node("n1")), now))
        journal.flush()
    journal.close()
    assert [one.getMessage() for one in caplog.records] == [
        "the journal ends here error=[Errno 28] No space left on device"
    ]


@pytest.mark.parametrize("broken", [node("n2", 2**64), node("n\ud800")], ids=["number", "text"])
def test_what_cannot_be_encoded_ends_the_journal_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: Node
) -> None:
    dispatcher, journal = begun(tmp_path)
    for now, event in enumerate(map(NodeSeen, (node("n1"), broken, broken, node("n3"))), 1):
        journal.note(now, event, dispatcher.step(event, now))
    journal.flush()
    journal.close()
    assert [one.getMessage().partition("=")[0] for one in caplog.records] == [
        "the journal ends here error"
    ]
    found, wrong = made(tmp_path)
    assert not wrong
    assert [one.step.event for one in found] == [NodeSeen(node("n1"))]


def test_a_fault_while_a_file_is_written_ends_the_journal_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher, journal = begun(tmp_path)
    monkeypatch.setattr(codec, "join_steps", lambda *_: 1 // 0)
    journal.note(1, NodeSeen(node("n1")), dispatcher.step(NodeSeen(node("n1")), 1))
    journal.flush()
    journal.close()
    assert len(caplog.records) == 1


def test_a_snapshot_that_cannot_be_made_ends_the_journal_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "take", lambda _: 1 // 0)
    journal = changing_over(tmp_path)
    flush(journal)
    journal.flush()
    journal.close()
    assert [one.getMessage() for one in caplog.records] == [
        "the journal ends here error=no snapshot was written (status 256)"
    ]
    assert [one.step.number for one in made(tmp_path)[0]] == [0]
    assert list(tmp_path.iterdir()) == files_of(tmp_path)


def test_a_journal_that_ends_while_a_file_begins_keeps_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "take", lambda _: time.sleep(60))
    journal = changing_over(tmp_path)
    journal.note(2, NodeSeen(node("n2")), ())
    journal.close()
    assert not journal.is_changing_over
    assert [one.step.number for one in made(tmp_path)[0]] == [0, 1]
    assert list(tmp_path.iterdir()) == files_of(tmp_path)


def test_a_sum_of_amounts_may_have_more_than_64_bits() -> None:
    def sums(amount: int) -> bytes:
        nodes = (NodeStatus("a", allocated=(("cpu", amount),)),)
        return codec.digest([WriteQuota("u", 1, QuotaView(1, (), nodes))])

    large = [sums(2**70), sums(2**70 + 1), sums(-(2**70))]
    assert len({*large, sums(1)}) == 4
    assert large[0] == sums(2**70)
    assert {len(one) for one in large} == {codec.DIGEST_BYTES}


def test_only_their_owner_can_read_the_files(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        live(tmp_path, 3, SMALL, submitted=20)
    finally:
        os.umask(before)
    assert len(files_of(tmp_path)) > 1
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_step_survives_the_trip_to_bytes_and_back() -> None:
    now, event = 1_700_000_000_000_000, NodeSeen(node("n1"))
    steps = [codec.encode_step(0, event, b""), codec.encode_step(7, Decide(), b"12345678")]
    payload = codec.join_steps(5, now, steps)
    assert list(codec.split_steps(payload)) == [
        Step(5, now, event, b""),
        Step(6, now + 7, Decide(), b"12345678"),
    ]
    with pytest.raises(codec.CannotDecodeError):
        list(codec.split_steps(payload[:-1]))
    with pytest.raises(codec.CannotDecodeError):
        list(codec.split_steps(payload[:16] + msgspec.msgpack.encode([(1, 99, 1, b"")])))


# -- the command ---------------------------------------------------------------------------------


def test_the_command_counts(tmp_path: Path) -> None:
    live(tmp_path, 3, submitted=10)
    code, out, err = run(tmp_path, "--diff")
    assert (code, err) == (0, "")
    assert "leader leader-3-1 (epoch 1), 2023-11-14T22:13:20" in out
    assert "10 AppWrappers" in out
    assert "no difference" in out


def test_a_core_that_decides_otherwise_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(tmp_path, 3, submitted=10)
    right = Dispatcher.step

    def step(self: Dispatcher, event: object, now: int) -> tuple:
        commands = right(self, event, now)  # type: ignore[arg-type]
        return commands[:-1] if isinstance(event, Decide) else commands

    monkeypatch.setattr(Dispatcher, "step", step)
    code, out, _ = run(tmp_path, "--diff")
    assert code == 1
    first = next(line for line in out.splitlines() if line.startswith("step "))
    assert first.endswith(": Decide")
    assert "commanded now (! marks what was not commanded then):" in out


def test_only_one_question_at_a_time(tmp_path: Path) -> None:
    assert run(tmp_path, "--aw", "w1", "--diff")[0] == 2


def test_the_story_of_one(tmp_path: Path) -> None:
    live(tmp_path, 3, submitted=10)
    code, out, _ = run(tmp_path, "--aw", "w1")
    assert code == 0
    lines = [line.partition("  ")[2] for line in out.splitlines()]
    assert lines[0].startswith("seen, priority ")
    assert "create Pod default/w1-0 (attempt 1)" in lines
    assert any(line.startswith("event Dispatched: ") for line in lines)
    assert "w2" not in out


def test_an_appwrapper_that_the_journal_does_not_have_is_not_found(tmp_path: Path) -> None:
    live(tmp_path, 3, submitted=10)
    for asked, hint in (
        ("W-1", 'Did you mean "w1"?'),
        ("other/w1", 'Did you mean "default/w1"?'),
        ("nope", "it has 10 AppWrappers"),
    ):
        code, out, err = run(tmp_path, "--aw", asked)
        title = asked if "/" in asked else f"default/{asked}"
        assert (code, out) == (4, "")
        assert err.startswith(f"error: the journal has no AppWrapper {title}: {hint}")


def test_the_story_begins_with_what_was_known_when_the_first_file_began(tmp_path: Path) -> None:
    live(tmp_path, 0, SMALL, submitted=70)
    *gone, _ = files_of(tmp_path)
    for path in gone:
        path.unlink()
    (first, *_), _ = made(tmp_path)
    waiting = [one.workload.name for one in first.cluster.entries.values()]
    assert waiting
    code, out, _ = run(tmp_path, "--aw", waiting[-1])
    assert code == 0
    assert out.splitlines()[0].partition("  ")[2].startswith("known, priority ")


def test_until_an_instant(tmp_path: Path) -> None:
    live(tmp_path, 3, submitted=10)
    _, whole, _ = run(tmp_path)
    code, out, _ = run(tmp_path, "--until", "2023-11-14T22:13:20.000100Z")
    assert code == 0
    assert out != whole
    assert "to 2023-11-14T22:13:20.00" in out
    assert run(tmp_path, "--until", "noon")[0] == 2


def test_what_is_wrong_is_told_in_a_line_and_the_rest_is_shown(tmp_path: Path) -> None:
    live(tmp_path, 3, submitted=10)
    path = files_of(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-3])
    code, out, err = run(tmp_path)
    assert code == 1
    assert "AppWrappers" in out
    assert err.startswith(f"error: {path.name}: the frame at byte ")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(empty)[0] == 1
    assert "no journal in" in run(empty)[2]
