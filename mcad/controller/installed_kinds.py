"""Detects kinds that are installed, removed or served in another version, by a watch on CRDs.

So discovery is asked only after such a change. Kinds of aggregated API servers have no CRD, and the
right to watch CRDs may be missing: then discovery is asked from time to time while something is
missing, at increasing intervals.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcad.controller.served_kinds import Kinds
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import CRDS
from mcad.kube.reflector import Reflector
from mcad.kube.retry import Backoff, Pace

if TYPE_CHECKING:
    from mcad.controller.extra_reads import Lookups
    from mcad.kube.document import Document

_log = logging.getLogger(__name__)

NEWS_PACE = Pace(first_s=0.5, max_s=60.0, jitter=0.2)
LOOKS = 3  # after a change: a CRD comes in several updates, and discovery follows a bit later
SEARCH_S = 60.0  # interval of the check whether something is missing
SEARCH_S_MAX = 600.0  # longest interval between searches for what stays missing
REFUSED_S = 600.0  # after a refused watch of CRDs: time until the next try


class CrdWatch:
    """The sink of a reflector of CRDs, which keeps only their names."""

    def __init__(
        self, client: Client, kinds: Kinds, lookups: Lookups, found: Callable[[], None]
    ) -> None:
        """``found`` is called when the served kinds have changed."""
        self._client = client
        self._clock = client.clock
        self._kinds = kinds
        self._lookups = lookups
        self._found = found
        self._names: dict[str, str] = {}  # by uid
        self._is_blind = True  # CRDs cannot be watched, or not yet
        self._is_told = False
        self._refused = asyncio.Event()
        self._news = asyncio.Event()
        self._looks = 0  # queries of discovery still to be made
        self._backoff = Backoff(client.clock, client.rng, NEWS_PACE)
        self._is_owing = False  # kinds changed, or discovery failed; not handled completely

    async def run(self) -> None:
        """Run for ever."""
        await asyncio.gather(self._watch(), self._follow(), self._search())

    def discover_soon(self) -> None:
        """The served kinds may have changed: ask discovery soon, several times."""
        if not self._looks:  # else the backoff only grows while changes keep coming
            self._backoff = Backoff(self._clock, self._client.rng, NEWS_PACE)
        self._looks = LOOKS
        self._news.set()

    # -- CRDs --------------------------------------------------------------------------------

    async def _watch(self) -> None:
        metadata = Selection(metadata_only=True)
        reflector = Reflector(self._client, CRDS, self, _name, metadata)
        while True:
            watching = asyncio.ensure_future(reflector.run())
            try:
                await self._refused.wait()
            finally:
                watching.cancel()
            self._refused.clear()
            await self._clock.sleep(REFUSED_S)

    def listing(self) -> None:
        """A list begins."""

    def upserted(self, obj: tuple[str, str]) -> None:
        """A CRD is new or changed. Those of the first list existed before discovery was asked."""
        uid, name = obj
        is_new = uid not in self._names
        self._names[uid] = name
        if not self._is_blind and (is_new or self._kinds.concerns(name)):
            self.discover_soon()

    def gone(self, uid: str, namespace: str, name: str, last: object) -> None:  # noqa: ARG002
        """A CRD was removed."""
        self._names.pop(uid, None)
        self.discover_soon()

    def synced(self, *, relist: bool) -> None:  # noqa: ARG002
        """All CRDs are known."""
        self._is_blind = self._is_told = False
        if self._expected():
            self.discover_soon()

    def alive(self, at: float) -> None:
        """Not used."""

    def failing(self, error: KubeError) -> None:
        """The reflector retries soon, unless watching CRDs is forbidden or not served."""
        if isinstance(error, ApiError) and (error.forbidden or error.not_found):
            self._is_blind = True
            self._refused.set()
            if not self._is_told:
                self._is_told = True
                _log.warning("CRDs cannot be watched; new kinds are found late error=%s", error)

    # -- discovery ---------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            await self._news.wait()
            await self._clock.sleep(self._backoff.delay())
            self._news.clear()
            self._looks = max(self._looks - 1, 0)
            await self._ask()
            if self._looks > 0 or self._is_owing or self._expected():
                self._news.set()

    async def _search(self) -> None:
        before: frozenset[object] = frozenset()
        pause, due = SEARCH_S, 0.0
        while True:
            await self._clock.sleep(SEARCH_S)
            missing, now = self._missing(), self._clock.monotonic()
            if missing != before:
                before, pause, due = missing, SEARCH_S, now
            if missing and now >= due:
                await self._ask()
                due = now + pause
                pause = min(2 * pause, SEARCH_S_MAX)

    def _expected(self) -> bool:
        """Whether a CRD exists whose kind is not served yet: that takes a moment."""
        missing = self._kinds.missing()
        return bool(missing) and any(name in missing for name in self._names.values())

    def _missing(self) -> frozenset[object]:
        """What is wanted and no watch reports: discovery must be asked from time to time."""
        wanted: set[object] = {seat.workload.uid for seat in self._lookups.without_kind()}
        if self._is_blind:
            wanted |= self._kinds.missing()
        return frozenset(wanted)

    async def _ask(self) -> None:
        try:
            self._is_owing = await self._kinds.refresh() or self._is_owing
            if self._is_owing:
                self._found()
                await self._lookups.read_again()
                self._is_owing = False
        except KubeError as error:
            self._is_owing = True
            _log.info("discovery failed error=%s", error)


def _name(document: Document) -> tuple[str, str]:
    return document.identity.uid, document.identity.name
