"""The facts of a failed request."""

from __future__ import annotations

from mcad.core.state.records import Struct


class Answer(Struct, frozen=True):
    """The facts of an API server's answer that was not a success.

    ``status`` is the HTTP code, 0 if no answer came (then the outcome is unknown, protocol P5).
    ``reason`` is the Status reason, or the first cause's reason where that says more
    (``NamespaceTerminating``). ``retry_after`` is in microseconds, 0 if not given.
    """

    status: int
    reason: str
    message: str
    retry_after: int = 0
