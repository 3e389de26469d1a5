"""docs/reference/conditions.md: every condition of an AppWrapper with its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcad.core.state.condition_reasons import FALSE, MEANING, TRUE
from mcad.core.state.reasons import ConditionType
from tests.documents.pages import DOCS, code, table

PAGE = DOCS / "reference" / "conditions.md"


def generated() -> str:
    """The generated part of the page."""
    return "\n".join(line for kind in ConditionType for line in _section(kind))


def _section(kind: ConditionType) -> Iterator[str]:
    yield from (f"## {kind}", "", MEANING[kind], "")
    rows = [*_rows("True", TRUE.get(kind, {})), *_rows("False", FALSE.get(kind, {}))]
    yield from (*table(("status", "reason", "meaning"), rows), "")


def _rows(status: str, reasons: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    yield from ((status, code(reason), meaning) for reason, meaning in reasons.items())
