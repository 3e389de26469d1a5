"""Callers that have logged in, each with a board and a view of its own, while it is used."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn

from mcad.client.errors import McadError
from mcad.client.figures.pace import PATIENT
from mcad.client.scope import Scope, Source
from mcad.client.session import Environment
from mcad.ui.board import Board
from mcad.ui.token_access import ApiServer, TokenEnvironment, namespace_of, read_user
from mcad.ui.view import View

CALLERS_MAX = 100  # each keeps figures in memory
IDLE_S = 1800.0  # without a request and without an open page
AGE_S = 12 * 3600.0
SWEEP_S = 30.0
BEGIN_S = 30.0  # until the first figures


class Caller:
    """A token, and the view of what it may see. ``key`` identifies it and is not secret."""

    def __init__(self, key: str, environment: TokenEnvironment, view: View) -> None:
        self.key = key
        self.view = view
        self.begun_at = self.used_at = environment.clock.monotonic()
        self.ended = asyncio.Event()

    async def live(self) -> None:
        """Follow the figures until it has ended; raises why there are none."""
        async with self.view.board.followed(self.ended.set):
            await self.ended.wait()

    def end(self) -> None:
        """Log out: the token is forgotten and open pages are sent nothing more."""
        self.ended.set()
        self.view.end_streams()


class Callers:
    """All of them, by token and namespace."""

    def __init__(self, environment: Environment, source: Source) -> None:
        self.target = source.target
        self._environment = environment
        self._source = source
        self._callers: dict[str, Caller] = {}
        self._entering: dict[str, asyncio.Task[Caller]] = {}
        self._living: set[asyncio.Task[None]] = set()

    async def enter(self, token: str, namespace: str) -> Caller:
        """The caller with this token; raises ``McadError`` if the API server does not accept it, or
        does not show it anything. ``namespace`` "" is all, or that of a service account."""
        key = hashlib.sha256(f"{namespace}/{token}".encode()).hexdigest()
        known = self._callers.get(key)
        if known is not None:
            known.used_at = self._environment.clock.monotonic()
            return known
        if key not in self._entering:  # a browser asks for several files at once
            entering = asyncio.ensure_future(self._enter(key, token, namespace))
            self._entering[key] = entering
            entering.add_done_callback(lambda _: self._entering.pop(key, None))
        return await asyncio.shield(self._entering[key])

    async def _enter(self, key: str, token: str, namespace: str) -> Caller:
        if len(self._callers) >= CALLERS_MAX:
            self.sweep()
        if len(self._callers) >= CALLERS_MAX:
            raise McadError(f"{CALLERS_MAX} callers use this page already; try again later")
        server = ApiServer.of(self.target)
        environment = TokenEnvironment(self._environment, server, token, lambda: self.leave(key))
        async with environment.connect(self.target, watches=False) as session:
            user = await read_user(session.client)
        environment.own = namespace_of(user) or server.namespace
        scope = Scope(namespace or None, all_namespaces=not namespace)
        board = Board(environment, self._source, scope, may_narrow=not namespace, pace=PATIENT)
        caller = Caller(key, environment, View(board, user or "a caller without a name"))
        await self._begin(caller)
        self._callers[key] = caller
        return caller

    async def _begin(self, caller: Caller) -> None:
        """Wait for the first figures."""
        living = asyncio.ensure_future(caller.live())
        self._living.add(living)
        living.add_done_callback(lambda task: self._over(caller, task))
        first = asyncio.ensure_future(caller.view.board.after(0))
        try:
            async with asyncio.timeout(BEGIN_S):
                await asyncio.wait({living, first}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            caller.end()
            raise McadError("the cluster has not answered in time; try again later") from None
        finally:
            first.cancel()
            await asyncio.wait({first})
        if living.done():
            _raise_why(living)

    def _over(self, caller: Caller, living: asyncio.Task[None]) -> None:
        self._living.discard(living)
        if self._callers.get(caller.key) is caller:
            self.leave(caller.key)
        if not living.cancelled():
            living.exception()  # raised to the login already

    def leave(self, key: str) -> None:
        """End a caller."""
        caller = self._callers.pop(key, None)
        if caller is not None:
            caller.end()

    def find(self, key: str) -> Caller | None:
        """The caller of a session that is used now."""
        caller = self._callers.get(key)
        if caller is not None:
            caller.used_at = self._environment.clock.monotonic()
        return caller

    def end_streams(self) -> None:
        """End what open pages are sent."""
        for one in self._callers.values():
            one.view.end_streams()

    @asynccontextmanager
    async def swept(self) -> AsyncIterator[None]:
        """End callers that are not used any more, and at the end of the block all."""
        sweeping = asyncio.ensure_future(self._sweep_for_ever())
        try:
            yield
        finally:
            sweeping.cancel()
            for one in list(self._callers):
                self.leave(one)
            await asyncio.gather(sweeping, *self._living, return_exceptions=True)

    async def _sweep_for_ever(self) -> None:
        while True:
            await self._environment.clock.sleep(SWEEP_S)
            self.sweep()

    def sweep(self) -> None:
        """End those that are idle, and those that have logged in long ago."""
        now = self._environment.clock.monotonic()
        for key, one in list(self._callers.items()):
            if one.view.is_open:
                one.used_at = now
            if now > min(one.used_at + IDLE_S, one.begun_at + AGE_S):
                self.leave(key)


def _raise_why(living: asyncio.Task[None]) -> NoReturn:
    """Raise why there are no figures, in the words of the form."""
    try:
        living.result()
    except McadError as error:
        raise McadError(error.message.replace(" with -n", " below")) from error
    raise McadError("the API server does not accept this token any more")
