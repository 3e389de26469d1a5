"""``mcad quota check``: checks QuotaSubtrees of files before they are applied."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from mcad.api.labels import QUOTA_KIND
from mcad.api.questions import Question
from mcad.api.quotacheck import Finding, check
from mcad.api.wire import as_text, plural
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.options import files_option, source_options
from mcad.cli.errors import FAILED, show_error, warn
from mcad.cli.pages.tables import NONE, amounts, echo, table
from mcad.client.errors import McadError
from mcad.client.figures.progress import working
from mcad.client.figures.source import open_questions
from mcad.client.manifests.documents import Document, read_documents
from mcad.client.scope import Source
from mcad.core.quota.tree import Tree
from mcad.core.state.quantity import format_amount
from mcad.core.state.units import SECOND, format_duration

Json = dict[str, Any]

TITLES = ("TREE", "NODES", "LEAVES", "ROOT")
EVICTED = ("APPWRAPPER", "REASON", "FOR", "AFTER")
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@click.command("check")
@files_option("A file of YAML or JSON, a directory of them")
@click.option(
    "--against-cluster",
    is_flag=True,
    help="Show which AppWrappers of the cluster would be evicted.",
)
@source_options
def check_files(paths: tuple[str, ...], source: Source, *, against_cluster: bool) -> None:
    """Check QuotaSubtrees before they are applied; no cluster is needed.

    The files must contain whole trees: a parent that exists in the cluster only is missing. Objects
    of other kinds are ignored. Exit code 0 means that the trees are valid; what is valid but
    probably not intended is a warning.

    --against-cluster also asks the dispatcher which AppWrappers would be evicted, for which others
    and how soon, if these were applied and no AppWrapper ended. Nothing is changed.
    """
    documents = [one for path in paths for file in _files(path) for one in read_documents(file)]
    mine = [one for one in documents if _is_quota_subtree(one)]
    if not mine:
        raise McadError(f"there is no {QUOTA_KIND} in {', '.join(paths)}; give the files with -f")
    checked = check((one.origin, one.content) for one in mine)
    faults = [one for one in checked.findings if not one.warning]
    for one in checked.findings:
        (warn if one.warning else _print_error)(_line(one))
    echo(table(TITLES, map(_row, checked.trees)) if checked.trees else [])
    if faults:
        many = f"{len(faults)} fault{'s' * (len(faults) > 1)}"
        show_error(f"{many} to correct before these are applied")
        raise click.exceptions.Exit(FAILED)
    if against_cluster:
        echo(_evictions(asyncio.run(_foresee(source, [one.content for one in mine]))))


async def _foresee(source: Source, subtrees: Sequence[Json]) -> list[Json]:
    question = Question(subtrees=tuple(subtrees))
    async with open_questions(environment(), source, None) as (figures, own):
        with working("looking ahead"):
            return list((await figures.what_if(question, own))["evictions"])


def _evictions(found: Sequence[Json]) -> list[str]:
    if not found:
        return ["", "No AppWrapper would be evicted."]
    rows = [
        (
            one["appwrapper"],
            one["reason"],
            one["for"],
            format_duration(one["afterSeconds"] * SECOND),
        )
        for one in found
    ]
    return ["", f"{plural(len(found), 'eviction')}:", *table(EVICTED, rows)]


def _files(path: str) -> Iterator[str]:
    """The file, or the files of a directory sorted by name, like kubectl."""
    if not Path(path).is_dir():
        yield path
        return
    found = sorted(each for each in Path(path).iterdir() if each.suffix in SUFFIXES)
    if not found:
        raise McadError(f"{path}: there is no file that ends in {', '.join(sorted(SUFFIXES))}")
    yield from map(str, found)


def _is_quota_subtree(document: Document) -> bool:
    kind = as_text(document.content.get("kind"))
    if kind != QUOTA_KIND and kind.lower() == QUOTA_KIND.lower():
        raise McadError(f"{document.origin}: kind is {kind}: write {QUOTA_KIND}")
    return kind == QUOTA_KIND


def _print_error(text: str) -> None:
    show_error(text)


def _line(one: Finding) -> str:
    field = f"{one.field}: " if one.field else ""
    return f"{one.origin}: {one.title}: {field}{one.message}"


def _row(tree: Tree) -> tuple[str, ...]:
    root = {name: format_amount(name, amount) for name, amount in tree.root.nominal.items()}
    leaves = tree.leaves()
    return (tree.name, str(len(tree.nodes)), ",".join(leaves) or NONE, amounts(root))
