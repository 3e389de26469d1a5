"""A copy without names: nothing that a user wrote is in it, and the decisions are the same."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from mcad.api.wire import format_instant
from mcad.core.events import Event
from mcad.journal import frames
from mcad.journal.anonymous import RULES, pseudonyms, renamed
from mcad.journal.header import files_of
from mcad.journal.reader import Begin, Gap, sessions
from mcad.journal.replay import Made, drive, replay
from tests.journal.recording import LARGE, SMALL, live, run


def texts(kind: Any, done: set[Any]) -> Iterator[tuple[str, str]]:
    """(record, field) of every text that an event may hold."""
    if not (isinstance(kind, type) and hasattr(kind, "__struct_fields__")) or kind in done:
        for part in get_args(kind):
            yield from texts(part, done)
        return
    done.add(kind)
    for name, hint in get_type_hints(kind).items():
        if name in kind.__struct_fields__:
            if has_text(hint):
                yield kind.__name__, name
            yield from texts(hint, done)


def has_text(hint: Any) -> bool:
    """Whether a field is one, or a tuple of them."""
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return False
    return hint is str or (get_origin(hint) is not None and any(map(has_text, get_args(hint))))


def test_every_text_of_every_event_has_a_rule() -> None:
    found = set(texts(Event, set()))
    ruled = {(kind, name) for kind, rules in RULES.items() for name in rules}
    assert {one for one in found - ruled if one[1] != "uid"} == set()
    assert ruled - found == set(), "rules for fields that are gone"


def test_order_and_equality_of_names_stay() -> None:
    rng = Random(1)
    found = ["".join(rng.choices("ab-/.9", k=rng.randint(1, 6))) for _ in range(500)]
    names = pseudonyms(found)
    for _ in range(2000):
        one, other = rng.choice(found), rng.choice(found)
        assert (one < other) == (names[one] < names[other])
        assert (one == other) == (names[one] == names[other])


def content(folder: Path) -> str:
    """Every byte of every frame, unpacked."""
    return "".join(
        frame.payload.decode("latin-1") for path in files_of(folder) for frame in frames.read(path)
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_copy_holds_no_name_and_decides_alike(tmp_path: Path, seed: int) -> None:
    live(tmp_path / "original", seed)
    copy = tmp_path / "copy"
    code, out, err = run(tmp_path / "original", "--anonymous", copy)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == len(sessions(tmp_path / "original")[0])
    assert all(", 0 with other decisions than the original" in line for line in lines), out
    assert re.search(r"uid-w\d|w\d+-0|default|leader-\d-\d", content(tmp_path / "original"))
    assert not re.search(r"uid-w\d|w\d+-0|default|leader-\d-\d", content(copy))
    again = [one for session in sessions(copy)[0] for one in replay(session)]
    assert not [one for one in again if isinstance(one, Gap) or one.differs]
    assert run(tmp_path / "original")[1].splitlines()[1::2] == run(copy)[1].splitlines()[1::2]


def test_a_journal_that_begins_in_the_middle_can_be_copied(tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    live(original, 3, SMALL, submitted=60)
    for path in files_of(original)[:2]:
        path.unlink()
    assert run(original, "--anonymous", copy)[0] == 0
    code, out, _ = run(copy, "--diff")
    assert code == 0
    assert "no difference" in out
    assert "default" not in content(copy)


def test_a_part_can_be_copied(tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    live(original, 3, submitted=60)
    found = [one for one in replay(sessions(original)[0][0]) if isinstance(one, Made)]
    until = found[len(found) // 2].step.now
    assert run(original, "--until", format_instant(until), "--anonymous", copy)[0] == 0
    copied = [one for session in sessions(copy)[0] for one in replay(session)]
    times = [one.step.now for one in copied if isinstance(one, Made)]
    assert times == [one.step.now for one in found if one.step.now <= until]


def test_a_state_of_later_is_not_copied(tmp_path: Path) -> None:
    original = tmp_path / "original"
    live(original, 3, SMALL, submitted=60)
    files_of(original)[0].unlink()
    begin = next(drive(sessions(original)[0][0]))
    assert isinstance(begin, Begin)
    for until, is_copied in ((begin.cluster.now, True), (begin.cluster.now - 1, False)):
        copy = tmp_path / str(until)
        out = run(original, "--until", format_instant(until), "--anonymous", copy)[1]
        assert (", 0 with other" in out, "leader-1: 0 steps" in out) == (True, not is_copied)


def test_a_text_without_a_rule_is_an_error() -> None:
    class Unknown(msgspec.Struct):
        """A record of a later version."""

        secret: str

    with pytest.raises(TypeError, match="no rule"):
        renamed(Unknown("x"), str)


def test_large_files_are_copied(tmp_path: Path) -> None:
    live(tmp_path / "original", 4, LARGE, submitted=100)
    code, out, _ = run(tmp_path / "original", "--anonymous", tmp_path / "copy")
    assert code == 0
    assert "steps" in out


def test_nothing_is_written_into_a_folder_that_exists(tmp_path: Path) -> None:
    live(tmp_path, 1, submitted=3)
    before = content(tmp_path)
    code, _, err = run(tmp_path, "--anonymous", tmp_path)
    assert code == 1
    assert "choose a new folder" in err
    assert content(tmp_path) == before
