"""``-o jsonpath=...`` and ``-o custom-columns=...`` for lists of AppWrappers.

Paths are those of ``-o json``: the items of ``{"items": [...]}`` for jsonpath, one item for each
column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from mcad.cli.pages.jsonpath import (
    JsonPathError,
    Template,
    evaluate,
    find,
    parse_path,
    parse_template,
    text_of,
)
from mcad.cli.pages.tables import NONE, table
from mcad.core.state.spelling import did_you_mean

Json = dict[str, Any]

JSONPATH, COLUMNS = "jsonpath=", "custom-columns="


class FormType(click.ParamType[str]):
    """One of the plain forms, or one with a template, which is checked at once."""

    name = "FORM"

    def __init__(self, *forms: str) -> None:
        """The forms besides the table."""
        self._forms = forms

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check the form."""
        try:
            if value.startswith(JSONPATH):
                template_of(value)
            elif value.startswith(COLUMNS):
                columns_of(value)
            elif value not in self._forms:
                every = [*self._forms, f"{JSONPATH}TEMPLATE", f"{COLUMNS}TITLE:.path"]
                hint = did_you_mean(
                    value.partition("=")[0], [one.partition("=")[0] for one in every]
                )
                self.fail(
                    f"{value!r} is not one of {', '.join(every)}. {hint}".rstrip(), param, ctx
                )
        except JsonPathError as error:
            self.fail(str(error), param, ctx)
        return value

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """The forms, for the help."""
        return f"[{'|'.join([*self._forms, JSONPATH + '...', COLUMNS + '...'])}]"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """The forms with this prefix."""
        every = [*self._forms, JSONPATH, COLUMNS]
        return [CompletionItem(one) for one in every if one.startswith(incomplete)]


def is_template(form: str | None) -> bool:
    """Whether it is one of these two forms."""
    return form is not None and form.startswith((JSONPATH, COLUMNS))


def template_of(form: str) -> Template:
    """The template of ``jsonpath=``."""
    return parse_template(form.removeprefix(JSONPATH))


def columns_of(form: str) -> list[tuple[str, Any]]:
    """The titles and paths of ``custom-columns=``: ``NAME:.name,STATE:.state``."""
    columns = []
    for part in _parts(form.removeprefix(COLUMNS)):
        title, colon, path = part.partition(":")
        if not (title and colon and path):
            raise JsonPathError(f"{part!r} is not a column: write TITLE:.path, as in NAME:.name")
        inner = path[1:-1] if path.startswith("{") and path.endswith("}") else path
        columns.append((title, parse_path(inner)))
    return columns


def _parts(text: str) -> Iterator[str]:
    """The parts between commas that are in no bracket."""
    depth, begun = 0, 0
    for place, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            yield text[begun:place]
            begun = place + 1
    yield text[begun:]


def print_form(rows: Sequence[Json], form: str, *, headers: bool) -> None:
    """Print the rows in one of these two forms."""
    if form.startswith(JSONPATH):
        click.echo(evaluate(template_of(form), {"items": list(rows)}), nl=False)
        return
    columns = columns_of(form)
    cells = [
        tuple(",".join(map(text_of, find(path, row))) or NONE for _, path in columns)
        for row in rows
    ]
    for line in table(tuple(title for title, _ in columns), cells, headers=headers):
        click.echo(line)
