"""docs/reference/cli.md: every command with its usage, options and exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from mcad.cli.errors import EXIT_CODES
from mcad.cli.main import COMMANDS, main
from tests.documents.pages import DOCS, code, escaped, table, wrapped

PAGE = DOCS / "reference" / "cli.md"
NO_REWRAP = "\b"


def generated() -> str:
    """The generated part of the page."""
    lines = [*_exit_codes()]
    with click.Context(main, info_name="mcad") as root:
        for name in COMMANDS:
            command = main.get_command(root, name)
            assert command is not None
            lines += _command(command, name, root)
    return "\n".join(lines)


def _exit_codes() -> Iterator[str]:
    yield from ("## Exit codes", "")
    yield from (*table(("code", "meaning"), ((str(n), text) for n, text in EXIT_CODES.items())), "")


def _command(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    with click.Context(command, info_name=name, parent=parent) as ctx:
        usage = " ".join(command.collect_usage_pieces(ctx))
        path = ctx.command_path
        yield from (f"## {path}", "")
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield from ("```text", f"{path} {usage}".strip(), "```", "")
        yield from _help(command.help or "")
        records = [one.get_help_record(ctx) for one in command.params if one.name != "help"]
        rows = [(code(names), escaped(text)) for names, text in filter(None, records) if text]
        if rows:
            yield from (*table(("option", "meaning"), rows), "")
        if isinstance(command, click.Group):
            for inner in command.list_commands(ctx):
                found = command.get_command(ctx, inner)
                assert found is not None
                yield from _command(found, inner, ctx)


def _help(text: str) -> Iterator[str]:
    """The help text in Markdown: what keeps its lines becomes a block of text."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = [line.strip() for line in paragraph.splitlines() if line.strip() != NO_REWRAP]
        if NO_REWRAP in paragraph:
            yield from ("```text", *(line.strip(NO_REWRAP) for line in lines), "```", "")
        else:
            yield from (*wrapped(escaped(" ".join(lines))), "")
