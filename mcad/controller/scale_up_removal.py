"""Deletes scale-up requests until nothing of them is left.

A withdrawal finds by labels what exists, also what an earlier leader made, and what is stored late:
a creation without an answer may be committed for a while (``COMMIT_GRACE``).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from mcad.api import labels
from mcad.api.scale_up.answers import asked_by
from mcad.core.state.bounds import COMMIT_GRACE
from mcad.core.state.units import SECOND
from mcad.kube.client import DeleteOptions, Selection
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import POD_TEMPLATES, PODS
from mcad.kube.retry import Backoff, Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from mcad.controller.scale_up_book import Book
    from mcad.controller.write_lanes import Job
    from mcad.core.state.scale_up import Key
    from mcad.kube.client import Client
    from mcad.kube.resource import Resource

Json = dict[str, Any]
_log = logging.getLogger(__name__)

AGAIN = Pace(first_s=0.2, max_s=30.0)
"""Between two tries to delete what is left of a request."""


class Removal:
    """The withdrawals of one controller."""

    def __init__(
        self,
        client: Client,
        book: Book,
        *,
        resources: Callable[[], Iterable[Resource]],
        spawn: Callable[[Coroutine[Any, Any, Any]], object],
        namespaces: Sequence[str] = (),
    ) -> None:
        """``resources`` are the kinds that a request may consist of, what the others refer to
        last."""
        self._client = client
        self._book = book
        self._resources = resources
        self._spawn = spawn
        self._namespaces: Sequence[str | None] = namespaces or (None,)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._under_way: set[Key] = set()
        self._unanswered: dict[Key, float] = {}  # until when a creation may still be committed

    def turn(self, key: Key) -> asyncio.Lock:
        """Requests for one AppWrapper are created and deleted one after the other."""
        return self._turns.setdefault(key[0], asyncio.Lock())

    def is_under_way(self, key: Key) -> bool:
        """Whether the request is being deleted."""
        return key in self._under_way

    def note_unanswered(self, key: Key) -> None:
        """Note that a creation had no answer: what it creates may come later."""
        self._unanswered[key] = self._client.clock.monotonic() + COMMIT_GRACE / SECOND

    def begin(self, key: Key) -> Job | None:
        """The job that deletes a request; None while one is under way."""
        if key in self._under_way:
            return None
        self._under_way.add(key)
        return partial(self._withdraw, key)

    def clear(self, key: Key) -> None:
        """Delete the rest of a request of which an object has gone."""
        if key not in self._under_way and key not in self._book.silent:
            self._under_way.add(key)
            self._spawn(self._withdraw(key))

    async def _withdraw(self, key: Key) -> None:
        """Delete a request. What is left after that is deleted by a task that takes no turn of
        writes while it waits."""
        if await self._is_left(key):
            self._spawn(self._withdraw_rest(key))

    async def _withdraw_rest(self, key: Key) -> None:
        backoff = Backoff(self._client.clock, self._client.rng, AGAIN)
        await self._client.clock.sleep(backoff.delay())
        while await self._is_left(key):
            await self._client.clock.sleep(backoff.delay())

    async def _is_left(self, key: Key) -> bool:
        """Delete what there is of a request; whether something may be left, or may come."""
        async with self.turn(key):
            try:
                if await self._delete_all(key) and await self._delete_all(key):
                    return True
            except KubeError as error:
                _log.warning("a scale-up request cannot be deleted key=%s error=%s", key, error)
                return True
            if self._client.clock.monotonic() < self._unanswered.get(key, 0):
                return True
            self._unanswered.pop(key, None)
            self._under_way.discard(key)
            self._book.deleted(key)
            return False

    async def _delete_all(self, key: Key) -> int:
        """Delete all that a live list shows of a request. Returns how many objects that were."""
        count = 0
        for resource in self._resources():
            for namespace in self._book.namespaces(key) or self._namespaces:
                for one in await self._list(resource, namespace, key[0]):
                    if asked_by(one) == key:
                        count += 1
                        await self.delete(resource, one)
        return count

    async def _list(self, resource: Resource, namespace: str | None, uid: str) -> list[Json]:
        selector = f"{labels.SCALE_UP_UID}={uid}" if uid else labels.SCALE_UP_UID
        selection = Selection(namespace, selector, metadata_only=True)
        try:
            return (await self._client.list_all(resource, selection))[0]
        except ApiError as error:
            if error.not_found:
                return []  # the kind itself is gone, and so are its objects
            raise

    async def delete(self, resource: Resource, obj: Json) -> None:
        """Delete exactly this object, unless it is terminating already."""
        metadata = obj["metadata"]
        if "deletionTimestamp" in metadata and resource is not PODS:
            return
        options = DeleteOptions(uid=metadata["uid"])
        try:
            await self._client.delete(resource, metadata["namespace"], metadata["name"], options)
        except ApiError as error:
            if not (error.not_found or error.conflict):
                raise

    # -- what an earlier leader left -------------------------------------------------------------

    async def sweep(self) -> None:
        """Delete PodTemplates without a request: an earlier leader ended between the two. What it
        asked for last may be stored for a while after that."""
        await self._sweep_all()
        await self._client.clock.sleep(COMMIT_GRACE / SECOND)
        await self._sweep_all()

    async def _sweep_all(self) -> None:
        try:
            for namespace in self._namespaces:
                for one in await self._list(POD_TEMPLATES, namespace, ""):
                    await self._sweep(one)
        except KubeError as error:
            _log.warning("PodTemplates of scale-up requests cannot be listed error=%s", error)

    async def _sweep(self, template: Json) -> None:
        key = asked_by(template)
        async with self.turn(key):
            if key[0] and key not in self._book and key not in self._under_way:
                await self.delete(POD_TEMPLATES, template)
