"""Words that users should not meet: ``python -m tests.style`` lists them, ``make lint`` fails.

English that a reader without a dictionary understands has things as subjects, and says what happens
in the words of the field. The check reads pages, comments of samples and of the chart's values,
and every text, docstring and comment of the program; code in pages is left out.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent

WORDS = {
    r"who|whom|whoever|whomever": "name the thing or the role: users, AppWrappers, nodes",
    r"(?:(?<=[.:;(|] )|^)whose": "name the thing that has it",
    r"somebody|nobody|someone|anybody|anyone|everybody|everyone": "name the role, or say none, all",
    r"he|she|him|her|his|hers": "repeat the noun",
    r"told|telling": "reported, named, given, shown",
    r"mend|mends|mended|mending": "correct, repair, fix",
    r"alike": "similar, equal, both",
    r"(?:stands?|stood) in(?! line)": "is, represents, replaces",
    r"in vain": "without effect, and say what did not happen",
    r"whatever this says": "say what else counts",
    r"as long as [^.;]{1,60}, so": "say it in two sentences",
}
"""What not to write, and what to write instead."""

_WORDS = {
    re.compile(rf"(?<![\w'-])(?:{word})(?![\w'-])", re.IGNORECASE): instead
    for word, instead in WORDS.items()
}
_CODE = re.compile(
    r"`[^`\n]*`|\]\([^)\n]*\)|<!--.*?-->|https?://\S+|\{\{.*?\}\}|\{%.*?%\}|<\w[^>]*>", re.DOTALL
)


class Text(NamedTuple):
    """A text that users read, and where it begins."""

    path: Path
    line: int
    text: str


class Hit(NamedTuple):
    """A word that should not be there."""

    path: Path
    line: int
    word: str
    instead: str
    context: str


def hits(texts: Iterator[Text]) -> list[Hit]:
    """All such words in these texts."""
    found = []
    for path, line, text in texts:
        plain = _CODE.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)
        for pattern, instead in _WORDS.items():
            for match in pattern.finditer(plain):
                where = line + plain.count("\n", 0, match.start())
                context = " ".join(plain[max(match.start() - 50, 0) : match.end() + 40].split())
                found.append(Hit(path, where, match[0], instead, context))
    return sorted(found)


def texts() -> Iterator[Text]:
    """Everything that users read."""
    yield from (one for path in _pages() for one in _of_page(path))
    for path in _with_comments():
        yield from _of_comments(path)
    for path in sorted((ROOT / "mcad").rglob("*.py")):
        yield from _of_program(path)
    for path in _verbatim():
        yield Text(path, 1, path.read_text())


def _pages() -> list[Path]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
    return sorted((*pages, ROOT / "deploy" / "helm" / "mcad" / "README.md"))


def _with_comments() -> list[Path]:
    values = ROOT / "deploy" / "helm" / "mcad" / "values.yaml"
    return [values, *sorted((ROOT / "samples").rglob("*.yaml")), ROOT / "Makefile"]


def _verbatim() -> list[Path]:
    templates = (ROOT / "deploy" / "helm" / "mcad" / "templates").rglob("*.*")
    return sorted((*templates, *(ROOT / "mcad" / "ui" / "templates").glob("*.html")))


def _of_page(path: Path) -> Iterator[Text]:
    """The prose of a page, in pieces between blocks of code."""
    line = 1
    for number, piece in enumerate(re.split(r"^ *```.*$", path.read_text(), flags=re.MULTILINE)):
        if number % 2 == 0:
            yield Text(path, line, piece)
        line += piece.count("\n")


def _of_comments(path: Path) -> Iterator[Text]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        _, mark, comment = line.partition("# ")
        if mark:
            yield Text(path, number, comment)


def _of_program(path: Path) -> Iterator[Text]:
    """Texts, docstrings and comments; not the code in an f-string."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Text(path, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(path, token.start[0], token.string)


def main() -> int:
    """Print all hits; returns the exit code."""
    found = hits(texts())
    for one in found:
        print(f"{one.path.relative_to(ROOT)}:{one.line}: {one.word}: {one.context} ({one.instead})")
    print(f"{len(found)} words to replace" if found else "style: no word to replace")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
