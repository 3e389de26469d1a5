"""Pages that are generated from the code: ``python -m tests.documents`` writes them anew.

A page has its prose, and between two marks what the code says of itself (``pages``). Each other
module has one page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.documents import (
    cli,
    clusters,
    conditions,
    events,
    fields,
    http,
    lifecycle,
    metrics,
    runbooks,
    samples,
    settings,
    values,
)

PAGES: Mapping[Path, Callable[[], str]] = {
    one.PAGE: one.generated
    for one in (
        cli,
        clusters,
        conditions,
        events,
        fields,
        http,
        lifecycle,
        metrics,
        runbooks,
        samples,
        settings,
        values,
    )
}
"""By page, the text of its generated part."""
