"""When a browser first paints the page of ``mcad ui``, with 10,000 AppWrappers.

    python -m benchmarks.first_paint [--appwrappers 10000] [--loads 10]

Debian's chromium loads the page of ``page_cost.py`` again and again, each time with an empty cache.
Printed is the browser's own *first contentful paint*, in milliseconds from the request on: the
first one, which waits until the figures are computed, and the others. The goal is 1,000.
"""

from __future__ import annotations

import argparse
import asyncio
from statistics import median

from benchmarks.page_cost import cluster
from tests.ui.opened import Page, opened
from tests.ui.test_browser import Browser, browsing

PAINTED = """
() => new Promise(done => new PerformanceObserver(list => {
  for (const one of list.getEntries())
    if (one.name === "first-contentful-paint") done(one.startTime)
}).observe({type: "paint", buffered: true}))
"""


async def painted(browser: Browser, page: Page) -> float:
    """Load the page once; when it was painted."""
    async with browser.at(page) as seen:
        return float(await seen.tab.evaluate(PAINTED))


async def measure(count: int, loads: int) -> None:
    """Load it so often, one after the other."""
    async with opened(cluster(count)) as page, browsing() as browser:
        first, *others = [await painted(browser, page) for _ in range(loads)]
    print(f"{count} AppWrappers: first load {first:.0f} ms")
    print(f"then, of {len(others)}: median {median(others):.0f} ms, most {max(others):.0f} ms")


def main() -> None:
    """Measure as often as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appwrappers", type=int, default=10_000)
    parser.add_argument("--loads", type=int, default=10)
    options = parser.parse_args()
    asyncio.run(measure(options.appwrappers, max(options.loads, 2)))


if __name__ == "__main__":
    main()
