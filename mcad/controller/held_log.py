"""Logs one line when a wrapped resource begins to be held, and one when that ends."""

import logging

from mcad.core.state.model import HeldResource
from mcad.core.state.units import Instant

_log = logging.getLogger(__name__)


class HoldLog:
    """Compares the held resources with those that were logged last."""

    def __init__(self) -> None:
        self._logged: tuple[HeldResource, ...] = ()

    def log_changes(self, held: tuple[HeldResource, ...], now: Instant) -> None:
        """Log what has changed."""
        if held == self._logged:
            return
        for one in held:
            if one not in self._logged:
                _log.warning(
                    "held: not created for now resource=%s namespace=%s reason=%s message=%s",
                    one.title,
                    one.namespace,
                    one.reason,
                    one.message,
                )
        for one in self._logged:
            if one not in held:
                _log.info(
                    "no longer held resource=%s namespace=%s reason=%s after_s=%d",
                    one.title,
                    one.namespace,
                    one.reason,
                    (now - one.since) // 1_000_000,
                )
        self._logged = held
