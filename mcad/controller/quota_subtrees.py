"""Passes QuotaSubtrees from the watch to the core, and writes their status.

Like a Mirror it keeps the version that fences the next write, and a digest of the status.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcad.api.quotas import (
    QUOTA_STATUS,
    read_quota,
    read_quota_status,
    render_quota_status,
)
from mcad.api.wire import fields_of_others
from mcad.controller.mirror import Versioned, status_mark
from mcad.controller.request_failures import answer_of
from mcad.core.events import QuotaGone, QuotaRefused, QuotaSeen, QuotaWritten
from mcad.kube.errors import ApiError, Fenced, KubeError
from mcad.kube.kinds import QUOTA_SUBTREES

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcad.core.commands import WriteQuota
    from mcad.core.events import Event
    from mcad.core.state.quota_records import QuotaSubtree
    from mcad.kube.client import Client

Json = dict[str, Any]
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seat(Versioned):
    """One QuotaSubtree as the core knows it."""

    subtree: QuotaSubtree
    others: Json
    is_told: bool = False


class Quotas:
    """Receives QuotaSubtrees from their watch and writes the status that the core commands."""

    def __init__(self, client: Client, feed: Callable[[Event], None]) -> None:
        """``client`` is the one that may write."""
        self._client = client
        self._feed = feed
        self._seats: dict[str, _Seat] = {}

    def listing(self, namespace: str) -> None:
        """A list of a namespace, or of all (""), begins: its versions are accepted even if older.

        The server may have been restored from a backup.
        """
        for seat in self._seats.values():
            if namespace in ("", seat.subtree.namespace):
                seat.floor = ""

    def seen(self, obj: Json) -> None:
        """Take a new or changed QuotaSubtree; echoes of our writes are ignored."""
        uid, version = obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
        subtree, mark = read_quota(obj), status_mark(obj.get("status"))
        seat = self._seats.get(uid)
        if seat is not None:
            if seat.precedes(version):
                return
            seat.reached(version)
            if subtree == seat.subtree and seat.shows_status(mark):
                seat.status_mark = mark
                return
        others = fields_of_others(obj.get("status"), QUOTA_STATUS)
        self._seats[uid] = _Seat(subtree, others, version=version, status_mark=mark, floor=version)
        self._feed(QuotaSeen(subtree, read_quota_status(obj.get("status"))))

    def gone(self, uid: str) -> None:
        """A QuotaSubtree was deleted."""
        if self._seats.pop(uid, None) is not None:
            self._feed(QuotaGone(uid))

    async def write(self, command: WriteQuota) -> None:
        """Replace one status, fenced; a conflict means that a newer version comes."""
        seat = self._seats.get(command.uid)
        if seat is None:
            return  # deleted; the core has heard of it
        status = {**seat.others, **render_quota_status(command.status)}
        seat.expected = mark = status_mark(status)
        fence = command.uid, seat.version
        where = (seat.subtree.namespace, seat.subtree.name)
        try:
            answer = await self._client.replace_status(QUOTA_SUBTREES, *where, fence, status)
        except KubeError as error:
            self._log_once(seat, error)
            self._feed(QuotaRefused(command.uid, command.serial, answer_of(error)))
            return
        seat = self._seats.get(command.uid, seat)
        seat.written(answer["metadata"]["resourceVersion"], mark)
        seat.is_told = False
        self._feed(QuotaWritten(command.uid, command.serial))

    @staticmethod
    def _log_once(seat: _Seat, error: KubeError) -> None:
        """Log a failure once until a write succeeds; not a conflict, nor a write that was not sent
        because the process ends."""
        is_conflict = isinstance(error, ApiError) and error.conflict
        if seat.is_told or is_conflict or isinstance(error, Fenced):
            return
        seat.is_told = True
        title = seat.subtree.title
        _log.warning("a status cannot be written quotasubtree=%s error=%s", title, error)
