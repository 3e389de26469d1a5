"""docs/reference/metrics.md: every metric with its labels, and the values of ``reason``."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.controller.metrics.appwrappers import NO_REASON
from mcad.controller.metrics.declared import LIBRARY, SECTIONS
from mcad.controller.metrics.turnover import CAUSES, COMPLETED, DELETED, EVICTIONS, READ_ANEW
from tests.documents.pages import DOCS

PAGE = DOCS / "reference" / "metrics.md"


def generated() -> str:
    """The generated part of the page."""
    return "\n".join((*_sections(), *_library(), *_values(), ""))


def _sections() -> Iterator[str]:
    for title, section in SECTIONS.items():
        yield from (
            f"## {title}",
            "",
            "| metric | kind | labels | what it says |",
            "|---|---|---|---|",
        )
        for one in section:
            labels = ", ".join(f"`{label}`" for label in one.labels)
            yield f"| `{one.name}` | {one.kind} | {labels} | {one.help} |"
        yield ""


def _library() -> Iterator[str]:
    yield from ("From the client library:", "", "| metric | what it says |", "|---|---|")
    yield from (f"| `{name}` | {text} |" for name, text in LIBRARY.items())
    yield ""


def _values() -> Iterator[str]:
    """The values of ``reason`` that are no reasons of docs/reference/lifecycle.md."""
    yield from ("## Reasons", "", "| of `mcad_pending_appwrappers` | it waits |", "|---|---|")
    yield "| the codes of [the life of an AppWrapper](lifecycle.md) | as the table there says |"
    yield from (f"| `{reason}` | {text} |" for reason, text in NO_REASON.items())
    causes = ", ".join(f"`{one}`" for one in CAUSES)
    evictions = ", ".join(f"`{one}`" for one in EVICTIONS)
    ends = ", ".join(f"`{one}`" for one in (COMPLETED, DELETED, READ_ANEW))
    yield from ("", "| metric | its reasons |", "|---|---|")
    yield f"| `mcad_requeued_total` | {causes} |"
    yield f"| `mcad_preempted_total` | {evictions} |"
    yield f"| `mcad_finished_total` | {ends}, and those of `mcad_requeued_total` |"
