"""Checks what the core keeps twice, for a few AppWrappers after each cycle.

A difference is a fault of the core. It is about one AppWrapper, so that one is held like after any
other error of the dispatcher about it (mcad/core/internal_errors.py), and the books of the whole
are compared. The checks take a fixed share of the elapsed time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from time import thread_time
from typing import NamedTuple

from mcad.core.cluster import Cluster
from mcad.core.invariants import appwrapper
from mcad.core.state.violations import InvariantViolated

_log = logging.getLogger(__name__)

SHARE = 0.005
"""CPU seconds for checks per elapsed second."""
AT_ONCE_S = 0.002
"""Maximum CPU seconds after one cycle, so that checks do not delay the next cycle."""
WORTH_S = AT_ONCE_S / 4
"""Minimum: after fewer CPU seconds the readings of the clock cost more than the checks."""
LOGGED_MAX = 100
"""Maximum number of violations that are logged; all are counted."""


class Checks(NamedTuple):
    """How many AppWrappers were checked, and the name of each violation that was found."""

    appwrappers: int
    violations: tuple[str, ...]


class InvariantAudit:
    """Checks the AppWrappers in turn."""

    def __init__(
        self,
        cluster: Cluster,
        found: Callable[[str, Exception], None],
        cpu: Callable[[], float] = thread_time,
    ) -> None:
        """``found`` is called with the uid of the AppWrapper about which a check has failed."""
        self._cluster = cluster
        self._found = found
        self._cpu = cpu
        self._turn: Iterator[str] = iter(())
        self._looked_at = 0.0
        self._left_s = 0.0
        self._logged = 0

    def check_some(self, now: float) -> Checks:
        """Check as many AppWrappers as the time since the last call allows, each at most once.

        ``now`` is monotonic, in seconds.
        """
        self._left_s += (now - self._looked_at) * SHARE
        self._looked_at, self._left_s = now, min(self._left_s, AT_ONCE_S)
        if self._left_s < WORTH_S:
            return Checks(0, ())
        begun, most = self._cpu(), len(self._cluster.entries)
        checked, violations = 0, list[str]()
        while checked < most and self._cpu() - begun < self._left_s:
            checked += 1
            uid = self._next()
            violated = self._check(uid)
            if violated is not None:
                violations.append(violated.name)
                self._log(violated)
                self._found(uid, violated)
        self._left_s -= self._cpu() - begun
        return Checks(checked, tuple(violations))

    def _next(self) -> str:
        uid = next(self._turn, None)
        if uid is None:
            self._turn = iter(list(self._cluster.entries))
            uid = next(self._turn)
        return uid

    def _check(self, uid: str) -> InvariantViolated | None:
        cluster = self._cluster
        entry = cluster.entries.get(uid)
        if entry is None or uid in cluster.agenda.to_judge or uid in cluster.agenda.to_recover:
            return None  # the next cycle will change it
        try:
            appwrapper(cluster, entry)
        except InvariantViolated as violated:
            return violated
        return None

    def _log(self, violated: InvariantViolated) -> None:
        self._logged += 1
        if self._logged <= LOGGED_MAX:
            _log.error("invariant violated name=%s story=%s", violated.name, violated.story)
