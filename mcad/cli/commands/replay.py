"""``mcad replay``: repeats the decisions of a journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from mcad.api.wire import format_instant, plural
from mcad.cli.arguments.instant import until_option
from mcad.cli.arguments.options import record
from mcad.cli.errors import FAILED, show_error
from mcad.cli.pages.journal_history import AppWrapperHistory, named
from mcad.cli.pages.tables import echo
from mcad.client.errors import McadError, NotFoundError
from mcad.client.figures.progress import working
from mcad.core.commands import Command, CreateItem, WriteStatus
from mcad.core.events import AppWrapperSeen
from mcad.core.state.model import DispatchPhase
from mcad.core.state.spelling import ALIKE_MAX, did_you_mean
from mcad.core.state.units import Instant
from mcad.journal.anonymous import write_copy
from mcad.journal.codec import DIGEST_BYTES, matching
from mcad.journal.reader import Gap, Session, sessions
from mcad.journal.replay import Made
from mcad.journal.replay import replay as make_again

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class ReplayOptions(Struct, frozen=True):
    """The options; at most one besides ``until``."""

    until: Instant | None
    name: str
    diff: bool
    copy: Path | None

    @property
    def title(self) -> str:
        """NAMESPACE/NAME of --aw; "" without."""
        return self.name if not self.name or "/" in self.name else f"default/{self.name}"


@dataclass
class Count:
    """Counts what was done under one leader."""

    steps: int = 0
    begun: Instant = 0
    ended: Instant = 0
    seen: set[str] = field(default_factory=set)  # uids of AppWrappers
    dispatched: set[tuple[str, int]] = field(default_factory=set)  # uid and attempt
    created: int = 0
    differs_at: int | None = None  # the number of the first step with other commands

    def add(self, made: Made) -> None:
        """Count a step."""
        self.steps += 1
        self.begun, self.ended = self.begun or made.step.now, made.step.now
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


replay_options = record(
    "options",
    ReplayOptions,
    until_option,
    click.option(
        "--aw",
        "name",
        default="",
        metavar="[NAMESPACE/]NAME",
        help="Show the history of this AppWrapper.",
    ),
    click.option(
        "--diff", is_flag=True, help="Show the first decision that this version makes differently."
    ),
    click.option(
        "--anonymous",
        "copy",
        metavar="NEWDIR",
        type=click.Path(path_type=Path),
        help="Write a copy without names that replays the same decisions.",
    ),
)


@click.command()
@click.argument(
    "folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@replay_options
def replay(folder: Path, options: ReplayOptions) -> None:
    """Repeat the decisions of a journal.

    DIR is a folder that `mcad run --journal DIR` has written. No cluster is needed.
    """
    if sum(map(bool, (options.copy, options.name, options.diff))) > 1:
        raise click.UsageError("Give one of --aw, --diff and --anonymous")
    found, wrong = sessions(folder)
    if not found and not wrong:
        raise McadError(f"no journal in {folder}: `mcad run --journal {folder}` writes one")
    if options.copy is not None:
        if options.copy.exists():
            raise McadError(f"{options.copy} exists: choose a new folder")
        with working("replaying the journal"):
            told = list(write_copy(found, options.copy, wrong, options.until))
        echo(told)
        _end(wrong)
        return
    differing = False
    seen: dict[str, None] = {}
    for session in found:
        count = Count()
        history = AppWrapperHistory(options.title, seen) if options.title else None
        with working(partial(_replayed, count)):
            told = list(_steps(session, options, count, wrong, history))
        echo(told)
        if not options.name:
            echo(_summary(session, count, diff=options.diff))
        differing |= count.differs_at is not None
    if options.title and options.title not in seen:
        for line in wrong:
            show_error(line)
        raise NotFoundError(_unknown(options.title, seen))
    _end(wrong, failed=differing)


def _replayed(count: Count) -> str:
    return f"replaying: {plural(count.steps, 'step')}"


def _end(wrong: list[str], *, failed: bool = False) -> None:
    for line in wrong:
        show_error(line)
    if wrong or failed:
        raise click.exceptions.Exit(FAILED)


def _steps(
    session: Session,
    options: ReplayOptions,
    count: Count,
    wrong: list[str],
    history: AppWrapperHistory | None,
) -> Iterator[str]:
    for made in make_again(session, options.until):
        if isinstance(made, Gap):
            wrong.append(made.why)
            continue
        count.add(made)
        if options.diff and made.differs:
            count.differs_at = made.step.number
            yield from _difference(made)
            return  # later steps differ because of this one
        if history is not None:
            yield from history.lines(made)


def _unknown(title: str, seen: Collection[str]) -> str:
    name = _name(title)
    elsewhere = [one for one in seen if _name(one) == name]
    hint = did_you_mean(title, elsewhere, ALIKE_MAX, 0) or did_you_mean(name, map(_name, seen))
    hint = hint or f"it has {plural(len(seen), 'AppWrapper')}"
    return f"the journal has no AppWrapper {title}: {hint}"


def _name(title: str) -> str:
    return title.partition("/")[2]


def _difference(made: Made) -> Iterator[str]:
    at = format_instant(made.step.now)
    yield f"step {made.step.number} at {at}: {named(made.step.event)}"
    yield "commanded now (! marks what was not commanded then):"
    if not made.commands:
        yield "  nothing"
    for command, is_same in zip(
        made.commands, matching(made.commands, made.step.digest), strict=True
    ):
        yield f"{' ' if is_same else '!'} {command}"
    yield f"commanded then: {plural(len(made.step.digest) // DIGEST_BYTES, 'command')}"


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
        at = count.differs_at
        yield "  no difference" if at is None else f"  step {at} differs; replayed up to there"
