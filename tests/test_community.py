"""Forms of issues are readable for the forge, and name commands and pages that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yaml"))
KINDS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_is_complete(path: Path) -> None:
    form: dict[str, Any] = yaml.safe_load(path.read_text())
    fields = [one for one in form["body"] if one["type"] != "markdown"]

    assert {"name", "description", "labels", "body"} == set(form)
    assert {one["type"] for one in form["body"]} <= KINDS
    assert len({one["id"] for one in fields}) == len(fields)
    assert all(one["attributes"]["label"] for one in fields)


@pytest.mark.parametrize("path", [*FORMS, *sorted((ROOT / ".github").glob("*.md"))])
def test_it_names_what_exists(path: Path) -> None:
    text = path.read_text()

    assert {one for one in re.findall(r"`mcad (\w[\w-]*)", text) if one not in COMMANDS} == set()
    named = re.findall(r"\b(?:docs/[\w/-]+\.md|[A-Z]+\.md)\b", text)
    assert [one for one in named if not (ROOT / one).exists()] == []
