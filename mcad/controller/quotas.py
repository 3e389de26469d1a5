"""QuotaSubtrees on their way from the watch into the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcad.api.quotas import read_quota
from mcad.core.events import QuotaGone, QuotaSeen

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcad.core.events import Event
    from mcad.core.quota import QuotaSubtree

Json = dict[str, Any]


class Quotas:
    """What the watch of QuotaSubtrees tells, as far as it is news to the core."""

    def __init__(self, feed: Callable[[Event], None]) -> None:
        self._feed = feed
        self._known: dict[str, QuotaSubtree] = {}

    def seen(self, obj: Json) -> None:
        """A QuotaSubtree as it is; without a label that names its tree it is of none."""
        uid, subtree = obj["metadata"]["uid"], read_quota(obj)
        if subtree is None:
            self.gone(uid)
        elif self._known.get(uid) != subtree:
            self._known[uid] = subtree
            self._feed(QuotaSeen(subtree))

    def gone(self, uid: str) -> None:
        """A QuotaSubtree was deleted."""
        if self._known.pop(uid, None) is not None:
            self._feed(QuotaGone(uid))
