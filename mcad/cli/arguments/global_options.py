"""Options that stand before or after the verb, as kubectl has them: ``mcad -n team queue``.

``mcad`` itself has all of them; a command takes its own, else the one before the verb. This module
is imported with every command, so it imports little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from mcad.cli.arguments.duration import TimeoutType

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

_SHORT_WITH_VALUE = re.compile(r"-([A-Za-z])=(.*)", re.DOTALL)


class GlobalOption(click.Option):
    """An option of a command whose value may stand before the verb."""

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """The value after the verb, else the one before it."""
        value, source = super().consume_value(ctx, opts)
        root = ctx.find_root()
        if source is ParameterSource.COMMANDLINE or ctx is root:
            return value, source
        before = root.params.get(self.name or "")
        return (before, ParameterSource.COMMANDLINE) if before else (value, source)


def without_equals(arguments: Sequence[str]) -> list[str]:
    """``-o=json`` as click reads it: ``-ojson``. Arguments after ``--`` are left alone."""
    own = list(arguments)
    end = own.index("--") if "--" in own else len(own)
    return [_SHORT_WITH_VALUE.sub(r"-\1\2", one) for one in own[:end]] + own[end:]


def _complete_namespaces(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from mcad.cli.arguments.completion_candidates import complete_namespaces  # noqa: PLC0415 - slow

    return complete_namespaces(ctx, param, incomplete)


namespace_option = click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    cls=GlobalOption,
    shell_complete=_complete_namespaces,
    help="The namespace; default: that of the context.",
)
kubeconfig_option = click.option(
    "--kubeconfig", metavar="FILE", cls=GlobalOption, help="The kubeconfig to use."
)
context_option = click.option(
    "--context", metavar="NAME", cls=GlobalOption, help="The context of the kubeconfig to use."
)


def _identity(*, hidden: bool) -> tuple[Option, ...]:
    """The options that few need; commands have them too, and `mcad --help` lists them."""
    return (
        click.option(
            "--as",
            "as_user",
            metavar="USER",
            cls=GlobalOption,
            hidden=hidden,
            help="The user to impersonate; system:serviceaccount:NAMESPACE:NAME for an account.",
        ),
        click.option(
            "--as-group",
            "as_groups",
            metavar="GROUP",
            multiple=True,
            cls=GlobalOption,
            hidden=hidden,
            help="A group to impersonate, with --as; may be repeated.",
        ),
        click.option(
            "--request-timeout",
            "request_timeout_s",
            type=TimeoutType(),
            cls=GlobalOption,
            hidden=hidden,
            help="How long a request may take (10, 90s, 5m); 0: the default of each.",
        ),
    )


target_options: tuple[Option, ...] = (kubeconfig_option, context_option, *_identity(hidden=True))
"""Of commands that ask the API server."""

selector_option = click.option(
    "-l",
    "--selector",
    metavar="LABELS",
    cls=GlobalOption,
    help="Only those with these labels: a=b,c!=d,e in (f).",
)
no_headers_option = click.option(
    "--no-headers", is_flag=True, cls=GlobalOption, help="Leave out the column titles."
)


def form_option(kind: click.ParamType[Any] | None = None, text: str = "", **more: Any) -> Option:
    """-o with the forms of one command."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=kind,
        cls=GlobalOption,
        help=text or "The form of the output.",
        **more,
    )


_OF_OUTPUT = ("form", "selector", "no_headers")
"""Options that not every command has; one before the verb must not be lost."""

OPTIONS: tuple[Option, ...] = (
    namespace_option,
    kubeconfig_option,
    context_option,
    *_identity(hidden=False),
    form_option(text="The form of the output, where the command has it.", metavar="FORM"),
    selector_option,
    no_headers_option,
)
"""The options of `mcad` itself."""


def check_taken(command: click.Command, given: Mapping[str, Any]) -> None:
    """``UsageError`` for an option before the verb that would change the output, if the command
    does not have it."""
    if isinstance(command, click.Group):  # whose commands say so
        return
    own = {one.name for one in command.params}
    for name in _OF_OUTPUT:
        if given[name] and name not in own:
            written = {"form": "-o", "selector": "-l", "no_headers": "--no-headers"}[name]
            raise click.UsageError(f"`mcad {command.name}` has no option {written}")
