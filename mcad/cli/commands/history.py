"""``mcad history``: what has ended, how long it waited and ran, and what that took."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct

from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import selector_option
from mcad.cli.arguments.instant import SinceType
from mcad.cli.arguments.options import (
    Output,
    output_options,
    record,
    scope_options,
    target_options,
)
from mcad.cli.errors import FAILED, show_error, warn
from mcad.cli.pages import history as page
from mcad.cli.pages.output_forms import echo_form, is_structured
from mcad.cli.pages.rows import reference
from mcad.cli.pages.tables import echo, table
from mcad.client.figures.progress import working
from mcad.client.figures.row import in_namespace
from mcad.client.history.ended import ENDS, Ended
from mcad.client.history.stored import stored_history
from mcad.client.history.totals import sums, totals
from mcad.client.scope import Scope, Target
from mcad.core.state.units import Instant

CSV = "csv"


class HistoryOptions(Struct, frozen=True):
    """Which AppWrappers, from where, and whether their sums are shown."""

    selector: str | None = None
    leaf: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    states: tuple[str, ...] = ()
    totals: bool = False
    journal: Path | None = None

    def keeps(self, one: Ended) -> bool:
        """Whether an AppWrapper is shown, but for its namespace and its labels."""
        return (
            (self.leaf is None or one.is_charged(self.leaf))
            and (self.since is None or one.ended >= self.since)
            and (self.until is None or one.ended <= self.until)
            and (not self.states or one.state in self.states)
        )


history_options = record(
    "options",
    HistoryOptions,
    selector_option,
    click.option(
        "--leaf", metavar="[TREE/]LEAF", help="Only those that were charged to this quota leaf."
    ),
    click.option(
        "--since", type=SinceType(), help="Only those that ended since: 12h, 7d, or a time."
    ),
    click.option("--until", type=SinceType(), help="Only those that ended until then."),
    click.option(
        "--state",
        "states",
        type=click.Choice(list(map(str, ENDS)), case_sensitive=False),
        multiple=True,
        help="Only those that ended so; may be repeated.",
    ),
    click.option("--totals", is_flag=True, help="Show sums by namespace and leaf."),
    click.option(
        "--journal",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Read a journal instead; no cluster is needed.",
    ),
)


@click.command()
@target_options
@scope_options
@history_options
@output_options("json", "yaml", "wide", "name", CSV)
def history(target: Target, scope: Scope, options: HistoryOptions, output: Output) -> None:
    """Show AppWrappers that have ended: why, and what they took.

    WAITED is the time from the submission to the first dispatch, RAN that of the attempts from
    dispatch to end, REQUESTED-HOURS what it demanded multiplied by RAN: CPU hours, byte hours, GPU
    hours. The one that ended last comes last. With -o csv the table is CSV, with seconds.

    Without --journal these are the AppWrappers that the API server still has; it knows the last
    attempt of each only, and what they demanded is asked of the dispatcher. A journal of
    `mcad run --journal DIR` has deleted ones and all attempts too, of all namespaces without -n,
    but no labels. One that was deleted before its end is Deleted (AppWrapperDeleted).
    """
    if options.journal is not None and options.selector is not None:
        raise click.UsageError("a journal has no labels: omit -l, or --journal")
    if options.totals and output.form in ("wide", "name"):
        raise click.UsageError(f"--totals has no -o {output.form}")
    wrong: list[str] = []
    if options.journal is not None:
        found, wrong = _read_journal(options.journal, options.until)
        namespace = None if scope.all_namespaces else scope.namespace
        found = [one for one in found if namespace in (None, one.namespace)]
    else:
        found, namespace = asyncio.run(_read_stored(target, scope, options.selector or ""))
    shown = sorted(filter(options.keeps, found), key=lambda one: (one.ended, one.name))
    if not shown and not is_structured(output.form):
        click.echo(f"No AppWrapper has ended{in_namespace(namespace)}.", err=True)
    _print(shown, options, output, namespaces=namespace is None)
    for line in wrong:
        show_error(line)
    if wrong:
        raise click.exceptions.Exit(FAILED)


async def _read_stored(
    target: Target, scope: Scope, selector: str
) -> tuple[list[Ended], str | None]:
    if selector:
        _check(selector)
    async with environment().connect(target, watches=False) as session:
        namespace = scope.choose(session.namespace)
        found, notes = await stored_history(session.client, namespace, selector)
    for note in notes:
        warn(note)
    return found, namespace


def _check(selector: str) -> None:
    from mcad.kube import selectors  # noqa: PLC0415 - for -l only

    try:
        selectors.labels(selector)
    except ValueError as error:
        raise click.UsageError(f"-l {selector!r}: {error}") from error


def _read_journal(folder: Path, until: Instant | None) -> tuple[list[Ended], list[str]]:
    from mcad.client.history.journal import journal_history  # noqa: PLC0415 - the core is slow

    with working("replaying the journal"):
        return journal_history(folder, until)


def _print(
    shown: Sequence[Ended], options: HistoryOptions, output: Output, *, namespaces: bool
) -> None:
    headers = not output.no_headers
    rows = totals(shown) if options.totals else [one.view() for one in shown]
    if output.form == CSV:
        lines = page.csv_text(rows).splitlines()
        echo(lines if headers else lines[1:])
    elif output.form == "name":
        echo(reference(row, namespaces=namespaces) for row in rows)
    elif is_structured(output.form):
        value = {"totals": rows} if options.totals else {"items": rows}
        echo_form(value, output.form, rows, headers=headers)
    elif options.totals and rows:
        whole = {"namespace": page.TOTAL, "tree": None, "leaf": None} | sums(shown)
        lines_of = [page.sum_cells(row) for row in [*rows, whole]]
        echo(table(page.SUM_TITLES, lines_of, headers=headers, palette=output.palette))
    elif rows:
        wide, now_us = output.form == "wide", environment().clock.now_us()
        cells = [page.cells(one, now_us, namespaces=namespaces, wide=wide) for one in shown]
        titles = page.titles(namespaces=namespaces, wide=wide)
        echo(table(titles, cells, headers=headers, palette=output.palette))
