"""Generated pages say what the code says."""

from __future__ import annotations

from mcad.core.lifecycle import Signal
from tests.documents import LIFECYCLE, MEANING, lifecycle, whole


def test_the_page_of_the_lifecycle_is_that_of_the_table() -> None:
    assert LIFECYCLE.read_text() == whole(LIFECYCLE, lifecycle()), "python -m tests.documents"


def test_every_signal_has_a_meaning() -> None:
    assert MEANING.keys() == set(Signal)
