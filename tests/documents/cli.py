"""docs/reference/cli.md: every command with its usage, options and exit codes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import click

from mcad.cli.errors import EXIT_CODES
from mcad.cli.main import COMMANDS, main
from tests.cli.exit_codes import CASES, Case
from tests.documents.pages import DOCS, code, escaped, table, wrapped

PAGE = DOCS / "reference" / "cli.md"
NO_REWRAP = "\b"
COMMON_FROM = 5  # commands with the same option


class Listed(NamedTuple):
    """One command: its path, usage, help and the records of its options."""

    path: str
    usage: str
    help: str
    options: list[tuple[str, str]]


def generated() -> str:
    """The generated part of the page."""
    commands = list(_commands())
    counts = Counter(one for command in commands for one in command.options)
    frequent = [one for one, count in counts.items() if count >= COMMON_FROM]
    texts = Counter(_name(names) for names, _ in frequent)
    common = [one for one in frequent if texts[_name(one[0])] == 1]
    lines = [*_exit_codes(), *_global(), *_common(common)]
    for command in commands:
        lines += _section(command, common)
    return "\n".join(lines)


def _exit_codes() -> Iterator[str]:
    yield from ("## Exit codes", "")
    yield from (*table(("code", "meaning"), ((str(n), text) for n, text in EXIT_CODES.items())), "")
    rows = ((one.what, str(one.code), _ending_so(one)) for one in CASES)
    yield from (*table(("what happens", "code", "with"), rows), "")
    yield from wrapped(
        "Of several AppWrappers each is done as far as possible. If they fail for different "
        "reasons, the code is 1. `mcad demo --serve -- COMMAND` ends with the code of COMMAND."
    )
    yield ""


def _ending_so(case: Case) -> str:
    return "every command" if case.is_of_all else ", ".join(map(code, case.commands))


def _global() -> Iterator[str]:
    yield from ("## Global options", "")
    yield from wrapped(
        "These may stand before or after the command, as in kubectl: `mcad -n team queue`. The one "
        "after the command counts. Commands that ask no cluster ignore those about the cluster; "
        "`-o`, `-l` and `--no-headers` are only for commands that have them."
    )
    with click.Context(main, info_name="mcad") as ctx:
        records = [one.get_help_record(ctx) for one in main.params]
    yield from ("", *_table([one for one in records if one is not None]), "")


def _common(options: list[tuple[str, str]]) -> Iterator[str]:
    yield from ("## Common options", "")
    yield from wrapped(
        "Many commands have these. Each command names those that it has, and its own ones."
    )
    yield from ("", *_table(options), "")


def _commands() -> Iterator[Listed]:
    with click.Context(main, info_name="mcad") as root:
        for name in COMMANDS:
            command = main.get_command(root, name)
            assert command is not None
            yield from _listed(command, name, root)


def _listed(command: click.Command, name: str, parent: click.Context) -> Iterator[Listed]:
    """A command and those below it."""
    with click.Context(command, info_name=name, parent=parent) as ctx:
        is_group = isinstance(command, click.Group)
        pieces = " ".join(command.collect_usage_pieces(ctx))
        usage = "" if is_group else f"{ctx.command_path} {pieces}"
        records = [one.get_help_record(ctx) for one in command.params if one.name != "help"]
        options = [(names, text) for names, text in filter(None, records) if text]
        yield Listed(ctx.command_path, usage, command.help or "", options)
        if isinstance(command, click.Group):
            for inner in command.list_commands(ctx):
                found = command.get_command(ctx, inner)
                assert found is not None
                yield from _listed(found, inner, ctx)


def _section(command: Listed, common: list[tuple[str, str]]) -> Iterator[str]:
    yield from (f"## {command.path}", "")
    if command.usage:
        yield from ("```text", command.usage, "```", "")
    yield from _help(command.help)
    own = [one for one in command.options if one not in common]
    if own:
        yield from (*_table(own), "")
    shared = [code(_name(names)) for names, _ in command.options if (names, _) in common]
    if shared:
        also = "Also" if own else "Options"
        yield from (*wrapped(f"{also} ([common](#common-options)): {', '.join(shared)}."), "")


def _table(options: list[tuple[str, str]]) -> Iterator[str]:
    yield from table(
        ("option", "meaning"), ((code(names), escaped(text)) for names, text in options)
    )


def _name(names: str) -> str:
    """The long name of an option, without what it takes."""
    return names.rsplit(", ", maxsplit=1)[-1].split(" ", maxsplit=1)[0]


def _help(text: str) -> Iterator[str]:
    """The help text in Markdown: what keeps its lines becomes a block of text."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = [line.strip() for line in paragraph.splitlines() if line.strip() != NO_REWRAP]
        if NO_REWRAP in paragraph:
            yield from ("```text", *(line.strip(NO_REWRAP) for line in lines), "```", "")
        else:
            yield from (*wrapped(escaped(" ".join(lines))), "")
