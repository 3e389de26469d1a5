"""What would be different, for a question about it."""

from __future__ import annotations

from msgspec import Struct


class Changes(Struct, frozen=True):
    """What would be different: the options of ``mcad what-if``.

    ``nodes``: that many more, like the node ``like``. ``left_out``: AppWrappers that are gone, as
    NAME or NAMESPACE/NAME. ``quota``: ("TREE/NODE", "cpu=40,memory=1Gi"). ``assignments``: settings
    of the dispatcher, KEY=VALUE.
    """

    nodes: int | None = None
    like: str | None = None
    left_out: tuple[str, ...] = ()
    quota: tuple[tuple[str, str], ...] = ()
    assignments: tuple[str, ...] = ()
