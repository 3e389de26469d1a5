"""The order of the first list after a crash that lost the first status of some AppWrappers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Raw

from mcad.controller.initial_lists import FED_AT_ONCE, FirstList
from mcad.controller.other_controllers import Write
from mcad.kube.document import Document
from mcad.kube.kinds import APPWRAPPERS
from tests.controller.clock import LoopClock

Json = dict[str, Any]


def appwrapper(name: str, second: int, version: int, first_seen: str = "") -> Json:
    """An AppWrapper created in this second of a minute."""
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": f"2026-01-01T00:00:{second:02}Z",
        },
        "spec": {},
        "status": {"state": "Pending", "controllerfirsttimestamp": first_seen}
        if first_seen
        else {},
    }


def held(name: str, second: int, version: int, first_seen: str = "") -> Document:
    obj = appwrapper(name, second, version, first_seen)
    return Document(Raw(json.dumps(obj).encode()), APPWRAPPERS)


class Rig:
    """A first list, and the AppWrappers that it fed."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.judged: list[int] = []
        self.meanwhile: dict[str, Callable[[], object]] = {}
        self.first = FirstList(self._judge, self._seen, LoopClock())

    def _judge(self, writes: Iterable[Write]) -> None:
        assert not self.told
        self.judged.append(len(list(writes)))

    def _seen(self, document: Document) -> None:
        self.told.append(f"{document.identity.name}@{document.identity.version}")
        self.meanwhile.get(self.told[-1], lambda: None)()


async def feed(first: FirstList) -> int:
    """How many turns others had."""
    feeding, turns = asyncio.ensure_future(first.feed()), 0
    while not feeding.done():
        await asyncio.sleep(0)
        turns += 1
    await feeding
    return turns


async def test_what_is_not_on_record_is_new_within_its_second_only() -> None:
    """A status write raises the version, so within a second those on record go first; but an older
    second stays older, on record or not.
    """
    rig = Rig()
    rig.first.put(held("third", 5, 12))
    rig.first.put(held("second", 5, 30, "2026-01-01T00:00:05.000007Z"))
    rig.first.put(held("fourth", 5, 13))
    rig.first.put(held("first", 1, 10))
    await feed(rig.first)
    assert rig.told == ["first@10", "second@30", "third@12", "fourth@13"]


async def test_it_is_judged_as_a_whole_and_then_fed_in_order() -> None:
    rig = Rig()
    for name, second, version in (("c", 7, 3), ("a", 5, 9), ("d", 7, 4), ("b", 6, 1), ("x", 1, 2)):
        rig.first.put(held(name, second, version))
    assert rig.first.drop("uid-x")
    assert not rig.first.drop("uid-y")
    await feed(rig.first)
    assert rig.judged == [4]
    assert rig.told == ["a@9", "b@1", "c@3", "d@4"]


async def test_others_have_their_turns_while_it_is_fed() -> None:
    rig = Rig()
    for number in range(5 * FED_AT_ONCE):
        rig.first.put(held(f"a{number}", 5, number + 1))
    assert await feed(rig.first) >= 5
    assert len(rig.told) == 5 * FED_AT_ONCE


async def test_what_happens_while_it_is_fed_does_not_overtake() -> None:
    """A change of one that waits, of one that was told, a new one, and deletions of each."""
    rig = Rig()
    for number in range(3 * FED_AT_ONCE):
        rig.first.put(held(f"a{number:02}", 5, number + 1))
    last = 3 * FED_AT_ONCE - 1
    drops: list[bool] = []

    def meddle() -> None:
        rig.first.put(held("new", 1, 100))
        rig.first.put(held("a00", 5, 101))
        rig.first.put(held(f"a{last}", 5, 102))
        drops.extend(rig.first.drop(f"uid-a{number:02}") for number in (1, 20))
        rig.first.put(held("brief", 5, 103))
        drops.append(rig.first.drop("uid-brief"))

    rig.meanwhile["a09@10"] = meddle
    await feed(rig.first)
    names = [one.partition("@")[0] for one in rig.told]
    expected = [f"a{number:02}" for number in range(last + 1) if number != 20]
    assert names == [*expected, "new", "a00"]
    assert f"a{last}@102" in rig.told
    assert drops == [False, False, False]  # deletions are told, as they may have been heard of
