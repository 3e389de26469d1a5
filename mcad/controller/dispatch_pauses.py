"""Passes DispatchPauses from their watch to the core, and logs when dispatch stops and goes on."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcad.api.pauses import read_pause
from mcad.core.events import PauseGone, PauseSeen

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcad.core.events import Event
    from mcad.core.state.dispatch_pause import DispatchPause

Json = dict[str, Any]
_log = logging.getLogger(__name__)


class Pauses:
    """Receives DispatchPauses from their watch."""

    def __init__(self, feed: Callable[[Event], None]) -> None:
        self._feed = feed
        self._known: dict[str, DispatchPause] = {}

    def seen(self, obj: Json) -> None:
        """Take a new or changed DispatchPause."""
        pause = read_pause(obj)
        if self._known.get(pause.uid) == pause:
            return
        self._known[pause.uid] = pause
        _log.warning(
            "dispatch is paused scope=%s name=%s reason=%s", pause.scope, pause.name, pause.reason
        )
        self._feed(PauseSeen(pause))

    def gone(self, uid: str) -> None:
        """A DispatchPause was deleted."""
        pause = self._known.pop(uid, None)
        if pause is not None:
            _log.info("dispatch is resumed scope=%s name=%s", pause.scope, pause.name)
            self._feed(PauseGone(uid))

    def absent(self) -> None:
        """The kind is no longer installed, and with it went all of its objects."""
        for uid in list(self._known):
            self.gone(uid)
