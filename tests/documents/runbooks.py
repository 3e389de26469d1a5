"""docs/operate/runbooks/README.md: what every alert was tried with."""

from __future__ import annotations

from tests.chart.recording import FAULTS
from tests.documents.pages import DOCS, table

PAGE = DOCS / "operate" / "runbooks" / "README.md"


def generated() -> str:
    """The generated part of the page."""
    head = ("alert", "the fault", "fires within", "clears within")
    rows = ((one.alert, one.what, f"{one.lasts} min", f"{one.clears} min") for one in FAULTS)
    return "\n".join(table(head, rows))
