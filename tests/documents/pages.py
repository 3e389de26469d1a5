"""A page in two parts: prose, and between two marks what the code says of itself."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

WIDTH = 120

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"


def whole(page: Path, generated: str) -> str:
    """The page with its generated part as it should be."""
    before, begins, rest = page.read_text().partition(BEGIN)
    _, ends, after = rest.partition(END)
    if not (begins and ends):
        raise ValueError(f"{page} has no line {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{generated.strip()}\n\n{END}{after}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(map(cell, row))} |" for row in rows)


def cell(text: str) -> str:
    """A text in one cell: one line, without marks of the table."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """A text in code font; nothing stays nothing."""
    return f"`{text}`" if text else ""


def escaped(text: str) -> str:
    """A plain text in Markdown: ``<total>`` is no mark of HTML there, unless in code font."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


def wrapped(text: str) -> list[str]:
    """A paragraph as lines of the width of our pages."""
    return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
