"""deploy/helm/mcad/README.md: every value of the chart, its default, and its comment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tests.documents.pages import ROOT, code, escaped, table

CHART = ROOT / "deploy" / "helm" / "mcad"
PAGE = CHART / "README.md"

LONGEST = 80  # of a default in the table

_KEY = re.compile(r"(?P<indent> *)(?P<name>\w+):(?: |$)")
_PAGE = re.compile(r"\bdocs/[\w/-]+(?:\.md|/runbooks\b)")

Path = tuple[str, ...]


def generated() -> str:
    """The generated part of the page."""
    text = (CHART / "values.yaml").read_text()
    said = comments(text)
    rows = (
        (code(".".join(path)), shown, linked(escaped(said.get(path, ""))))
        for path, shown in _rows((), yaml.safe_load(text), said)
    )
    return "\n".join(table(("value", "default", "meaning"), rows))


def comments(text: str) -> dict[Path, str]:
    """By path, the comment right above a key; a blank line between them ends it."""
    found: dict[Path, str] = {}
    path: list[tuple[int, str]] = []
    waiting: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            waiting.append(line.lstrip(" #").rstrip())
            continue
        key = _KEY.match(line)
        if key is not None:
            indent = len(key["indent"])
            path = [one for one in path if one[0] < indent] + [(indent, key["name"])]
            found[tuple(name for _, name in path)] = " ".join(waiting)
        waiting = []
    return {where: said for where, said in found.items() if said}


def _rows(
    path: Path, values: Mapping[str, Any], said: Mapping[Path, str]
) -> Iterator[tuple[Path, str]]:
    """A map of which no part has a comment is one row."""
    for name, value in values.items():
        where = (*path, name)
        if not any(one[: len(where)] == where and one != where for one in said):
            yield where, _default(value)
            continue
        if where in said:
            yield where, ""
        yield from _rows(where, value, said)


def _default(value: object) -> str:
    if value == "":
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return code(text) if len(text) <= LONGEST else "[values.yaml](values.yaml)"


def linked(text: str) -> str:
    """With a link to each page of docs that is named."""
    return _PAGE.sub(lambda found: f"[{found[0]}](../../../{found[0]})", text)
