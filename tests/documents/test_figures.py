"""Figures that stand on several pages come from one file (docs/inside/figures.yaml) and agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.documents.pages import DOCS, ROOT

FIGURES: dict[str, Any] = yaml.safe_load((DOCS / "inside" / "figures.yaml").read_text())
NUMBER = r"[\d,.]+(?: to [\d,.]+|(?:, [\d.]+)+)?"


def places() -> Iterator[tuple[str, str, str]]:
    """The name of each figure, a page, and the text there."""
    for name, one in FIGURES.items():
        for page, texts in one["stands"].items():
            for text in [texts] if isinstance(texts, str) else texts:
                yield name, page, text


def filled(name: str, text: str) -> str:
    """The text with its figure."""
    one = FIGURES[name]
    runs = one.get("runs", [])
    shown = one["is"] if "is" in one else f"{min(runs)} to {max(runs)}"
    return text.replace("{runs}", ", ".join(map(str, runs))).replace("{}", shown)


def stated(page: str, text: str) -> list[str]:
    """All that the page states at such places, whatever the figure."""
    pattern = re.escape(text).replace(r"\{runs\}", NUMBER).replace(r"\{\}", NUMBER)
    return re.findall(pattern, page)


@pytest.mark.parametrize(("name", "page", "text"), list(places()))
def test_a_page_states_the_figure_of_the_file(name: str, page: str, text: str) -> None:
    whole = " ".join((ROOT / page).read_text().split())
    assert stated(whole, text) == [filled(name, text)]


def test_another_figure_is_found() -> None:
    assert stated("| x | 82 to 90 |", "| x | {} |") == ["| x | 82 to 90 |"]
    name = "one-pod AppWrappers a second, 2 cores, submission included"
    assert filled(name, "| {} |") == "| 64 to 92 |"
    assert stated("| wall | 1, 2, 3 |", "| wall | {runs} |") == ["| wall | 1, 2, 3 |"]


def test_a_figure_stands_on_more_than_one_page() -> None:
    assert all(len(one["stands"]) > 1 for one in FIGURES.values())
