"""Writes the status of AppWrappers: fenced, one write at a time, and only changes.

It does not judge answers (P3a); after a conflict the object is read.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from mcad.api.status import render_status
from mcad.controller.mirror import Mirror, Reflection, status_mark
from mcad.controller.request_failures import answer_of
from mcad.controller.write_lanes import Lane, held_alone
from mcad.core.commands import WriteStatus
from mcad.core.events import Event, StatusRefused, StatusWritten
from mcad.core.state.answer import Answer
from mcad.core.state.model import DispatchPhase
from mcad.core.state.status_view import Urgency
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import APPWRAPPERS
from mcad.kube.versions import is_older

Json = dict[str, Any]


class StatusWriter:
    """Writes the status that the core commands."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        feed: Callable[[Event], None],
        observe: Callable[[Json], None],
        errored: Callable[[str, Exception], None],
    ) -> None:
        """``observe`` takes an AppWrapper that was read after a conflict, ``errored`` an error of
        ours about one (uid)."""
        self._client = client
        self._mirror = mirror
        self._feed = feed
        self._observe = observe
        self._errored = errored
        self._writing: dict[str, asyncio.Event] = {}
        self._latest: dict[str, tuple[WriteStatus, Json]] = {}

    def submit(self, command: WriteStatus, lane: Lane) -> None:
        """Write in the turn of the lane; a status that is stored already is not sent."""
        seat = self._mirror.get(command.uid)
        if seat is None:
            return  # deleted; the core is about to hear of it
        ours = render_status(command.status, command.uid)
        if status_mark(seat.whole(ours)) == seat.status_mark and command.uid not in self._writing:
            self._latest.pop(command.uid, None)  # one that waits would say something else
            self._feed(StatusWritten(command.uid, command.serial))
            return
        self._latest[command.uid] = command, ours
        job = partial(
            held_alone, self._errored, command.uid, partial(self._write_newest, command.uid)
        )
        if command.urgency is Urgency.DISPATCH:
            lane.submit(job, begins=_is_intent(command))
        else:
            lane.defer(job)

    async def _write_newest(self, uid: str) -> None:
        """Write the newest status of the AppWrapper after its running write. There is none if an
        earlier turn, of a status that it superseded, was for the newest already."""
        while uid in self._writing:
            await self._writing[uid].wait()
        seat, newest = self._mirror.get(uid), self._latest.pop(uid, None)
        if seat is None or newest is None:
            return
        command, ours = newest
        done = self._writing[uid] = asyncio.Event()
        try:
            self._feed(await self._write_status(command, seat, seat.whole(ours)))
        finally:
            del self._writing[uid]
            done.set()

    async def _write_status(self, command: WriteStatus, seat: Reflection, status: Json) -> Event:
        """Write with the version that the core knows: it has judged every newer one."""
        work = seat.workload
        fence, mark = (command.uid, seat.version), status_mark(status)
        seat.expected = mark
        try:
            answer = await self._client.replace_status(
                APPWRAPPERS, work.namespace, work.name, fence, status
            )
        except KubeError as error:
            if isinstance(error, ApiError) and error.conflict:
                return await self._settle_conflict(command, seat, mark)
            return StatusRefused(command.uid, command.serial, answer_of(error))
        self._mirror.written(command.uid, answer["metadata"]["resourceVersion"], mark)
        return StatusWritten(command.uid, command.serial)

    async def _settle_conflict(self, command: WriteStatus, seat: Reflection, mark: bytes) -> Event:
        """Read the object: another client wrote, or our own first request succeeded."""
        work, serial, known = seat.workload, command.serial, seat.version
        try:
            live = await self._client.get(APPWRAPPERS, work.namespace, work.name)
        except KubeError as error:
            return StatusRefused(command.uid, serial, answer_of(error))
        if live["metadata"]["uid"] != command.uid:
            gone = Answer(404, "NotFound", "another AppWrapper has this name now")
            return StatusRefused(command.uid, serial, gone)
        if seat.version == known and is_older(live["metadata"]["resourceVersion"], known):
            seat.floor = ""  # a read that began after we knew it: the server was restored (P13)
        if status_mark(live.get("status")) == mark:
            self._mirror.written(command.uid, live["metadata"]["resourceVersion"], mark)
            return StatusWritten(command.uid, serial)
        self._observe(live)
        return StatusRefused(command.uid, serial, Answer(409, "Conflict", "it has changed"))


def _is_intent(command: WriteStatus) -> bool:
    """Whether nothing of an attempt exists before this write."""
    record = command.status.dispatch
    return record is not None and record.phase is DispatchPhase.CREATING
