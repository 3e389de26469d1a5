"""Words of webhooks, controllers and kubelet: shown in statuses, and not kept in a journal."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, get_args

import msgspec
import pytest

from mcad.core.commands import Command, WriteStatus
from mcad.core.events import Event
from mcad.core.state.answer import Answer
from mcad.core.state.model import Child, Pod, Stuck, StuckReason
from mcad.core.state.quotation import BEGIN, quoted
from mcad.core.state.settings import Settings
from mcad.core.state.units import Instant
from mcad.journal import codec, snapshot
from mcad.journal.anonymous import RULES
from mcad.journal.header import Header, files_of
from mcad.journal.reader import Gap, Session, sessions
from mcad.journal.replay import replay
from mcad.journal.words import without_words
from mcad.journal.writer import Journal, Limits
from tests import budget
from tests.core.bench import Bench, node, random_life
from tests.journal.recording import LARGE, SMALL, Recorded, flush
from tests.journal.test_anonymous import content, texts

MARK = "hunter"
SAID = [
    f"{text} {number}"
    for text in (
        f'admission webhook "{MARK}.example" denied the request: (no {MARK})',
        f"couldn't find key {MARK}, in Secret default/{MARK}: retrying",
        f"0/3 {MARK}. Preemption is not helpful (\u201c{MARK}\u201d)",
    )
    for number in range(3)
]

OF_OTHERS = {
    ("Answer", "message"),
    ("Child", "words"),
    ("Condition", "message"),  # of these two a part is
    ("DispatchRecord", "message"),
    ("ItemCreated", "warnings"),
    ("KindWatched", "message"),
    ("Stuck", "message"),
    ("WarningsRead", "words"),
}
KEPT = {
    ("Child", "suspended"),  # names of fields and of their managers
    ("DispatchPause", "reason"),  # users write it for users
    ("Item", "suspended"),
    ("Persisted", "unreadable"),  # these are our own
    ("Problem", "message"),
    ("QuotaChild", "flaw"),
    ("QuotaCondition", "message"),
    ("ScaleUpSeen", "message"),  # an autoscaler's, of groups of nodes
    ("Unscheduled", "message"),  # kube-scheduler's, of nodes
    ("Workload", "warnings"),
}
"""Every free text of an event, and whose words it has."""


def test_of_every_free_text_it_is_known_whose_words_it_has() -> None:
    keep = RULES["Condition"]["message"]  # the rule of free texts
    free = {(kind, name) for kind, rules in RULES.items() for name in rules if rules[name] is keep}
    assert free == OF_OTHERS | KEPT
    assert free <= set(texts(Event, set()))


def value(hint: Any, words: str) -> Any:
    """A value of this type: every record is there, and every text of others has the words."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        fields = {
            one.encode_name: (
                _said(hint, one, words)
                if (hint.__name__, one.name) in OF_OTHERS
                else value(one.type, words)
            )
            for one in msgspec.structs.fields(hint)
        }
        return hint(**fields)
    options = get_args(hint)
    if type(None) in options:
        return value(next(one for one in options if one is not type(None)), words)
    origin = getattr(hint, "__origin__", hint)
    if origin is tuple:
        parts = options[:1] if options[-1:] == (...,) else options
        return tuple(value(one, words) for one in parts)
    if isinstance(origin, type) and issubclass(origin, str) and hasattr(origin, "__members__"):
        return next(iter(origin))
    return {str: "x", int: 1, bool: False, frozenset: frozenset()}[origin]


def _said(kind: Any, field: Any, words: str) -> Any:
    return (words,) if field.type is not str else words


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_no_event_keeps_the_words_of_others(kind: Any) -> None:
    event = value(kind, f"item x: {quoted(SAID[0])}; retrying")
    kept = codec.encode_step(1, event, b"")
    assert MARK.encode() not in kept
    has_words = any(MARK in one for one in _all_texts(event))
    same = codec._encode((1, codec._EVENT_CODES[kind], event, b""))
    assert (kept == same) is not has_words
    assert codec._DECODERS[codec._EVENT_CODES[kind]].decode(
        codec._decode_steps(b"\x91" + kept)[0][2]
    )


def _all_texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.astuple(value)
    if isinstance(value, tuple | frozenset):
        return [text for one in value for text in _all_texts(one)]
    return []


class Talkative(Recorded):
    """A dispatcher whose cluster says a lot; ``shown`` is whether a status had such words."""

    rng = Random(0)
    shown = False

    def step(self, event: Event, now: Instant) -> tuple[Command, ...]:
        commands = super().step(spoken(event, self.rng), now)
        statuses = [one.status for one in commands if isinstance(one, WriteStatus)]
        type(self).shown |= MARK in repr(statuses)
        return commands


def spoken(event: Any, rng: Random) -> Any:
    """The event with words of others, as the border reads them."""
    changed = {}
    for name in event.__struct_fields__:
        part = getattr(event, name)
        if isinstance(part, Child | Pod | Answer):
            changed[name] = spoken(part, rng)
        elif (type(event).__name__, name) in OF_OTHERS and rng.random() < 0.7:
            said = quoted(rng.choice(SAID))
            changed[name] = (said,) if name == "warnings" else said
    if isinstance(event, Pod) and not event.node and rng.random() < 0.5:
        words = f"container c: CreateContainerConfigError: {quoted(rng.choice(SAID))}"
        changed["stuck"] = Stuck(StuckReason.CONTAINER, words)
    return msgspec.structs.replace(event, **changed)


def talk(folder: Path, seed: int, limits: Limits) -> None:
    """A random life in which much is said and refused."""
    rng = Random(seed)
    journals: list[Journal] = []

    def lead(settings: Settings) -> Recorded:
        def begin(dispatcher: Any) -> Journal:
            for one in journals[-1:]:
                one.close()
            header = Header(f"leader-{len(journals)}", len(journals) + 1, settings)
            journals.append(Journal(folder, header, dispatcher.cluster, limits))
            return journals[-1]

        return Talkative(settings, begin)

    nodes = [node(f"n{number}", rng.randint(200, 900)) for number in range(4)]
    bench = Bench(settings=Settings(min_run_time=0), lead=lead, nodes=nodes)
    for _ in random_life(bench, rng, 40):
        reason, status = rng.choice((("InternalError", 500), ("Invalid", 422), ("Forbidden", 403)))
        bench.refuse("CreateItem", *islice([Answer(status, reason, "x")] * 3, rng.randint(0, 3)))
        bench.refuse("DeleteItem", *islice([Answer(500, "InternalError", "x")], rng.randint(0, 1)))
        flush(bench.dispatcher.journal)
    bench.dispatcher.journal.close()


@pytest.mark.parametrize("limits", [LARGE, SMALL], ids=["steps", "snapshots"])
@pytest.mark.parametrize("seed", budget.slow_but_first(range(3)))
def test_a_journal_decides_alike_without_them(tmp_path: Path, seed: int, limits: Limits) -> None:
    Talkative.shown = False
    talk(tmp_path, seed, limits)
    assert Talkative.shown, "no status had such words"
    kept = content(tmp_path)
    assert MARK not in kept
    assert BEGIN.encode().decode("latin-1") in kept
    found, wrong = sessions(tmp_path)
    assert not wrong
    alone = [Session(one.header, [path]) for one in found for path in one.files[1:]]
    assert len(files_of(tmp_path)) > 6 or limits is LARGE
    for session in (*found, *alone):
        again = list(replay(session))
        assert again
        assert not [one for one in again if isinstance(one, Gap) or one.differs]


def test_equal_words_stay_equal() -> None:
    kept = [without_words(f"x is refused: {quoted(one)}") for one in (*SAID, *SAID)]
    assert len(set(kept)) == len(SAID)
    assert kept[: len(SAID)] == kept[len(SAID) :]
    assert all(one.startswith("x is refused: ") for one in kept)
    assert MARK not in without_words(quoted(SAID[0])[:-10]), "of a text that was cut as well"


def test_a_snapshot_has_no_record_in_the_place_of_a_text() -> None:
    with pytest.raises(snapshot.CannotRestoreError, match="a text is no text"):
        snapshot.restore(b"\x80\x05K\x01Q.")
