"""The recorded events given to the core as it is now."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mcad.core.dispatcher import Dispatcher
from mcad.core.state.settings import Settings
from tests.oracle.recording import BEGIN, END, EVENTS, SUFFIX, encoded, read
from tests.oracle.renames import FIELDS, TEXTS, WORDS

UNFIT = "unfit.json"
"""Dispatchers that tests reach into: on the recorded commit itself they did not repeat."""

_TEXTS = [(re.compile(old), new) for old, new in TEXTS]
_ARE_NAMES_OLD = bool(FIELDS or WORDS or TEXTS)


class Key(NamedTuple):
    """One Dispatcher of a recording."""

    file: str
    number: int


@dataclass
class Result:
    """What came of a comparison. ``differing`` holds the first difference of each Dispatcher."""

    dispatchers: int = 0
    steps: int = 0
    commands: int = 0
    differing: dict[Key, str] = field(default_factory=dict)


def compare(folder: Path, unfit: Iterable[Key] = ()) -> Result:
    """All of a folder, but for those that are unfit."""
    result, skipped = Result(), set(unfit)
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        _File(path.name, result, skipped).compare(path)
    return result


class _File:
    """One worker's recording; ``_cores`` are the Dispatchers of the present test."""

    def __init__(self, name: str, result: Result, skipped: set[Key]) -> None:
        self._name, self._result, self._skipped = name, result, skipped
        self._cores: dict[int, Dispatcher] = {}
        self._tests: dict[int, str] = {}

    def compare(self, path: Path) -> None:
        for kind, *value in read(path):
            if kind == END:
                self._cores.clear()
            elif kind == BEGIN:
                number, settings, test = value
                if Key(self._name, number) not in self._skipped:
                    self._cores[number] = Dispatcher(msgspec.convert(renamed(settings), Settings))
                    self._tests[number] = test
                    self._result.dispatchers += 1
            elif value[0] in self._cores:
                self._step(*value)

    def _step(self, number: int, now: int, code: int, event: Any, then: list[bytes]) -> None:
        result = self._result
        result.steps += 1
        result.commands += len(then)
        try:
            event = msgspec.convert(renamed(event), EVENTS[code])
            made = [encoded(one) for one in self._cores[number].step(event, now)]
        except Exception as error:  # noqa: BLE001 - what the core raises may differ, too
            found = [f"{type(error).__name__}: {error}"]
        else:
            found = list(differences(then, made))
        if found:
            del self._cores[number]
            where = f"{self._tests[number]}, at {now}: {type(event).__name__}"
            result.differing[Key(self._name, number)] = "\n  ".join((where, *found[:4]))


def differences(then: list[bytes], now: list[bytes]) -> Iterator[str]:
    """A line for each command that is another one."""
    if then == now and not _ARE_NAMES_OLD:
        return
    for number in range(max(len(then), len(now))):
        old = renamed(msgspec.msgpack.decode(then[number])) if number < len(then) else "nothing"
        new = msgspec.msgpack.decode(now[number]) if number < len(now) else "nothing"
        if old != new:
            yield f"command {number}: {_first_difference(old, new)}"


def _first_difference(old: Any, new: Any, where: str = "") -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                return _first_difference(old.get(key), new.get(key), f"{where}.{key}")
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                return _first_difference(one, other, f"{where}[{number}]")
    return f"{where}: {old!r} is now {new!r}"


def renamed(value: Any) -> Any:
    """With the names of today."""
    if not _ARE_NAMES_OLD:
        return value
    match value:
        case dict():
            return {FIELDS.get(key, key): renamed(one) for key, one in value.items()}
        case list():
            return [renamed(one) for one in value]
        case str():
            text = WORDS.get(value, value)
            for old, new in _TEXTS:
                text = old.sub(new, text)
            return text
        case _:
            return value


def write_unfit(folder: Path, keys: Iterable[Key]) -> None:
    """Those that are left out of every comparison."""
    (folder / UNFIT).write_text(json.dumps(sorted(keys)))


def read_unfit(folder: Path) -> list[Key]:
    """See ``write_unfit``."""
    return [Key(*one) for one in json.loads((folder / UNFIT).read_text())]
