"""The embedded API server answers as kube-apiserver does, request by request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.contract.all_scripts import OVER_HTTP, SCRIPTS
from tests.contract.compare import compared
from tests.contract.conftest import Sides
from tests.contract.known import KNOWN, Known
from tests.contract.normal import DROPPED, Names
from tests.contract.runner import Answer
from tests.contract.script import Script

pytestmark = pytest.mark.controlplane

DOCS = Path(__file__).parents[2] / "docs" / "inside" / "simulator.md"
REASONS = {known.why for known in KNOWN} | set(DROPPED.values())

_met: set[Known] = set()
_REPORTED = 40  # differences of one script; more do not help

WAYS = [(name, "in process") for name in SCRIPTS] + [(name, "over HTTP") for name in OVER_HTTP]


@pytest.mark.parametrize(("name", "way"), sorted(WAYS))
def test_alike(name: str, way: str, sides: Sides) -> None:
    script = SCRIPTS[name]
    found = list(_unknown(script, sides.real[name], sides.embedded[way][name]))
    text = "\n".join(found[:_REPORTED])
    assert not found, f"{len(found)} differences in {name} ({script.namespace}):\n{text}"


def test_no_known_difference_is_stale(request: pytest.FixtureRequest, sides: Sides) -> None:
    chosen = {item.name for item in request.session.items}
    if not {f"test_alike[{name}-{way}]" for name, way in WAYS} <= chosen:
        pytest.skip("only a part of the scripts was selected")
    assert [known for known in KNOWN if known not in _met] == []


def test_the_docs_name_every_known_difference() -> None:
    text = " ".join(DOCS.read_text().split())
    assert [reason for reason in REASONS if reason not in text] == []


def _unknown(script: Script, real: Sequence[Answer], embedded: Sequence[Answer]) -> list[str]:
    lines: list[str] = []
    names = Names(real, script.name_bases()), Names(embedded, script.name_bases())
    for step, left, right in zip(script.steps, real, embedded, strict=True):
        fresh = []
        for difference in compared(names[0].normal(left), names[1].normal(right)):
            known = [one for one in KNOWN if one.covers(script.name, step.label, difference.path)]
            _met.update(known)
            if not known:
                fresh.append(f"    {difference}")
        if fresh:
            lines.append(
                f"  {step.number} {step.label}: {step.method} {step.path} {dict(step.params)}"
            )
            lines += fresh
    return lines
