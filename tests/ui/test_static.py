"""Vendored files are those of their packages, and they ship with the package."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

from mcad.ui.server import STATIC

FOLDER = Path(str(files("mcad.ui"))) / "static"
LISTED = re.compile(r"^\| `(\S+)` \| .* \| `([0-9a-f]{64})` \|$", re.MULTILINE)


@pytest.mark.parametrize("folder", [FOLDER, Path("tests/ui/vendor")])
def test_vendored_files_have_the_hashes_of_their_readme(folder: Path) -> None:
    listed = dict(LISTED.findall((folder / "README.md").read_text()))
    own = {"ui.css", "ui.js", "README.md", "LICENSE"}
    assert listed.keys() == {one.name for one in folder.iterdir()} - own
    for name, wanted in listed.items():
        assert sha256((folder / name).read_bytes()).hexdigest() == wanted, name


def test_every_file_of_the_page_is_served() -> None:
    assert STATIC.keys() == {one.name for one in FOLDER.iterdir()} - {"README.md"}
