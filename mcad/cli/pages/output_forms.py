"""``-o json``, ``yaml``, ``jsonpath=...`` and ``custom-columns=...`` of everything that is printed.

Paths are those of ``-o json``: from its root for jsonpath, from one row of the table for columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import click
from click.shell_completion import CompletionItem

from mcad.cli.errors import warn
from mcad.cli.pages.tables import NONE, echo, echo_structured, table
from mcad.core.state.spelling import did_you_mean

if TYPE_CHECKING:
    from mcad.cli.pages.jsonpath import Path, Template

Json = dict[str, Any]

JSONPATH, COLUMNS = "jsonpath=", "custom-columns="
_FIRST = re.compile(r"\.?([A-Za-z][A-Za-z0-9]*)")


class FormType(click.ParamType[str]):
    """One of the plain forms, or one with a template, which is checked at once."""

    name = "FORM"

    def __init__(self, *forms: str) -> None:
        """The forms besides the table and those with templates."""
        self._forms = forms

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check the form."""
        from mcad.cli.pages.jsonpath import JsonPathError  # noqa: PLC0415 - for templates only

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
    """Whether it is jsonpath or custom-columns."""
    return form is not None and form.startswith((JSONPATH, COLUMNS))


def is_structured(form: str | None) -> TypeGuard[str]:
    """Whether it is anything but a table or names."""
    return form is not None and form not in ("wide", "name")


def template_of(form: str) -> Template:
    """The template of ``jsonpath=``; raises ``JsonPathError``."""
    from mcad.cli.pages.jsonpath import parse_template  # noqa: PLC0415 - see above

    return parse_template(form.removeprefix(JSONPATH))


def columns_of(form: str) -> list[tuple[str, str, Path]]:
    """The columns of ``custom-columns=NAME:.name,STATE:.state``: title, path as written, and path;
    raises ``JsonPathError``."""
    from mcad.cli.pages.jsonpath import JsonPathError, parse_path  # noqa: PLC0415 - see above

    columns = []
    for part in _parts(form.removeprefix(COLUMNS)):
        title, colon, path = part.partition(":")
        if not (title and colon and path):
            raise JsonPathError(f"{part!r} is not a column: write TITLE:.path, as in NAME:.name")
        inner = path[1:-1] if path.startswith("{") and path.endswith("}") else path
        columns.append((title, inner, parse_path(inner)))
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


def echo_form(
    value: Json, form: str, rows: Sequence[Json] | None = None, *, headers: bool = True
) -> None:
    """Print a value in one of these forms; ``rows`` are those of its table."""
    if form.startswith(JSONPATH):
        from mcad.cli.pages.jsonpath import evaluate  # noqa: PLC0415 - see above

        click.echo(evaluate(template_of(form), value), nl=False)
    elif form.startswith(COLUMNS):
        _echo_columns([value] if rows is None else rows, form, headers=headers)
    else:
        echo_structured(value, form)


def _echo_columns(rows: Sequence[Json], form: str, *, headers: bool) -> None:
    from mcad.cli.pages.jsonpath import find, text_of  # noqa: PLC0415 - see above

    columns = columns_of(form)
    for _, path, _ in columns:
        _warn_of(path, rows)
    cells = [
        tuple(",".join(map(text_of, find(path, row))) or NONE for _, _, path in columns)
        for row in rows
    ]
    echo(table(tuple(title for title, _, _ in columns), cells, headers=headers))


def _warn_of(path: str, rows: Sequence[Json]) -> None:
    """Warn of a path whose first key no row has: kubectl prints <none> in silence."""
    first = _FIRST.match(path)
    known = {key for row in rows for key in row}
    if first and known and first[1] not in known:
        warn(f"no row has {path}. {did_you_mean(first[1], known)}".rstrip())
