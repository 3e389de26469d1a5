"""The check of words finds what it is for, and nothing is left to find."""

from __future__ import annotations

from pathlib import Path

from tests.style import Text, hits, texts


def found(text: str) -> list[str]:
    return [one.word for one in hits(iter([Text(Path("page.md"), 1, text)]))]


def test_words_are_found_with_their_line() -> None:
    (one,) = hits(iter([Text(Path("page.md"), 7, "An AppWrapper.\nNobody\nevicts it.")]))

    assert (one.word, one.line) == ("Nobody", 8)


def test_riddles_are_found() -> None:
    assert found("Users who wait are told. Whose turn it is, he knows.") == [
        "Whose",
        "he",
        "told",
        "who",
    ]
    assert found("AppWrappers whose limit is over end.") == []


def test_code_and_addresses_are_left_out() -> None:
    assert found("Run `who` or [see](told.md); https://he.example. The whole, mended-by.") == []


def test_everything_that_users_read_is_looked_at() -> None:
    seen = {one.path.name for one in texts()}

    assert {"README.md", "values.yaml", "aw-01.yaml", "main.py", "NOTES.txt", "answer.html"} <= seen
