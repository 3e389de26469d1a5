"""``mcad queue`` and ``mcad get``: AppWrappers as rows, once or as they change."""

from __future__ import annotations

import asyncio
from typing import Any

import click
from msgspec.structs import replace

from mcad.cli.arguments.completion_candidates import complete_appwrappers
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.list_options import ListOptions, Wanted, list_options, scope_of
from mcad.cli.arguments.names import ObjectName, qualified_names
from mcad.cli.arguments.options import Output, output_options, scope_options, source_options
from mcad.cli.arguments.row_filters import Filters, filter_options
from mcad.cli.errors import INTERRUPTED, fail_for_missing
from mcad.cli.pages import rows as columns
from mcad.cli.pages.output_forms import echo_form, is_template
from mcad.cli.pages.tables import echo, table
from mcad.client.figures.figures import warn_of_notes
from mcad.client.figures.row import in_namespace, is_waiting
from mcad.client.figures.source import follow_figures, open_figures
from mcad.client.scope import Scope, Source

Json = dict[str, Any]


@click.command()
@source_options
@scope_options
@list_options
@filter_options
@output_options("json", "yaml", "wide", "name")
def queue(
    source: Source, scope: Scope, options: ListOptions, filters: Filters, output: Output
) -> None:
    """Show the queue: its order, and what each AppWrapper waits for.

    Positions count in the whole cluster, whichever namespaces are shown; they are <unknown> (null
    in JSON) if you may not list it. An AppWrapper without a position is on hold for another reason
    than capacity. AGE is the time since the dispatcher first saw it. With -o wide, STARTS is the
    estimated time to its start: <30m at the latest, >5m at the earliest, with ? if it depends on
    expected run times; `mcad describe` shows details.

    With --watch a row is printed again when it has changed, and a last time when its AppWrapper
    leaves the queue. A change of the position alone is printed for the first ten only.
    """
    _list(Wanted(waiting_only=True, filters=filters), source, scope, options, output)


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_appwrappers)
@source_options
@scope_options
@list_options
@filter_options
@output_options("json", "yaml", "wide", "name")
def get(  # noqa: PLR0913 - one per group of options
    *,
    names: tuple[str, ...],
    source: Source,
    scope: Scope,
    options: ListOptions,
    filters: Filters,
    output: Output,
) -> None:
    """Show all AppWrappers with their state and position.

    With names, only those: NAME, aw/NAME, NS/NAME, or as `mcad queue -o name` prints them.
    `kubectl get appwrapper NAME -o yaml` shows the manifest. With -o jsonpath=TEMPLATE and
    -o custom-columns=TITLE:.path,... paths are those of -o json: {.items[*].name}, NAME:.name.
    """
    chosen = qualified_names(names)
    if chosen and options.selector is not None:
        raise click.UsageError("give either names or -l")
    wanted = Wanted(waiting_only=False, names=chosen, filters=filters)
    _list(wanted, source, scope_of(chosen, scope), options, output)


def _list(
    wanted: Wanted, source: Source, scope: Scope, options: ListOptions, output: Output
) -> None:
    if options.selector is not None:
        _check_selector(options.selector, source)
        wanted = replace(wanted, selector=options.selector)
    if options.watch and (is_template(output.form) or wanted.filters.limit):
        raise click.UsageError("--watch excludes --limit, -o jsonpath and -o custom-columns")
    if not options.watch:
        asyncio.run(_print_once(wanted, source, scope, options, output))
        return
    from mcad.cli.live.watch_printer import until_reader_leaves  # noqa: PLC0415 - for --watch only

    try:
        asyncio.run(until_reader_leaves(_watch(wanted, source, scope, options, output)))
    except KeyboardInterrupt:  # which is how a watch ends
        raise click.exceptions.Exit(INTERRUPTED) from None


def _check_selector(selector: str, source: Source) -> None:
    if source.server:
        raise click.UsageError("--server does not serve labels: omit --server, or -l")
    from mcad.kube import selectors  # noqa: PLC0415 - for -l only

    try:
        selectors.labels(selector)
    except ValueError as error:
        raise click.UsageError(f"-l {selector!r}: {error}") from error


async def _print_once(
    wanted: Wanted, source: Source, scope: Scope, options: ListOptions, output: Output
) -> None:
    async with open_figures(environment(), source, scope) as (figures, namespace):
        with_starts = output.form in columns.FORMS_WITH_STARTS or is_template(output.form)
        rows = await wanted.rows(figures, waiting_only=wanted.waiting_only, with_starts=with_starts)
    warn_of_notes(figures)
    shown, missing = wanted.pick(rows, namespace)
    if not shown and not missing:
        _report_empty(wanted, rows, namespace)
    shown = wanted.filters.cut(columns.in_order(shown, options.sort_by))
    _print(shown, output, namespaces=scope.all_namespaces)
    _fail_for_missing(missing, namespace)


async def _watch(
    wanted: Wanted, source: Source, scope: Scope, options: ListOptions, output: Output
) -> None:
    from mcad.cli.live.watch_printer import PLACES_REPORTED, Printer  # noqa: PLC0415 - see above

    world = environment()
    printer = Printer(
        output,
        world.clock.now_us,
        namespaces=scope.all_namespaces,
        places_reported=float("inf") if wanted.names else PLACES_REPORTED,
    )
    async with follow_figures(world, source, scope) as (feed, namespace):
        figures = await feed.next()
        printer.note(figures.notes)
        rows = await wanted.rows(figures, waiting_only=False)
        shown, missing = wanted.pick(rows, namespace)
        if missing and not shown:
            _fail_for_missing(missing, namespace)
        if not shown:
            _report_empty(wanted, list(filter(is_waiting, rows)), namespace)
        while True:
            shown = wanted.pick_present(rows, namespace)
            others = wanted.pick_all(rows, namespace)
            printer.show(columns.in_order(shown, options.sort_by), others)
            figures = await feed.next()
            printer.mention(feed.trouble)
            printer.note(figures.notes)
            rows = await wanted.rows(figures, waiting_only=False)


def _fail_for_missing(missing: list[ObjectName], namespace: str | None) -> None:
    texts = [
        f'no AppWrapper "{one.name}"{in_namespace(one.namespace or namespace)}' for one in missing
    ]
    fail_for_missing(texts, "{} that this dispatcher manages; see `mcad get -A`")


def _report_empty(wanted: Wanted, rows: list[Json], namespace: str | None) -> None:
    if which := wanted.filters.explain_none():
        click.echo(f"No AppWrappers found{in_namespace(namespace)}{which}.", err=True)
    elif wanted.waiting_only:
        elsewhere = f" ({len(rows)} in other namespaces: see -A)" if rows else ""
        click.echo(f"No AppWrappers wait{in_namespace(namespace)}{elsewhere}.", err=True)
    else:
        click.echo(f"No AppWrappers found{in_namespace(namespace)}.", err=True)


def _print(rows: list[Json], output: Output, *, namespaces: bool) -> None:
    match output.form:
        case "name":
            echo(columns.reference(row, namespaces=namespaces) for row in rows)
        case str() as form if form != "wide":
            echo_form({"items": rows}, form, rows, headers=not output.no_headers)
        case _ if rows:
            now = environment().clock.now_us()
            titles = columns.titles(output, namespaces=namespaces)
            lines = [columns.cells(row, output, now, namespaces=namespaces) for row in rows]
            headers = not output.no_headers
            echo(table(titles, lines, headers=headers, palette=output.palette))
