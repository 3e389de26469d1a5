"""Every command on a page is run, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip
from tests.documents.session import ROOT, Session, blocks

PAGES = [
    page
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        ROOT / "deploy/helm/mcad/README.md",
    )
    if blocks(page)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_happens(page: Path, tmp_path: Path) -> None:
    if all(block.reason for block in blocks(page)):
        return
    with Session(tmp_path, built_or_skip(binaries.ensure) / "kubectl") as session:
        session.play(page)


def test_what_is_not_run_says_why() -> None:
    said = [block.reason for page in PAGES for block in blocks(page) if block.reason]
    assert said
    assert [reason for reason in said if len(reason.split()) < 3] == []
