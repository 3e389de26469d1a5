"""What reading an object takes of the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.api.sources import load
from mcad.controller.event_translation import Readers

EVICTS = "autopilot.resourceTaints={cpu: [{key: a.b/health, value: BAD, effect: NoExecute}]}"


@pytest.mark.parametrize(
    ("sets", "evicts"),
    [
        ([EVICTS], ("cpu",)),
        ([EVICTS, "autopilot.monitorNodes=false"], ()),
        ([], ()),
    ],
)
def test_which_nodes_have_to_be_left_is_configured(sets: list[str], evicts: Any) -> None:
    readers = Readers.of(load(sets=sets), lambda _: pytest.fail("no AppWrapper is read"))
    node = {"metadata": {"name": "n", "labels": {"a.b/health": "BAD"}}}
    assert readers.node(node).evicts == evicts
