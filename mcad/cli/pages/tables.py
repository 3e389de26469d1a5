"""Formats output: aligned columns, ages and amounts; JSON and YAML for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from mcad.cli.pages.colours import PLAIN, Palette, printable, style
from mcad.cli.pages.human_amounts import human_amount
from mcad.kube.durations import human

NONE, UNKNOWN = "<none>", "<unknown>"
GAP = "   "

Row = Sequence[str]


def table(
    titles: Row, rows: Iterable[Row], *, headers: bool = True, palette: Palette = PLAIN
) -> list[str]:
    """Lines with aligned columns, without trailing blanks."""
    return Columns(titles, palette).lines(rows, headers=headers)


class Columns:
    """Columns that keep their positions when more rows are printed below, or get wider."""

    def __init__(self, titles: Row, palette: Palette = PLAIN) -> None:
        """A column is at least as wide as its title, if titles are printed."""
        self._titles = titles
        self._palette = palette
        self._widths = [0] * len(titles)

    def lines(self, rows: Iterable[Row], *, headers: bool) -> list[str]:
        """The lines of these rows, below the titles if ``headers``."""
        cells = [[printable(cell) for cell in row] for row in rows]
        for row in [self._titles, *cells] if headers else cells:
            self._widths = [
                max(width, len(cell)) for width, cell in zip(self._widths, row, strict=True)
            ]
        lines = [self._line(row) for row in cells]
        return [self._pad(self._titles, self._titles), *lines] if headers else lines

    def _line(self, cells: Row) -> str:
        if not self._palette.enabled:
            return self._pad(cells, cells)
        row = dict(zip(self._titles, cells, strict=True))
        painted = [self._palette.paint(row[title], style(title, row)) for title in self._titles]
        return self._pad(cells, painted)

    def _pad(self, cells: Row, painted: Row) -> str:
        """Pad cells with blanks; colour codes do not count."""
        padded = (
            look + " " * (width - len(cell))
            for cell, look, width in zip(cells, painted, self._widths, strict=True)
        )
        return GAP.join(padded).rstrip()


def shortened(text: str, width: int) -> str:
    """At most ``width`` characters, ending in three dots if cut."""
    if len(text) <= width:
        return text
    return text[: width - 3] + "..." if width > 6 else text[:width]


def cut(title: str, text: str, width: int) -> str:
    """Shorten a cell; names differ at their end, so their middle is left out."""
    if title != "NAME" or len(text) <= width:
        return shortened(text, width)
    tail = (width - 3) // 2
    return f"{text[: width - 3 - tail]}...{text[-tail:]}"


def echo(lines: Iterable[str]) -> None:
    """Print lines on stdout, with the colours they have."""
    text = "\n".join(lines)
    if text:
        click.echo(text, color=True)


def echo_structured(value: Any, form: str) -> None:
    """Print a value as ``json`` or ``yaml``."""
    if form == "json":
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))
    else:
        import yaml  # noqa: PLC0415 - takes a tenth of a second

        click.echo(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), nl=False)


def amounts(quantities: Mapping[str, str] | None) -> str:
    """``cpu=200m,memory=512Mi``: one word, in the given order; None is unknown."""
    if quantities is None:
        return UNKNOWN
    return (
        ",".join(f"{name}={human_amount(name, value)}" for name, value in quantities.items())
        or NONE
    )


def until(instant: str, now_us: int) -> str:
    """The time to an RFC 3339 instant, like ``age``; 0s if it has passed."""
    try:
        at = datetime.fromisoformat(instant).timestamp()
    except ValueError:
        return UNKNOWN
    return human(max(0, round(at - now_us / 1e6)))


def age(since: str | None, now_us: int) -> str:
    """The time since an RFC 3339 instant in kubectl's format; never negative."""
    if not since:
        return UNKNOWN
    try:
        began = datetime.fromisoformat(since).timestamp()
    except ValueError:
        return UNKNOWN
    return human(max(0, int(now_us / 1e6 - began)))
