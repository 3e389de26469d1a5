"""What is known of each AppWrapper's version: which observations are the past (protocol P13)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.controller.mirror import Manifests, Mirror, Reflection
from tests.core.bench import workload


def known(mirror: Mirror, name: str, namespace: str, version: str) -> Reflection:
    work = replace(workload(name, 1), namespace=namespace)
    seat = Reflection(work, Manifests.of(()), b"", version=version, status_mark=b"")
    mirror.put(work.uid, seat)
    seat.reached(version)
    return seat


def test_a_list_is_believed_for_its_namespace_and_for_no_other() -> None:
    """The server was restored from a backup; the list of the other namespace is yet to come, and
    its old watch may still tell of the past."""
    mirror = Mirror()
    here, there = known(mirror, "a", "one", "50"), known(mirror, "b", "two", "60")
    mirror.rewind("one")
    assert (here.precedes("7"), there.precedes("7")) == (False, True)
    mirror.rewind("")
    assert not there.precedes("7")


def test_what_is_older_than_our_own_write_is_the_past() -> None:
    mirror = Mirror()
    seat = known(mirror, "a", "one", "50")
    mirror.written("uid-a", "70", b"mark")
    assert [seat.precedes(version) for version in ("60", "70", "71")] == [True, True, False]
    mirror.written("uid-a", "65", b"late")  # an answer that was overtaken
    assert (seat.version, seat.status_mark) == ("70", b"mark")


def test_versions_that_are_no_numbers_are_never_older() -> None:
    seat = known(Mirror(), "a", "one", "abc")
    assert [seat.precedes(version) for version in ("abc", "abb", "7")] == [True, False, False]


def test_manifests_are_what_they_were_and_short() -> None:
    texts = (b'{"kind":"Job","spec":"' + b"x" * 5000 + b'"}', b"{}")
    manifests = Manifests.of(texts)
    assert manifests.texts() == texts
    assert manifests.text(1) == b"{}"
    assert sum(map(len, manifests.packed)) < 100
    assert Manifests.of(()).texts() == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"runtimeClassName":"kata"}', True),
        (b'{"priorityClassName":"high"}', True),
        (b'{"preemptionPolicy":"Never"}', True),
        (b'{"preemptionPolicy":"PreemptLowerPriority","storageClassName":"x"}', False),
    ],
)
def test_manifests_that_name_a_class_may_have_defaults(text: bytes, expected: bool) -> None:
    assert Manifests.of([b"{}", text]).may_have_defaults is expected
