"""Repeats the steps of a journal in a core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from mcad.core.dispatcher import Dispatcher
from mcad.journal import codec, reader
from mcad.journal.reader import Begin, Gap

if TYPE_CHECKING:
    from mcad.core.cluster import Cluster
    from mcad.core.commands import Command
    from mcad.core.state.units import Instant
    from mcad.journal.codec import Step
    from mcad.journal.reader import Session


class Made(NamedTuple):
    """A repeated step; ``cluster`` is the state after it, until the next one is requested."""

    step: Step
    commands: tuple[Command, ...]
    cluster: Cluster

    @property
    def differs(self) -> bool:
        """Whether other commands were recorded."""
        return codec.digest(self.commands) != self.step.digest


def drive(session: Session, until: Instant | None = None) -> Iterator[Made | Begin | Gap]:
    """Every step of a leadership up to an instant, repeated.

    Also yields where another core begins, and where steps cannot be read.
    """
    dispatcher = Dispatcher(session.header.settings)
    for found in reader.steps(session):
        if isinstance(found, Gap):
            yield found
            continue
        now = found.cluster.now if isinstance(found, Begin) else found.now
        if until is not None and now > until:
            return
        if isinstance(found, Begin):
            dispatcher.cluster = found.cluster
            yield found
        else:
            yield Made(found, dispatcher.step(found.event, now), dispatcher.cluster)


def replay(session: Session, until: Instant | None = None) -> Iterator[Made | Gap]:
    """The repeated steps, without the points where another core begins."""
    return (found for found in drive(session, until) if not isinstance(found, Begin))
