"""A core that is given the steps of a journal once more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from mcad.core.dispatcher import Dispatcher
from mcad.journal import codec, reader
from mcad.journal.reader import Begin, Gap

if TYPE_CHECKING:
    from mcad.core.commands import Command
    from mcad.core.state.units import Instant
    from mcad.core.world import World
    from mcad.journal.codec import Step
    from mcad.journal.reader import Session


class Made(NamedTuple):
    """A step that was made again; ``world`` is as it is after it, until the next is asked for."""

    step: Step
    commands: tuple[Command, ...]
    world: World

    @property
    def differs(self) -> bool:
        """Whether other commands came of it when the journal was written."""
        return codec.digest(self.commands) != self.step.digest


def replay(session: Session, until: Instant | None = None) -> Iterator[Made | Gap]:
    """Every step of a leadership up to an instant; a gap is where steps cannot be read."""
    dispatcher = Dispatcher(session.header.settings)
    for found in reader.steps(session):
        if isinstance(found, Gap):
            yield found
            continue
        if isinstance(found, Begin):
            dispatcher = Dispatcher(session.header.settings)
            if found.world is not None:
                dispatcher.world = found.world
            continue
        if until is not None and found.now > until:
            return
        yield Made(found, dispatcher.step(found.event, found.now), dispatcher.world)
