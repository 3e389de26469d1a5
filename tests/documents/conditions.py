"""docs/reference/conditions.md: every condition of an AppWrapper with its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcad.core.state.condition_reasons import FALSE, MEANING, TRUE
from mcad.core.state.reasons import ConditionType
from mcad.core.state.waiting_reason import WaitingReason
from tests.documents.pages import DOCS, code, table, wrapped

PAGE = DOCS / "reference" / "conditions.md"


def generated() -> str:
    """The generated part of the page."""
    lines = [line for kind in ConditionType for line in _section(kind)]
    return "\n".join((*lines, *_codes()))


def _section(kind: ConditionType) -> Iterator[str]:
    yield from (f"## {kind}", "", MEANING[kind], "")
    rows = [*_rows("True", TRUE.get(kind, {})), *_rows("False", FALSE.get(kind, {}))]
    yield from (*table(("status", "reason", "meaning"), rows), "")


def _rows(status: str, reasons: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    yield from ((status, code(reason), meaning) for reason, meaning in reasons.items())


def _codes() -> Iterator[str]:
    yield from (
        "## Codes of waiting",
        "",
        *wrapped(
            "What an AppWrapper waits for, in the column WAITS-FOR of `mcad queue`, in metrics, "
            "and in answers of `mcad why`. WAITS-FOR names the resource, such as `cpu`, instead "
            "of `insufficient`, and the node of a quota tree instead of `quota`."
        ),
        "",
    )
    rows = ((code(one), one.meaning, one.ends) for one in WaitingReason)
    yield from table(("code", "meaning", "what ends it"), rows)
