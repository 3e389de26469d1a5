"""Which AppWrappers a verb concerns: by name, labels or files, or all; and the question before.

Exactly one of the ways must be given, so that a forgotten name never means all of them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import click
from msgspec import Struct

from mcad.api.labels import GROUP, KIND
from mcad.api.wire import as_map, as_text
from mcad.cli.arguments.completion_candidates import complete_appwrappers
from mcad.cli.arguments.global_options import namespace_option, selector_option
from mcad.cli.arguments.names import ObjectName, in_full, qualified_names
from mcad.cli.arguments.one_appwrapper import check_namespace
from mcad.cli.arguments.options import filename_option, record
from mcad.cli.errors import FAILED
from mcad.client.appwrappers.read import read_appwrapper
from mcad.client.appwrappers.state import title
from mcad.client.errors import McadError, not_installed
from mcad.client.session import AT_ONCE, Session
from mcad.core.state.reasons import some_of
from mcad.kube import selectors
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError
from mcad.kube.kinds import APPWRAPPERS

Json = dict[str, Any]


class Choice(Struct, frozen=True):
    """NAME..., -f, -l, --all, -n and -A."""

    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    selector: str | None = None
    everything: bool = False
    namespace: str | None = None
    all_namespaces: bool = False


class Chosen(Struct, frozen=True):
    """The AppWrappers, and the names that were not found.

    ``spans``: they may be in several namespaces, so lines about them name the namespace.
    """

    objs: list[Json]
    missing: list[ObjectName]
    spans: bool


choice_options = record(
    "choice",
    Choice,
    click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_appwrappers),
    filename_option("paths", "The AppWrappers in this file"),
    selector_option,
    click.option("--all", "everything", is_flag=True, help="All of the namespace; with -A, all."),
    namespace_option,
    click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces, with -l or --all."),
)


def read_names(choice: Choice) -> tuple[ObjectName, ...]:
    """The names of NAME and -f; checks the options, so nothing is asked before all are right."""
    named = qualified_names(choice.names)
    ways = (bool(named), bool(choice.paths), choice.selector is not None, choice.everything)
    if sum(ways) != 1:
        raise click.UsageError("name AppWrappers in one way: NAME, -f FILE, -l LABELS or --all")
    if choice.selector is not None:
        try:
            selectors.labels(choice.selector)
        except ValueError as error:
            raise click.UsageError(f"-l {choice.selector!r}: {error}") from error
    found = named or tuple(one for path in choice.paths for one in _names_in(path))
    for one in found:
        if choice.all_namespaces and one.namespace is None:
            raise click.UsageError(f"{one.name}: a name needs one namespace: use -n instead of -A")
    return check_namespace(found, choice.namespace)


def _names_in(path: str) -> Iterator[ObjectName]:
    from mcad.client.manifests.documents import read_documents  # noqa: PLC0415 - takes a tenth of a second

    found = False
    for document in read_documents(path):
        content, metadata = document.content, as_map(document.content.get("metadata"))
        group = as_text(content.get("apiVersion")).rpartition("/")[0]
        if (group, content.get("kind")) != (GROUP, KIND):
            continue
        name = as_text(metadata.get("name"))
        if not name:
            raise McadError(
                f"{document.origin}: metadata.name is missing; use the name it was given"
            )
        yield ObjectName(name, as_text(metadata.get("namespace")) or None)
        found = True
    if not found:
        raise McadError(f"{path}: contains no AppWrapper; name the file of one")


async def choose(session: Session, choice: Choice, names: tuple[ObjectName, ...]) -> Chosen:
    """Read the AppWrappers; ``names`` are those of ``read_names``."""
    own = choice.namespace or session.namespace
    if not names:
        where = None if choice.all_namespaces else own
        objs = await _listed(session.client, Selection(where, choice.selector or ""))
        return Chosen(objs, [], choice.all_namespaces)
    full = in_full(names, own)
    gate = asyncio.Semaphore(AT_ONCE)

    async def read(one: ObjectName) -> Json | None:
        async with gate:
            return await read_appwrapper(session.client, one.namespace or own, one.name)

    found = await asyncio.gather(*map(read, full))
    missing = [one for one, obj in zip(full, found, strict=True) if obj is None]
    spans = any(one.namespace != own for one in full)
    return Chosen([obj for obj in found if obj is not None], missing, spans)


async def _listed(client: Client, selection: Selection) -> list[Json]:
    try:
        found, _ = await client.list_all(APPWRAPPERS, selection)
    except ApiError as error:
        if not error.not_found:
            raise
        raise McadError(not_installed(APPWRAPPERS)) from error
    return found


def ask(objs: list[Json], what: str, *, yes: bool) -> None:
    """Ask before more than one is changed; ``what``: ``would be held``."""
    if len(objs) < 2 or yes:
        return
    sentence = f"{len(objs)} AppWrappers {what}: {some_of([title(one) for one in objs])}"
    if not is_interactive():
        raise click.UsageError(f"{sentence}; repeat with --yes, or see with --dry-run")
    if not click.confirm(f"{sentence}. Go on?", err=True):
        click.echo("Nothing was changed.", err=True)
        raise click.exceptions.Exit(FAILED)


def is_interactive() -> bool:
    """Whether a person can answer."""
    return sys.stdin.isatty()
