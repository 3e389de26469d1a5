"""What a drain of nodes would move (``mcad what-if --drain``)."""

from __future__ import annotations

from collections.abc import Collection

from mcad.client.config import as_dispatched, load_config
from mcad.client.errors import McadError
from mcad.client.figures.figures import warn_of_notes
from mcad.client.figures.listed import list_facts
from mcad.client.figures.progress import working
from mcad.client.scope import Settings
from mcad.client.session import Session
from mcad.core.answers.node_drain import Drain
from mcad.core.answers.node_drain import drain as planned
from mcad.core.events import NodeSeen
from mcad.core.state.spelling import did_you_mean


async def drain(session: Session, names: Collection[str]) -> Drain:
    """Which pods of AppWrappers are on the nodes, and where they fit without these. Raises
    ``McadError`` if there is no such node."""
    config = await as_dispatched(session.client, load_config(Settings()))
    figures, facts = await list_facts(session.client, config)
    warn_of_notes(figures)
    known = [one.node.name for one in facts.events if isinstance(one, NodeSeen)]
    for name in sorted({*names} - {*known}):
        hint = did_you_mean(name, known) or "`mcad capacity` lists the nodes."
        raise McadError(f'there is no node "{name}". {hint}')
    with working("trying where the pods fit"):
        return planned(facts, frozenset(names))
