"""Every command on a page is run, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip
from tests.documents.session import ROOT, Session, Step, blocks, says, steps

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
    if not any(block.runs for block in blocks(page)):
        return
    with Session(tmp_path, built_or_skip(binaries.ensure) / "kubectl") as session:
        session.play(page)


def test_what_is_not_run_says_why() -> None:
    said = [block.reason for page in PAGES for block in blocks(page) if block.reason]
    assert said
    assert [reason for reason in said if len(reason.split()) < 3] == []


def test_no_command_hides_in_another_language() -> None:
    texts = {page: page.read_text() for page in sorted((ROOT / "docs").rglob("*.md"))}
    hidden = re.compile(r"^```(?!console)\w*\n(?:(?!```).*\n)*?\$ \w", re.MULTILINE)
    assert [str(page) for page, text in texts.items() if hidden.search(text)] == []


PAGE = """# A page

```sh
touch one
cat > two <<EOF
1 'quote
EOF
```

<!-- cluster: --nodes 1 -->
<!-- run:
touch three
-->
```console
$ ls
one
...
$ ls | head -1
one
```

<!-- not run: it would take hours -->
```sh
sleep 9999
```
"""


def test_a_page_is_read_as_it_is_meant(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    first, second, third = blocks(page)
    assert [one.command for one in steps(first)] == ["touch one", "cat > two <<EOF\n1 'quote\nEOF"]
    assert second.cluster == "--nodes 1"
    assert list(steps(second)) == [
        Step("touch three", None),
        Step("ls", ["one", "..."]),
        Step("ls | head -1", ["one"]),
    ]
    assert (first.cluster, first.reason, third.reason) == (None, "", "it would take hours")


def test_comments_say_what_words_mean_and_what_is_left_out(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- with: NAME=mine -->\n<!-- without: watch: it has no end here -->\n"
        "```sh\nmcad get NAME\nmcad get --watch\n```\n"
    )
    (block,) = blocks(page)

    assert (block.runs, block.reason) == (True, "it has no end here")
    assert [step.command for step in steps(block)] == ["mcad get mine"]


@pytest.mark.parametrize(
    ("printed", "lines", "is_said"),
    [
        ("a   b\n", ["a b"], True),
        ("job-x7bcd   3m2s\n", ["job-zzzzz  5s"], True),
        ("cpu 150m\n", ["cpu 250m"], False),
        ("a\nb\nc\n", ["a", "...", "c"], True),
        ("a\nb\nc\n", ["a", "..."], True),
        ("a\nb\n", ["a"], False),
        ("a\n", ["a", "b"], False),
        (
            "a created\nc dispatched\nb dispatched\n",
            ["a created", "b dispatched", "c dispatched"],
            True,
        ),
        ("c dispatched\nb created\n", ["b created", "c dispatched"], False),
        ("at 2026-11-25T13:09:48.957991Z\n", ["at 2027-01-01T00:00:00Z"], True),
    ],
)
def test_what_is_of_the_moment_is_not_compared(
    printed: str, lines: list[str], is_said: bool
) -> None:
    assert says(printed, lines) is is_said
