"""Which AppWrappers a list shows, by labels, names and filters, and in which order."""

from __future__ import annotations

from typing import Any

import click
from msgspec import Struct

from mcad.cli.arguments.global_options import selector_option
from mcad.cli.arguments.names import ObjectName
from mcad.cli.arguments.options import record
from mcad.cli.arguments.row_filters import Filters
from mcad.cli.pages import rows as columns
from mcad.client.figures.figures import Figures
from mcad.client.figures.row import is_waiting, within
from mcad.client.scope import Scope

Json = dict[str, Any]


class ListOptions(Struct, frozen=True):
    """--selector, --sort-by and --watch."""

    selector: str | None = None
    sort_by: str = "position"
    watch: bool = False


list_options = record(
    "options",
    ListOptions,
    selector_option,
    columns.sort_option,
    click.option(
        "-w", "--watch", is_flag=True, help="Print rows again as they change, until Ctrl-C."
    ),
)


class Wanted(Struct, frozen=True):
    """Which AppWrappers are shown: waiting ones, these names, these labels, or all."""

    waiting_only: bool
    names: tuple[ObjectName, ...] = ()
    selector: str | None = None
    filters: Filters = Filters()

    async def rows(
        self, figures: Figures, *, waiting_only: bool, with_starts: bool = False
    ) -> list[Json]:
        """The rows with these labels, in all namespaces."""
        rows = await figures.rows(waiting_only=waiting_only, with_starts=with_starts)
        if self.selector is None:
            return rows
        labelled = await figures.labelled(self.selector)
        return [row for row in rows if row["uid"] in labelled]

    def pick(self, rows: list[Json], namespace: str | None) -> tuple[list[Json], list[ObjectName]]:
        """The rows to show, and the names that were not found."""
        shown = within(rows, namespace)
        if self.names:
            shown, missing = columns.named(shown, self.names)
            return self.filters.keep(shown), missing
        shown = self.filters.keep(shown)
        return [row for row in shown if is_waiting(row)] if self.waiting_only else shown, []

    def pick_present(self, rows: list[Json], namespace: str | None) -> list[Json]:
        """The rows to show in a watch, where names may be missing."""
        shown = self.filters.keep(self.pick_all(rows, namespace))
        return [row for row in shown if is_waiting(row)] if self.waiting_only else shown

    def pick_all(self, rows: list[Json], namespace: str | None) -> list[Json]:
        """The rows of a watch, also those that no longer wait."""
        shown = within(rows, namespace)
        return columns.named(shown, self.names)[0] if self.names else shown


def scope_of(names: tuple[ObjectName, ...], scope: Scope) -> Scope:
    """The namespaces of these names: those that they say themselves, or of the options."""
    given = {one.namespace for one in names}
    if given <= {None}:
        if names and scope.all_namespaces:
            raise click.UsageError("names need one namespace: use -n instead of -A")
        return scope
    if None in given or scope.namespace:
        raise click.UsageError("write all names with their namespace, or none of them")
    return Scope(next(iter(given))) if len(given) == 1 else Scope(all_namespaces=True)
