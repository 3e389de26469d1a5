"""docs/reference/events.md: every Event that the dispatcher records."""

from __future__ import annotations

from mcad.core.state.reasons import EventReason
from tests.documents.pages import DOCS, code, table

PAGE = DOCS / "reference" / "events.md"


def generated() -> str:
    """The generated part of the page."""
    rows = ((code(one), one.type, one.meaning) for one in EventReason)
    return "\n".join(table(("reason", "type", "meaning"), rows))
