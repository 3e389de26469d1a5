"""Options that commands share; each group is passed to the command as one record."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click
from msgspec import Struct

from mcad.cli.arguments import global_options
from mcad.cli.arguments.global_options import (
    context_option,
    form_option,
    kubeconfig_option,
    namespace_option,
    no_headers_option,
)
from mcad.cli.pages.colours import AUTO, CHOICES, Palette, palette
from mcad.cli.pages.output_forms import FormType
from mcad.client.scope import Scope, Settings, Source, Target

Command = Callable[..., Any]
Option = Callable[[Command], Command]


class Output(Struct, frozen=True):
    """How to print: -o, --no-headers and --color."""

    form: str | None = None
    no_headers: bool = False
    color: str = AUTO

    @property
    def palette(self) -> Palette:
        """The colours of tables; JSON and YAML never have any."""
        return palette(self.color)


def record(name: str, kind: type[Struct], *options: Option) -> Option:
    """A decorator that passes these options as one argument ``name`` of this record."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(**given: Any) -> Any:
            own = {one: given.pop(one) for one in kind.__struct_fields__ if one in given}
            return command(**{name: kind(**own)}, **given)

        decorated: Command = call
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


SETTINGS_OPTIONS: tuple[Option, ...] = (
    click.option("--config", metavar="FILE", help="The configuration file of the dispatcher."),
    click.option(
        "--set",
        "assignments",
        metavar="KEY=VALUE",
        multiple=True,
        help="One setting; may be repeated.",
    ),
)

target_options = record("target", Target, *global_options.target_options)
cluster_options = record("target", Target, kubeconfig_option, context_option)
settings_options = record("settings", Settings, *SETTINGS_OPTIONS)

scope_options = record(
    "scope",
    Scope,
    namespace_option,
    click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces."),
)


color_option = click.option(
    "--color",
    type=click.Choice(CHOICES),
    default=AUTO,
    show_default=True,
    help="Colours; auto: on a terminal, unless NO_COLOR is set.",
)


def filename_option(parameter: str, what: str) -> Option:
    """-f FILE, any number of times; ``what`` describes them in the help."""
    return click.option(
        "-f",
        "--filename",
        parameter,
        metavar="FILE",
        multiple=True,
        type=click.Path(allow_dash=True),
        help=f"{what}, - for standard input; may be repeated.",
    )


def files_option(what: str) -> Option:
    """Files as arguments and with -f, all as ``paths``; ``what`` describes them in the help."""

    def decorate(command: Command) -> Command:
        @click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(allow_dash=True))
        @filename_option("named", what)
        @functools.wraps(command)
        def call(files: tuple[str, ...], named: tuple[str, ...], **given: Any) -> Any:
            if not files and not named:
                raise click.UsageError("Name a file: FILE, -f FILE, or - for standard input")
            return command(paths=(*named, *files), **given)

        decorated: Command = call
        return decorated

    return decorate


def output_options(*forms: str) -> Option:
    """-o with these forms and templates besides the table, --no-headers and --color."""
    return record(
        "output",
        Output,
        form_option(FormType(*forms)),
        no_headers_option,
        color_option,
    )


source_options = record(
    "source",
    Source,
    *global_options.target_options,
    click.option(
        "--server",
        metavar="URL",
        help="Ask the HTTP port of the dispatcher instead of its visibility API.",
    ),
)
