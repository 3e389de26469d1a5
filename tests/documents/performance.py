"""docs/pictures/performance.svg: what docs/inside/performance.md says in two of its tables.

``python -m tests.documents.performance`` draws it anew. It reads the tables of the page, so
that both say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

from tests.documents.pages import DOCS

PAGE = DOCS / "inside" / "performance.md"
PICTURE = DOCS / "pictures" / "performance.svg"
RATES, WAITS = "## Dispatches per second", "### Baseline"
CLASSES = ("large", "medium", "small")

WIDTH, HEIGHT = 860, 400
TOP, FLOOR = 96, 350  # of both plots
BARS_LEFT, BARS_RIGHT = 40, 300
LINES_LEFT, LINES_RIGHT = 430, 830
NUMBER = re.compile(r"\d+(?:\.\d+)?")

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; }
  .dim { fill: #59636e; }
  .grid { stroke: #d1d9e0; }
  .c0 { fill: #8c959f; stroke: #8c959f; }
  .c1 { fill: #bc4c00; stroke: #bc4c00; }
  .c2 { fill: #0969da; stroke: #0969da; }
  .open { fill: #ffffff; }
  .paper { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .dim { fill: #9198a1; }
    .grid { stroke: #3d444d; }
    .c1 { fill: #f0883e; stroke: #f0883e; }
    .c2 { fill: #4493f8; stroke: #4493f8; }
    .open, .paper { fill: #0d1117; }
  }
"""


class Wait(NamedTuple):
    """How long workloads of a class waited in an arm: the median and p99, in seconds."""

    arm: str
    of: str
    p50: float
    p99: float


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, its head first."""
    _, found, rest = page.partition(f"\n{heading}")
    if not found:
        raise ValueError(f"the page has no heading {heading!r}")
    rows = []
    for line in rest.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return [rows[0], *rows[2:]]


def mean(cell: str) -> float:
    """The mean of the values of several runs."""
    return fmean(float(one) for one in NUMBER.findall(cell))


def rates(page: str) -> list[tuple[str, float, float]]:
    """Of each round: the bare client and the dispatcher, AppWrappers a second."""
    rows = table(page, RATES)[1:]
    return [(row[0], mean(row[1]), mean(row[2])) for row in rows if row[1]]


def waits(page: str) -> list[Wait]:
    """Of each class and arm."""
    head, *rows = table(page, WAITS)
    cells = {row[0]: row[1:] for row in rows}
    return [
        Wait(arm, of, mean(p50), mean(p99))
        for of in CLASSES
        for arm, p50, p99 in zip(
            head[1:], cells[f"{of}, first admission, s, p50"], cells[f"{of}, p99"], strict=True
        )
    ]


def picture(page: str) -> str:
    """The SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>Dispatches a second beside a bare client, and waits beside Kueue</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        *bars(rates(page)),
        *ranges(waits(page)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


# -- rate against ceiling --------------------------------------------------------------------------


def bars(found: list[tuple[str, float, float]]) -> Iterator[str]:
    """Two bars for each round."""
    yield text(BARS_LEFT, 30, "AppWrappers of one pod a second", "title")
    yield from legend(BARS_LEFT, ((0, "bare client: the ceiling"), (2, "mcad")))
    most = max(max(bare, ours) for _, bare, ours in found)
    space = (BARS_RIGHT - BARS_LEFT) / len(found)
    width = space / 3
    for number, (name, *values) in enumerate(found):
        left = BARS_LEFT + number * space + width / 2
        for colour, value in zip((0, 2), values, strict=True):
            height = (FLOOR - TOP - 20) * value / most
            at = f'x="{left:.0f}" y="{FLOOR - height:.0f}"'
            yield f'<rect class="c{colour}" {at} width="{width - 3:.0f}" height="{height:.0f}"/>'
            yield text(left + width / 2, FLOOR - height - 5, f"{value:.0f}", anchor="middle")
            left += width
        yield text(left - width, FLOOR + 20, f"round {name}", "dim", anchor="middle")


# -- waits by class --------------------------------------------------------------------------------


def ranges(found: list[Wait]) -> Iterator[str]:
    """A line from the median to p99 for each class and arm."""
    yield text(LINES_LEFT - 60, 30, "Kueue's baseline: seconds to the first admission", "title")
    arms = list(dict.fromkeys(one.arm for one in found))
    yield from legend(LINES_LEFT - 60, tuple(enumerate(arms)))
    most = max(one.p99 for one in found)
    step = next(each for each in (10, 20, 50, 100, 200, 500, 1000) if most / each <= 6)

    def x(value: float) -> float:
        return LINES_LEFT + (LINES_RIGHT - LINES_LEFT) * value / most

    for value in range(0, int(most) + 1, step):
        line = f'x1="{x(value):.0f}" x2="{x(value):.0f}" y1="{TOP}" y2="{FLOOR}"'
        yield f'<line class="grid" {line}/>'
        yield text(x(value), FLOOR + 20, str(value), "dim", anchor="middle")
    row = (FLOOR - TOP) / len(CLASSES)
    for place, of in enumerate(CLASSES):
        middle = TOP + (place + 0.5) * row
        yield text(LINES_LEFT - 60, middle + 5, of)
        for number, one in enumerate(each for each in found if each.of == of):
            y = middle + (number - (len(arms) - 1) / 2) * row / (len(arms) + 1)
            line = f'x1="{x(one.p50):.0f}" x2="{x(one.p99):.0f}" y1="{y:.0f}" y2="{y:.0f}"'
            yield f'<line class="c{number}" stroke-width="2" {line}/>'
            yield f'<circle class="c{number}" cx="{x(one.p50):.0f}" cy="{y:.0f}" r="5"/>'
            end = f'cx="{x(one.p99):.0f}" cy="{y:.0f}" r="4" stroke-width="2"'
            yield f'<circle class="c{number} open" {end}/>'
    yield text(LINES_RIGHT, FLOOR + 42, "filled: median; open: p99", "dim", anchor="end")


def legend(left: float, entries: tuple[tuple[int, str], ...]) -> Iterator[str]:
    """What each colour is."""
    for colour, name in entries:
        yield f'<rect class="c{colour}" x="{left:.0f}" y="48" width="12" height="12"/>'
        yield text(left + 18, 59, name)
        left += 18 + 7.2 * len(name) + 20


def text(x: float, y: float, said: str, kind: str = "", *, anchor: str = "start") -> str:
    """A line of text."""
    named = f' class="{kind}"' if kind else ""
    where = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"'
    return f"<text {where}{named}>{said}</text>"


if __name__ == "__main__":
    PICTURE.write_text(picture(PAGE.read_text()))
