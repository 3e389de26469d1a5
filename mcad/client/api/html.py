"""Tables for notebooks: plain HTML, which takes the style of the notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape


def table(titles: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table with these titles."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(title: str, values: Mapping[str, str]) -> str:
    """A table of names and values below a title; empty values are left out."""
    body = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in values.items()
        if value
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>"


def note(text: str) -> str:
    """A sentence."""
    return f"<p>{escape(text)}</p>"


def amounts(values: Mapping[str, str]) -> str:
    """Amounts in one cell."""
    return ", ".join(f"{name} {amount}" for name, amount in values.items())
