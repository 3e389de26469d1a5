"""``mcad replay``: the decisions of a journal, made again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from mcad.api.wire import format_instant, parse_instant, plural
from mcad.cli.errors import FAILED, CliError
from mcad.cli.retelling import Retelling, named
from mcad.cli.tables import echo
from mcad.core.commands import Command, CreateItem, WriteStatus
from mcad.core.events import AppWrapperSeen
from mcad.core.model import DispatchPhase
from mcad.journal.reader import Gap, Session, sessions
from mcad.journal.replay import Made
from mcad.journal.replay import replay as make_again

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcad.core.units import Instant


class Question(NamedTuple):
    """What was asked for on the command line."""

    until: Instant | None
    name: str | None
    diff: bool


@dataclass
class Count:
    """What a leadership did, as far as it was made again."""

    steps: int = 0
    begun: Instant = 0
    ended: Instant = 0
    seen: set[str] = field(default_factory=set)  # uids of AppWrappers
    dispatched: set[tuple[str, int]] = field(default_factory=set)  # uid and attempt
    created: int = 0
    differing: int = 0

    def add(self, made: Made) -> None:
        """A step."""
        self.steps += 1
        self.begun, self.ended = self.begun or made.step.now, made.step.now
        self.differing += made.differs
        if isinstance(made.step.event, AppWrapperSeen):
            self.seen.add(made.step.event.workload.uid)
        for command in made.commands:
            self._add(command)

    def _add(self, command: Command) -> None:
        if isinstance(command, CreateItem):
            self.created += 1
        elif isinstance(command, WriteStatus):
            record = command.status.dispatch
            if record is not None and record.phase is DispatchPhase.DISPATCHED:
                self.dispatched.add((command.uid, record.attempt))


class InstantType(click.ParamType["Instant"]):
    """An instant as statuses show it."""

    name = "TIME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Instant:
        """Microseconds since the epoch."""
        found = parse_instant(str(value))
        if not found:
            self.fail(f"{value!r} is not a time such as 2026-01-31T12:00:00Z", param, ctx)
        return found


@click.command()
@click.argument(
    "folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--until", type=InstantType(), help="Stop before what came later.")
@click.option("--aw", "name", metavar="[NAMESPACE/]NAME", help="Tell the story of this AppWrapper.")
@click.option(
    "--diff", is_flag=True, help="Tell the first decision that this version makes differently."
)
def replay(folder: Path, until: Instant | None, name: str | None, *, diff: bool) -> None:
    """Make the decisions of a journal again.

    DIR is a folder that `mcad run --journal DIR` has written. No cluster is asked.
    """
    found, wrong = sessions(folder)
    if not found and not wrong:
        raise CliError(f"no journal in {folder}: `mcad run --journal {folder}` writes one")
    question, differing = Question(until, name, diff), 0
    for session in found:
        count = Count()
        echo(_told(session, question, count, wrong))
        if name is None:
            echo(_summary(session, count, diff=diff))
        differing += count.differing
    for line in wrong:
        click.echo(f"error: {line}", err=True)
    if wrong or (diff and differing):
        raise click.exceptions.Exit(FAILED)


def _told(session: Session, question: Question, count: Count, wrong: list[str]) -> Iterator[str]:
    retelling = Retelling(question.name) if question.name is not None else None
    for made in make_again(session, question.until):
        if isinstance(made, Gap):
            wrong.append(made.why)
            continue
        if question.diff and made.differs and not count.differing:
            yield from _difference(made)
        count.add(made)
        if retelling is not None:
            yield from retelling.tell(made)


def _difference(made: Made) -> Iterator[str]:
    at = format_instant(made.step.now)
    yield f"step {made.step.number} at {at}: {named(made.step.event)}"
    yield "now commanded:"
    yield from (f"  {command}" for command in made.commands or ("nothing",))
    if not made.step.digest:
        yield "then commanded: nothing"


def _summary(session: Session, count: Count, *, diff: bool) -> Iterator[str]:
    header = session.header
    if not count.steps:
        yield f"leader {header.session} (epoch {header.epoch}): no steps"
        return
    when = f"{format_instant(count.begun)} to {format_instant(count.ended)}"
    yield f"leader {header.session} (epoch {header.epoch}), {when}"
    figures = (
        plural(count.steps, "step"),
        plural(len(count.seen), "AppWrapper"),
        f"{len(count.dispatched)} dispatched",
        plural(count.created, "object") + " created",
    )
    yield f"  {', '.join(figures)}"
    if diff:
        yield f"  {plural(count.differing, 'difference')}"
