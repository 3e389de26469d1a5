"""``kubectl_complete-mcad``: kubectl runs it to complete ``kubectl mcad ...``.

kubectl passes the words after ``mcad``, the unfinished one last, and reads candidates from stdout,
one per line with its description after a tab; the last line is a colon and a bit set (kubectl 1.26,
``kubectl plugin --help``; the bits are those of cobra's ShellCompDirective).
"""

from __future__ import annotations

import sys

import click
from click.shell_completion import CompletionItem, ShellComplete

from mcad.cli.main import main

NO_FILES, DEFAULT = 4, 0


def complete() -> None:
    """Print the candidates for the command line in ``sys.argv``."""
    *words, unfinished = sys.argv[1:] or [""]
    items = _candidates(words, unfinished)
    for item in items:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    files = any(item.type in ("file", "dir") for item in items)
    click.echo(f":{DEFAULT if files else NO_FILES}")


def _candidates(words: list[str], unfinished: str) -> list[CompletionItem]:
    shell = ShellComplete(main, {}, "kubectl mcad", "_MCAD_COMPLETE")
    return shell.get_completions(words, unfinished)
