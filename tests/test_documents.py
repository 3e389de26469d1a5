"""Generated pages say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from mcad.core.lifecycle import Signal
from mcad.core.quota.trees import Flaw
from tests.documents import LIFECYCLE, MEANING, lifecycle, whole


def test_the_page_of_the_lifecycle_is_that_of_the_table() -> None:
    assert LIFECYCLE.read_text() == whole(LIFECYCLE, lifecycle()), "python -m tests.documents"


def test_what_can_be_wrong_with_a_quota_tree_is_explained() -> None:
    page = (Path(__file__).parents[1] / "docs/quota.md").read_text()
    assert set(re.findall(r"^\| `([A-Z]\w+)` \|", page, re.MULTILINE)) == {*Flaw}


def test_every_signal_has_a_meaning() -> None:
    assert MEANING.keys() == set(Signal)
