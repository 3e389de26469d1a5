"""Fits a table into a width: columns are shortened first, then left out."""

from __future__ import annotations

from collections.abc import Sequence

from mcad.cli.tables import GAP, shortened

Cells = tuple[str, ...]

# Which columns may be shortened, and to how many characters; then, which may be left out.
_LEAST = {"DEMAND": 12, "NAME": 20}
_SPARE = ("PRIORITY", "DEMAND")


def fitted(titles: Cells, rows: Sequence[Cells], width: int) -> tuple[Cells, list[Cells]]:
    """The table in ``width`` characters, or as close as possible."""
    for gone in range(len(_SPARE) + 1):
        kept = [n for n, title in enumerate(titles) if title not in _SPARE[:gone]]
        columns = [(titles[n], *(row[n] for row in rows)) for n in kept]
        widths = [max(map(len, column)) for column in columns]
        over = sum(widths) + len(GAP) * (len(widths) - 1) - width
        for n, column in enumerate(columns):
            spare = min(widths[n] - _LEAST.get(column[0], widths[n]), over)
            if spare > 0:
                columns[n] = tuple(_cut(column[0], cell, widths[n] - spare) for cell in column)
                over -= spare
        if over <= 0:
            break
    head, *lines = zip(*columns, strict=True)
    return head, lines


def _cut(title: str, text: str, width: int) -> str:
    """Shorten a cell; names differ at their end, so their middle is left out."""
    if title != "NAME" or len(text) <= width:
        return shortened(text, width)
    tail = (width - 3) // 2
    return f"{text[: width - 3 - tail]}...{text[-tail:]}"
