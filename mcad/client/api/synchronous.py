"""The Python client for scripts and notebooks: ``AsyncClient`` on an event loop in a thread.

Notebooks run an event loop of their own, in which nothing can be waited for without ``await``.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Self, TypeVar

from mcad.client.api.asynchronous import AsyncAppWrapper, AsyncClient, Dialect, Until
from mcad.client.api.capacity import Capacity
from mcad.client.api.events import Events
from mcad.client.api.logs import Log
from mcad.client.api.objects import Objects
from mcad.client.api.progress import Progress
from mcad.client.api.quota import Quota
from mcad.client.api.results import Queue, WhatIf, Why
from mcad.client.errors import McadError

Json = dict[str, Any]
T = TypeVar("T")


class _LoopThread:
    """An event loop in a thread, until it is stopped or its owner is gone."""

    def __init__(self, owner: object, client: AsyncClient) -> None:
        """``client`` is closed with it."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mcad", daemon=True)
        self._thread.start()
        self._end = weakref.finalize(owner, _stop, client, self._loop, self._thread)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of a coroutine; Ctrl-C cancels it."""
        if not self._end.alive:
            work.close()
            raise McadError("the client is closed; make another `Client()`")
        if threading.current_thread() is self._thread:  # a callback: it would wait for itself
            work.close()
            raise McadError("call no method of the client in on_reason or on_progress")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def stop(self) -> None:
        """Close the client and end the thread; a second time is ignored."""
        self._end()


def _stop(client: AsyncClient, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    async def end() -> None:
        try:
            await client.close()
        finally:
            loop.stop()

    asyncio.run_coroutine_threadsafe(end(), loop)
    if thread is not threading.current_thread():  # where the owner may be collected, too
        thread.join()
        loop.close()


class Client:
    """Submits AppWrappers to a cluster and asks about them.

    It connects at once; close it, or use it as ``with Client() as client``. All methods raise
    ``McadError`` with one sentence that says what to do, and warn with ``McadWarning`` about what
    is not certain. Names may be NAME, in the namespace of the client, or NAMESPACE/NAME. The
    methods are those of ``AsyncClient``.
    """

    def __init__(
        self,
        *,
        namespace: str | None = None,
        kubeconfig: str | None = None,
        context: str | None = None,
    ) -> None:
        """The namespace is that of the context unless given. Without a kubeconfig a pod uses its
        service account. Raises ``McadError`` if the API server does not answer."""
        self._client = AsyncClient(namespace=namespace, kubeconfig=kubeconfig, context=context)
        self._thread = _LoopThread(self, self._client)
        try:
            self._thread.run(self._client.__aenter__())
        except BaseException:
            self._thread.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a second time is ignored."""
        self._thread.stop()

    @property
    def namespace(self) -> str:
        """The namespace of names without one."""
        return self._client.namespace

    def submit(  # noqa: PLR0913 - see AsyncClient
        self,
        objects: Objects,
        *,
        name: str | None = None,
        namespace: str | None = None,
        priority: int | None = None,
        leaf: Mapping[str, str] | None = None,
        dialect: Dialect = "v1beta2",
        dry_run: bool = False,
    ) -> AppWrapper:
        """Create an AppWrapper of manifests, models or files; see ``AsyncClient.submit``."""
        work = self._client.submit(
            objects,
            name=name,
            namespace=namespace,
            priority=priority,
            leaf=leaf,
            dialect=dialect,
            dry_run=dry_run,
        )
        return AppWrapper(self, self._thread.run(work))

    def get(self, name: str) -> AppWrapper:
        """An AppWrapper as it is now; raises ``NotFoundError``."""
        return AppWrapper(self, self._thread.run(self._client.get(name)))

    def queue(self, *, all_namespaces: bool = False, waiting_only: bool = True) -> Queue:
        """The AppWrappers that wait, in order; with those that run or have ended if asked."""
        work = self._client.queue(all_namespaces=all_namespaces, waiting_only=waiting_only)
        return self._thread.run(work)

    def wait(
        self,
        name: str,
        until: Until = "dispatched",
        *,
        timeout: float | None = None,
        on_reason: Callable[[str], object] | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> None:
        """Wait until an AppWrapper is dispatched, running, completed, failed or deleted; see
        ``AsyncClient.wait``."""
        work = self._client.wait(
            name, until, timeout=timeout, on_reason=on_reason, on_progress=on_progress
        )
        self._thread.run(work)

    def why(self, name: str) -> Why:
        """Why an AppWrapper waits, and what would start it."""
        return self._thread.run(self._client.why(name))

    def what_if(  # noqa: PLR0913 - see AsyncClient
        self,
        objects: Objects | None = None,
        *,
        nodes: int | None = None,
        like: str | None = None,
        without: str | tuple[str, ...] = (),
        quota: Mapping[str, Mapping[str, str]] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> WhatIf:
        """What the dispatcher would do with these changes; see ``AsyncClient.what_if``."""
        work = self._client.what_if(
            objects, nodes=nodes, like=like, without=without, quota=quota, settings=settings
        )
        return self._thread.run(work)

    def quota(self, tree: str | None = None) -> Quota:
        """The nodes of all quota trees, or of one; raises ``McadError`` if quota is off."""
        return self._thread.run(self._client.quota(tree))

    def capacity(self) -> Capacity:
        """What the nodes have, what is used, reserved and free."""
        return self._thread.run(self._client.capacity())

    def events(self, name: str) -> Events:
        """The Events of an AppWrapper, its items and its pods, oldest first."""
        return self._thread.run(self._client.events(name))

    def logs(
        self,
        name: str,
        *,
        item: int | None = None,
        container: str | None = None,
        tail: int | None = None,
    ) -> tuple[Log, ...]:
        """The logs of the pods of an AppWrapper as they are now; see ``AsyncClient.logs``."""
        work = self._client.logs(name, item=item, container=container, tail=tail)
        return self._thread.run(work)

    def hold(self, name: str) -> None:
        """Keep an AppWrapper from starting until it is released; see ``AsyncClient.hold``."""
        self._thread.run(self._client.hold(name))

    def release(self, name: str) -> None:
        """Let an AppWrapper on hold queue again, at its original position."""
        self._thread.run(self._client.release(name))

    def delete(self, name: str) -> None:
        """Delete an AppWrapper with all of its objects; raises ``NotFoundError``."""
        self._thread.run(self._client.delete(name))


class AppWrapper:
    """An AppWrapper of the cluster, as it was when it was last read."""

    def __init__(self, client: Client, behind: AsyncAppWrapper) -> None:
        self._owner = client  # its thread ends when it is gone
        self._thread = client._thread
        self._behind = behind

    @property
    def raw(self) -> Json:
        """The object as the API server has it."""
        return self._behind.raw

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self._behind.namespace

    @property
    def name(self) -> str:
        """Its name."""
        return self._behind.name

    @property
    def uid(self) -> str:
        """Its uid."""
        return self._behind.uid

    @property
    def state(self) -> str:
        """``status.state``, such as Pending or Running; "" before the dispatcher has seen it."""
        return self._behind.state

    def refresh(self) -> Self:
        """Read it again; raises ``NotFoundError`` if it is gone, or another has its name."""
        self._thread.run(self._behind.refresh())
        return self

    def wait(
        self,
        until: Until = "dispatched",
        *,
        timeout: float | None = None,
        on_reason: Callable[[str], object] | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> Self:
        """Wait as ``Client.wait`` does, and read it again unless it is deleted."""
        work = self._behind.wait(
            until, timeout=timeout, on_reason=on_reason, on_progress=on_progress
        )
        self._thread.run(work)
        return self

    def why(self) -> Why:
        """Why it waits, and what would start it."""
        return self._thread.run(self._behind.why())

    def events(self) -> Events:
        """The Events of it, of its items and of its pods, oldest first."""
        return self._thread.run(self._behind.events())

    def logs(
        self, *, item: int | None = None, container: str | None = None, tail: int | None = None
    ) -> tuple[Log, ...]:
        """The logs of its pods; see ``AsyncClient.logs``."""
        return self._thread.run(self._behind.logs(item=item, container=container, tail=tail))

    def hold(self) -> Self:
        """Keep it from starting until it is released, and read it again."""
        self._thread.run(self._behind.hold())
        return self

    def release(self) -> Self:
        """Let it queue again, and read it again."""
        self._thread.run(self._behind.release())
        return self

    def delete(self) -> None:
        """Delete it with all of its objects."""
        self._thread.run(self._behind.delete())

    def __repr__(self) -> str:
        return repr(self._behind)

    def _repr_html_(self) -> str:
        return self._behind._repr_html_()
