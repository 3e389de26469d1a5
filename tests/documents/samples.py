"""docs/use/samples.md: every sample, by the first two lines of its file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.documents.pages import DOCS, ROOT, table

PAGE = DOCS / "use" / "samples.md"
SAMPLES = ROOT / "samples"
TOP = re.compile(r"# Shows: (?P<shows>.+)\.\n# Needs: (?P<needs>.+)\.\n")


def generated() -> str:
    """The generated part of the page."""
    return "\n".join(table(("sample", "dialect", "what it shows", "needs"), _rows()))


def _rows() -> Iterator[tuple[str, str, str, str]]:
    paths = SAMPLES.rglob("*.yaml")
    for path in sorted(paths, key=lambda one: (len(one.parts), one.stem)):
        yield _link(path), _dialect(path), *_top(path)


def _top(path: Path) -> tuple[str, str]:
    """What a sample shows and what it needs, from its first two lines."""
    found = TOP.match(path.read_text())
    assert found, f"{path} has to begin with # Shows: ... and # Needs: ..."
    return found["shows"], "" if found["needs"] == "nothing" else found["needs"]


def _link(path: Path) -> str:
    name = path.relative_to(SAMPLES).as_posix()
    return f"[{name.removesuffix('.yaml')}](../../samples/{name})"


def _dialect(path: Path) -> str:
    """``v1beta1`` has resources, v1beta2 components; other kinds have no dialect."""
    specs = [one["spec"] for one in yaml.safe_load_all(path.read_text())]
    dialects = {"v1beta1": "resources", "v1beta2": "components"}
    return next((name for name, field in dialects.items() if field in specs[0]), "")
