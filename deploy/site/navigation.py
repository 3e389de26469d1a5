"""The navigation of the site: sections are the folders of docs/, in the order of a reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SECTIONS = {
    "Start": "start",
    "Use": "use",
    "Operate": "operate",
    "Reference": "reference",
    "Coming from": "coming-from",
    "Inside": "inside",
    "Decisions": "adr",
}

FIRST = (
    "quickstart.md",
    "concepts.md",
    "first-gang.md",
    "first-quotas.md",
    "kubernetes.md",
    "openshift.md",
    "appwrappers.md",
    "why.md",
    "command-line.md",
    "page.md",
    "priorities.md",
    "quotas.md",
    "reservations.md",
    "autoscaling.md",
    "retries.md",
    "python.md",
    "samples.md",
    "install.md",
    "troubleshooting.md",
    "monitoring.md",
    "high-availability.md",
    "sizing.md",
    "security.md",
    "appwrapper.md",
    "cli.md",
    "settings.md",
    "mcad.md",
    "kueue.md",
    "slurm.md",
    "architecture.md",
    "walk.md",
    "adding.md",
    "testing.md",
    "rules.md",
)
"""Pages that lead their section; the others follow by name."""

INDEX = "README.md"


def on_config(config: Any) -> Any:
    """Make the navigation of the files that there are."""
    docs = Path(config["docs_dir"])
    top = [one.name for one in sorted(docs.glob("*.md")) if one.name != "index.md"]
    config["nav"] = [
        {"Home": "index.md"},
        *({title: _pages(docs, docs / folder)} for title, folder in SECTIONS.items()),
        *top,
    ]
    return config


def _pages(docs: Path, folder: Path) -> list[Any]:
    """The pages of a folder, then its folders."""
    pages = sorted(folder.glob("*.md"), key=_rank)
    folders = sorted(one for one in folder.iterdir() if one.is_dir())
    return [
        *(str(one.relative_to(docs)) for one in pages),
        *({one.name.capitalize(): _pages(docs, one)} for one in folders),
    ]


def _rank(page: Path) -> tuple[bool, int, str]:
    place = FIRST.index(page.name) if page.name in FIRST else len(FIRST)
    return page.name != INDEX, place, page.name
