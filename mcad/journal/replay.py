"""A core that is given the steps of a journal once more."""

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
    """A step that was made again; ``cluster`` is as it is after it, until the next is asked for."""

    step: Step
    commands: tuple[Command, ...]
    cluster: Cluster

    @property
    def differs(self) -> bool:
        """Whether other commands came of it when the journal was written."""
        return codec.digest(self.commands) != self.step.digest


def drive(session: Session, until: Instant | None = None) -> Iterator[Made | Begin | Gap]:
    """Every step of a leadership up to an instant, made again; and where another core begins, or
    steps cannot be read."""
    dispatcher = Dispatcher(session.header.settings)
    for found in reader.steps(session):
        if isinstance(found, Gap):
            yield found
        elif isinstance(found, Begin):
            dispatcher = Dispatcher(session.header.settings)
            if found.cluster is not None:
                dispatcher.cluster = found.cluster
            yield found
        elif until is not None and found.now > until:
            return
        else:
            yield Made(found, dispatcher.step(found.event, found.now), dispatcher.cluster)


def replay(session: Session, until: Instant | None = None) -> Iterator[Made | Gap]:
    """The same without the places where another core begins."""
    return (found for found in drive(session, until) if not isinstance(found, Begin))
