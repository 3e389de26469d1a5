"""What the verbs have in common: options, one line per AppWrapper, and the exit code.

A verb changes one AppWrapper; here it is applied to all of the chosen ones. If one fails, the rest
is still done, and the exit code is 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import click
from msgspec import Struct

from mcad.api.wire import plural
from mcad.cli.arguments.choice import Choice, ask, choose, read_names
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import form_option
from mcad.cli.arguments.names import ObjectName, qualified
from mcad.cli.arguments.one_appwrapper import absent
from mcad.cli.arguments.options import record
from mcad.cli.errors import FAILED, NOT_FOUND, exit_code, show
from mcad.client.appwrappers.state import reference, title
from mcad.client.errors import McadError, NotFoundError, explain
from mcad.client.figures.progress import clear, working
from mcad.client.figures.row import in_namespace
from mcad.client.scope import Target
from mcad.client.session import AT_ONCE, Session
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError, OutcomeUnknown

Json = dict[str, Any]


class VerbOptions(Struct, frozen=True):
    """--dry-run, --yes and -o name."""

    dry_run: bool = False
    yes: bool = False
    form: str | None = None


class Result(Struct, frozen=True):
    """What became of one AppWrapper, as the words after its name."""

    words: str
    changed: bool = True


class Act(Protocol):
    """Changes one AppWrapper, or only checks with ``dry_run`` whether that may be done."""

    async def __call__(self, client: Client, obj: Json, *, dry_run: bool) -> Result:
        """Raises ``McadError`` or ``KubeError``."""
        ...


class Verb(Struct, frozen=True):
    """A verb and the word for what it did: ``held``; ``watches`` if it needs watches."""

    done: str
    act: Act
    watches: bool = False


verb_options = record(
    "options",
    VerbOptions,
    click.option(
        "--dry-run", is_flag=True, help="Let the API server check only; nothing is changed."
    ),
    click.option("-y", "--yes", is_flag=True, help="Do not ask before more than one is changed."),
    form_option(click.Choice(["name"]), "Print names only."),
)


def same(why: str) -> Result:
    """The result for an AppWrapper that is left as it is."""
    return Result(f"unchanged: {why}", changed=False)


def apply(verb: Verb, choice: Choice, target: Target, options: VerbOptions) -> None:
    """Apply a verb to the chosen AppWrappers, and end the command with its exit code."""
    names = read_names(choice)
    asyncio.run(_apply(verb, choice, names, target, options))


async def _apply(
    verb: Verb,
    choice: Choice,
    names: tuple[ObjectName, ...],
    target: Target,
    options: VerbOptions,
) -> None:
    async with environment().connect(target, watches=verb.watches) as session:
        chosen = await choose(session, choice, names)
        if not chosen.objs and not chosen.missing:
            where = None if choice.all_namespaces else choice.namespace or session.namespace
            click.echo(f"No AppWrappers found{in_namespace(where)}.", err=True)
        ask(chosen.objs, f"would be {verb.done}", yes=options.yes or options.dry_run)
        codes = await _apply_all(verb, session, chosen.objs, options, spans=chosen.spans)
    for one in chosen.missing:
        show(absent(one))
    codes += [NOT_FOUND] * bool(chosen.missing)
    if codes:
        raise click.exceptions.Exit(codes[0] if len(set(codes)) == 1 else FAILED)


async def _apply_all(
    verb: Verb, session: Session, objs: Sequence[Json], options: VerbOptions, *, spans: bool
) -> list[int]:
    """Apply it to each, several at a time; returns the exit codes of those that failed."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(obj: Json) -> int:
        async with gate:
            try:
                result = await verb.act(session.client, obj, dry_run=options.dry_run)
            except McadError as error:
                show(error)
                return exit_code(error)
            except KubeError as error:
                refused = _refused(f"{title(obj)} cannot be {verb.done}", error)
                show(refused)
                return exit_code(refused)
        _report(obj, result, options, spans=spans)
        return 0

    ended = 0

    async def counted(obj: Json) -> int:
        nonlocal ended
        code = await one(obj)
        ended += 1
        return code

    with working(lambda: f"{ended} of {plural(len(objs), 'AppWrapper')} {verb.done}"):
        return [code for code in await asyncio.gather(*map(counted, objs)) if code]


def _refused(what: str, error: KubeError) -> McadError:
    if isinstance(error, OutcomeUnknown):
        return McadError(f"{what} for certain ({error}); look with `mcad get`")
    if isinstance(error, ApiError) and error.not_found:
        return NotFoundError(f"{what}: it was deleted meanwhile")
    if isinstance(error, ApiError) and (error.conflict or _is_another(error)):
        return McadError(f"{what}: it was deleted and created anew meanwhile; see `mcad get`")
    return McadError(f"{what}: {explain(error).message}")


def _is_another(error: ApiError) -> bool:
    """Whether a patch was refused because the object of this name has another uid."""
    return error.invalid and "metadata.uid: " in error.message


def _report(obj: Json, result: Result, options: VerbOptions, *, spans: bool) -> None:
    clear()
    metadata = obj["metadata"]
    if options.form == "name":
        name = qualified(metadata["namespace"], metadata["name"]) if spans else reference(obj)
        click.echo(name)
        return
    where = in_namespace(metadata["namespace"]) if spans else ""
    dry = " (server dry run)" if options.dry_run and result.changed else ""
    click.echo(f"{reference(obj)} {result.words}{where}{dry}")
