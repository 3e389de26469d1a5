"""Checks before anything is served: rights, the installed CRD, other controllers.

With another schema (unknown fields are pruned) or beside another controller of the same objects
(both write the status) the dispatcher would do harm, so it refuses to start. A missing CRD is
waited for and checked when it comes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing
from typing import Any

from mcad.api import crd
from mcad.api.config import Config
from mcad.api.crddiff import first_difference
from mcad.controller import other_controllers
from mcad.controller.streams import Part
from mcad.kube.client import Client, Selection
from mcad.kube.clock import Clock
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import APPWRAPPERS, CONFIG_MAPS, CRDS, NODES, PODS, QUOTA_SUBTREES
from mcad.kube.resource import Resource
from mcad.kube.types import Json

_log = logging.getLogger(__name__)

WEBHOOKS = tuple(
    Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)
INSTALLED_RETRY_S = 1.0  # how often it is looked whether AppWrappers are installed by now
INSTALL = "mcad crd | kubectl apply --server-side -f -"
GRANT = "grant the dispatcher's rights with `mcad rbac | kubectl apply -f -`"


REMOVE = (
    "both would manage the same AppWrappers: remove the other one (if that was just done, start "
    "again in a minute), or run with --force-coexist if you know that it leaves them alone"
)


class Unfit(Exception):  # noqa: N818 - a verdict on the cluster
    """The dispatcher must not run on this cluster; the message says why and what to do."""


class Preflight:
    """The checks before this process leads; ``KubeError`` if the server cannot be read.

    With ``coexist`` another controller is only a warning.
    """

    def __init__(self, client: Client, config: Config, *, coexist: bool = False) -> None:
        self._client = client
        self.coexist = coexist
        self._namespaces = config.watch_namespaces or (None,)
        self._counts_shares = config.quota_enabled
        self._is_judged = False  # by ``check``, a moment ago

    async def check(self) -> None:
        """Run all checks that need no list of AppWrappers; raises ``Unfit``."""
        self._installed = False
        for resource in (NODES, PODS):
            await self._check_right(resource, None)
        if self._counts_shares:
            await self._look_at_shares()
        self._is_judged = await self.installed()
        if not self._is_judged:
            _log.warning("AppWrappers are not installed; they are waited for remedy=%s", INSTALL)
        await self._look_for_webhooks()

    def listed(self, writes: Iterable[other_controllers.Write]) -> None:
        """Check the last writes to all AppWrappers for other controllers; raises ``Unfit``."""
        write = other_controllers.latest_write(writes, self._client.clock.now_us())
        if write:
            self._met(f"another controller is at work: {write}")

    async def installed(self) -> bool:
        """Whether AppWrappers are served in this version; ``Unfit`` if with another schema.

        The kind is read before its CRD: a kind that appears in between is found the next time.
        """
        if self._is_judged:
            self._is_judged = False
            return True
        for namespace in self._namespaces:
            try:
                await self._check_right(APPWRAPPERS, namespace)
            except ApiError as error:
                if not error.not_found:
                    raise
                return False
        await self._compare(crd.NAME)
        return True

    async def _look_at_shares(self) -> None:
        """Check the CRD of QuotaSubtrees; a missing one is reported by its watch."""
        for namespace in self._namespaces:
            try:
                await self._check_right(QUOTA_SUBTREES, namespace)
            except ApiError as error:
                if not error.not_found:
                    raise
                return
        await self._compare(crd.QUOTA_NAME)

    async def _check_right(self, resource: Resource, namespace: str | None) -> None:
        """Whether a kind may be listed and watched."""
        selection = Selection(namespace=namespace, metadata_only=True)
        try:
            async with aclosing(self._client.list_pages(resource, selection, limit=1)) as pages:
                await anext(pages)
        except ApiError as error:
            if error.forbidden:
                raise Unfit(f"{error.message}; {GRANT}") from error
            raise

    async def _compare(self, name: str) -> None:
        try:
            live = await self._client.get(CRDS, None, name)
        except ApiError as error:
            if error.forbidden:
                _log.warning(
                    "the installed CRD cannot be compared error=%s remedy=%s", error.message, GRANT
                )
            elif error.not_found:
                _log.info("served without a CRD, nothing to compare name=%s", name)
            else:
                raise
            return
        ours = next(one for one in crd.crds() if one["metadata"]["name"] == name)
        difference = first_difference(live, ours)
        if difference:
            raise Unfit(
                f"the installed CRD {name} is not the one of this version: {difference}; "
                f"install the right one with `{INSTALL}`, or with `helm upgrade`"
            )

    async def _look_for_webhooks(self) -> None:
        found: list[Json] = []
        try:
            for resource in WEBHOOKS:
                found += (await self._client.list_all(resource))[0]
        except ApiError as error:
            if error.forbidden:
                _log.warning(
                    "no other controller can be looked for error=%s remedy=%s", error.message, GRANT
                )
            elif not error.not_found:  # a server that has no webhooks
                raise
        for one in other_controllers.webhooks(found):
            if await self._is_active(one):
                self._met(f"another controller is installed: webhook configuration {one}")
                return

    async def _is_active(self, webhook: other_controllers.Webhook) -> bool:
        """Whether the owner of a webhook is active: Kueue registers its own in any case."""
        try:
            settings = await self._client.get(CONFIG_MAPS, webhook.namespace, webhook.settings)
        except ApiError as error:
            if error.not_found or error.forbidden:
                return True
            raise
        return other_controllers.integrates(settings)

    def _met(self, sign: str) -> None:
        if not self.coexist:
            raise Unfit(f"{sign}; {REMOVE}")
        _log.warning("%s; going on because of --force-coexist", sign)


class Gate:
    """Delays the first list of AppWrappers until ``installed`` returns True.

    So a CRD that is created later, or again, is checked before its first object is read. It is
    checked once a second, however many lists wait.
    """

    def __init__(
        self,
        installed: Callable[[], Awaitable[bool]],
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """``spawn`` runs a task that ends with the controller."""
        self._installed = installed
        self._clock = clock
        self._spawn = spawn
        self._waiting: set[Part[Any]] = set()
        self._looking: asyncio.Task[None] | None = None

    async def passed(self, part: Part[Any]) -> None:
        """Wait until AppWrappers may be listed; until then ``part`` gets the reason.

        Raises what ``installed`` raises, except ``KubeError``.
        """
        self._waiting.add(part)
        if self._looking is None:
            self._looking = self._spawn(self._await_open())
        await asyncio.shield(self._looking)

    async def _await_open(self) -> None:
        try:
            while not await self._is_open():
                await self._clock.sleep(INSTALLED_RETRY_S)
        finally:
            self._waiting.clear()
            self._looking = None

    async def _is_open(self) -> bool:
        try:
            if await self._installed():
                return True
            error: KubeError = ApiError(404, message="AppWrappers are not installed")
        except KubeError as caught:
            error = caught
        for part in self._waiting:
            part.failing(error)
        return False
