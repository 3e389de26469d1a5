"""Files outside docs/ that pages link to: each one becomes a page of the site.

So the site is complete wherever it is served, and no address of a repository is in it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PREFIX = "files"
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}
CODE = tuple(f"{one}.md" for one in LANGUAGES)
NOT_FOUND_BY_SEARCH = "---\nsearch:\n  exclude: true\n---\n"


def on_files(files: Files, *, config: Any) -> Files:
    """Add a page for every file that is linked, also from such a page."""
    seen: set[Path] = set()
    todo = [target for page in DOCS.rglob("*.md") for target in _outside(page)]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        if path.is_dir():
            todo += _members(path)
        elif path.suffix == ".md":
            todo += _outside(path)
        one = File.generated(config, _uri(path), content=_content(path))
        one.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(one)
    for asset in (ROOT / "build" / "mermaid.min.js", ROOT / "deploy" / "site" / "site.css"):
        files.append(File.generated(config, asset.name, abs_src_path=str(asset)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Let links that leave docs/ or come from outside lead to the pages of the site."""
    uri = page.file.src_uri
    is_outside = uri.startswith(f"{PREFIX}/") and not uri.removeprefix(f"{PREFIX}/").endswith(CODE)
    source = ROOT / uri.removeprefix(f"{PREFIX}/") if is_outside else DOCS / uri

    def replaced(match: re.Match[str]) -> str:
        target = _target(source, match[2])
        if target is None:
            return match[0]
        new = os.path.relpath(_uri(target), os.path.dirname(uri) or ".")
        anchor = (match[3] or "") if target.suffix == ".md" else ""  # of a line in a code file
        return f"{match[1]}{new}{anchor}{match[4]}"

    return LINK.sub(replaced, markdown)


def _outside(page: Path) -> list[Path]:
    found = (_target(page, one[2]) for one in LINK.finditer(page.read_text()))
    return [one for one in found if one is not None and not one.is_relative_to(DOCS)]


def _target(source: Path, link: str) -> Path | None:
    """The file of the repository that a link leads to, if mkdocs would not find it itself."""
    if "://" in link or link.startswith("mailto:"):
        return None
    path = Path(os.path.normpath(source.parent / link))
    if path.is_relative_to(DOCS) and (path / "README.md").exists():  # a folder: its index
        return path / "README.md"
    leaves = not path.is_relative_to(DOCS) or not source.is_relative_to(DOCS)
    return path if leaves and path.is_relative_to(ROOT) and path.exists() else None


def _members(folder: Path) -> list[Path]:
    return [one for one in sorted(folder.iterdir()) if one.is_file()]


def _uri(path: Path) -> str:
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = path.relative_to(ROOT).as_posix()
    return f"{PREFIX}/{name}" if path.suffix == ".md" else f"{PREFIX}/{name}.md"


def _content(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        links = [f"- [{one.name}]({path.name}/{one.name}.md)" for one in _members(path)]
        return "\n".join((f"{NOT_FOUND_BY_SEARCH}# {name}\n", *links))
    text = path.read_text()
    if path.suffix == ".md":
        return NOT_FOUND_BY_SEARCH + text
    fence = "`" * 4
    language = LANGUAGES.get(path.suffix, "text")
    return f"{NOT_FOUND_BY_SEARCH}# {name}\n\n{fence}{language}\n{text}\n{fence}\n"
