"""The Python client for programs with an event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any, Literal, Self

from mcad.api.config import Config
from mcad.api.questions import Changes
from mcad.client.answers.what_if import what_if
from mcad.client.api import html
from mcad.client.api.capacity import Capacity
from mcad.client.api.events import Event, Events
from mcad.client.api.logs import Log, read_logs
from mcad.client.api.objects import Objects, documents_of
from mcad.client.api.progress import Progress, Reporter
from mcad.client.api.quota import Quota
from mcad.client.api.results import Queue, QueueRow, WhatIf, Why
from mcad.client.appwrappers.goals import GOALS
from mcad.client.appwrappers.latest_events import all_events
from mcad.client.appwrappers.owned_objects import owned_objects
from mcad.client.appwrappers.read import read_appwrapper
from mcad.client.appwrappers.state import is_held, title, why_over
from mcad.client.appwrappers.state import state as state_of
from mcad.client.appwrappers.suspension import suspend
from mcad.client.appwrappers.wait import wait_for
from mcad.client.appwrappers.watch import Wait
from mcad.client.config import load_config
from mcad.client.errors import (
    FailedError,
    McadError,
    NotFoundError,
    UnavailableError,
    explain,
    warn,
)
from mcad.client.figures.figures import warn_of_notes
from mcad.client.figures.of_visibility import VisibilityFigures
from mcad.client.figures.quota_trees import read_trees, warnings_of
from mcad.client.figures.row import is_waiting, within
from mcad.client.figures.source import figures_in
from mcad.client.manifests.documents import Document
from mcad.client.manifests.sending import checked, send
from mcad.client.manifests.wrapping import Wrapping, wrapped
from mcad.client.scope import Settings, Target
from mcad.client.session import Environment, Session
from mcad.kube.client import DeleteOptions
from mcad.kube.errors import KubeError
from mcad.kube.kinds import APPWRAPPERS, CAPACITY_REPORTS, QUOTA_REPORTS

Json = dict[str, Any]

Until = Literal["dispatched", "running", "completed", "failed", "deleted"]
Dialect = Literal["v1beta1", "v1beta2"]


class AsyncClient:
    """Submits AppWrappers to a cluster and asks about them.

    Use it as ``async with AsyncClient() as client``. All methods raise ``McadError`` with one
    sentence that says what to do, and warn with ``McadWarning`` about what is not certain, such as
    that no dispatcher is running. Names may be NAME, in the namespace of the client, or
    NAMESPACE/NAME.
    """

    def __init__(
        self,
        *,
        namespace: str | None = None,
        kubeconfig: str | None = None,
        context: str | None = None,
    ) -> None:
        """The namespace is that of the context unless given. Without a kubeconfig a pod uses its
        service account."""
        self._target = Target(kubeconfig, context)
        self._namespace = namespace
        self._environment = Environment()
        self._open: AsyncExitStack | None = None
        self._session: Session | None = None

    async def __aenter__(self) -> Self:
        """Connect; raises ``McadError`` if the API server does not answer."""
        async with AsyncExitStack() as stack:
            connection = self._environment.connect(self._target)
            self._session = await stack.enter_async_context(connection)
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        stack, self._open, self._session = self._open, None, None
        if stack is not None:
            await stack.aclose()

    @property
    def namespace(self) -> str:
        """The namespace of names without one."""
        return self._namespace or self._connection.namespace

    async def submit(  # noqa: PLR0913 - each is a field of the AppWrapper
        self,
        objects: Objects,
        *,
        name: str | None = None,
        namespace: str | None = None,
        priority: int | None = None,
        leaf: Mapping[str, str] | None = None,
        dialect: Dialect = "v1beta2",
        dry_run: bool = False,
    ) -> AsyncAppWrapper:
        """Create an AppWrapper, checked as ``mcad submit`` checks it.

        ``objects``: manifests as dicts, models of the ``kubernetes`` package, or paths of files.
        They become the items of an AppWrapper called ``name``, in their order; ``leaf`` is the leaf
        of each quota tree that it is charged to, by the name of the tree. One manifest of an
        AppWrapper is created as it is, without ``name``, ``priority`` and ``leaf``.

        Raises ``InvalidError`` with all faults, and creates nothing then.
        """
        wrapping = Wrapping(name or "", priority, tuple((leaf or {}).items()), dialect)
        document = _one_appwrapper(documents_of(objects), namespace, wrapping)
        with _explained():
            config, client = self._config(), self._connection.client
            (one,) = await checked(client, config, [document], namespace, self.namespace)
            return AsyncAppWrapper(self, await send(client, one.obj, dry_run=dry_run))

    async def get(self, name: str) -> AsyncAppWrapper:
        """An AppWrapper as it is now; raises ``NotFoundError``."""
        return AsyncAppWrapper(self, await self._read(name))

    async def queue(self, *, all_namespaces: bool = False, waiting_only: bool = True) -> Queue:
        """The AppWrappers that wait, in order; with those that run or have ended if asked."""
        with _explained():
            space = None if all_namespaces else self.namespace
            figures = await figures_in(self._connection.client, space, own=self.namespace)
            warn_of_notes(figures)
            rows = within(await figures.rows(waiting_only=waiting_only), figures.only or space)
        return Queue([QueueRow.of(row) for row in rows if is_waiting(row) or not waiting_only])

    async def wait(
        self,
        name: str,
        until: Until = "dispatched",
        *,
        timeout: float | None = None,
        on_reason: Callable[[str], object] | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> None:
        """Wait until an AppWrapper is dispatched, running, completed, failed or deleted.

        ``timeout`` is in seconds; None: wait for ever. ``on_reason`` is called with a sentence each
        time that the reason changes why it waits; ``on_progress`` each time that its position in
        line, its state, its reason or the number of its pods changes, with ``print`` for a line.
        Raises ``TimedOutError``, and ``FailedError`` if it never will: it has failed while
        completed was awaited, say.
        """
        obj = await self._find(name)
        if obj is None and until == "deleted":
            return
        if obj is None:
            raise self._missing(name)
        await self._wait(obj, until, timeout, on_reason, on_progress)

    async def _wait(
        self,
        obj: Json,
        until: Until,
        timeout_s: float | None,
        on_reason: Callable[[str], object] | None,
        on_progress: Callable[[Progress], object] | None,
    ) -> None:
        if until not in GOALS:
            raise McadError(f"until={until!r}: write one of {', '.join(map(repr, GOALS))}")
        failures: list[McadError] = []
        said = on_reason or (lambda _: None)
        wait = Wait(GOALS[until], lambda _: None, failures.append, said, timeout_s)
        client = self._connection.client
        with _explained():
            waiting = wait_for(client, self._config(), [obj], wait)
            await (Reporter(client, obj, on_progress).during(waiting) if on_progress else waiting)
        for failure in failures:
            raise FailedError(failure.message)

    async def why(self, name: str) -> Why:
        """Why an AppWrapper waits, and what would start it; nothing is changed in the cluster.

        Without a dispatcher that can be asked it is the reason that is stored, with a warning, or
        ``UnavailableError`` if there is none.
        """
        namespace, plain = self._split(name)
        with _explained():
            figures = await figures_in(self._connection.client, namespace)
            warn_of_notes(figures)
            told = await figures.why(namespace, plain)
        if told is None:
            raise self._missing(name)
        return Why.of(told)

    async def what_if(  # noqa: PLR0913 - each is another change
        self,
        objects: Objects | None = None,
        *,
        nodes: int | None = None,
        like: str | None = None,
        without: str | tuple[str, ...] = (),
        quota: Mapping[str, Mapping[str, str]] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> WhatIf:
        """What the dispatcher would do with these changes; nothing is changed in the cluster.

        ``objects``: AppWrappers that are created. ``nodes``: that many more nodes, which are like
        the node ``like``. ``without``: AppWrappers that are gone. ``quota``: other shares, such as
        ``{"teams/red": {"cpu": "40"}}``. ``settings``: those of the dispatcher, such as
        ``{"policy": "Backfill"}``. Other changes than ``objects`` are for callers that may list the
        ``appwrapperreports`` of all namespaces. Raises ``UnavailableError``.
        """
        if (nodes is None) != (like is None):
            raise McadError("nodes and like go together: nodes=2, like='node-1'")
        changes = Changes(
            nodes,
            like,
            (without,) if isinstance(without, str) else tuple(without),
            tuple((place, _shares(amounts)) for place, amounts in (quota or {}).items()),
            tuple(f"{key}={_text(value)}" for key, value in (settings or {}).items()),
        )
        documents = documents_of(objects) if objects is not None else []
        if changes == Changes() and not documents:
            raise McadError("say what is different: objects, nodes, without, quota or settings")
        with _explained():
            asked = VisibilityFigures(self._connection.client, self.namespace)
            own = self.namespace
            return WhatIf(await what_if(asked, changes, documents, None, own))

    async def quota(self, tree: str | None = None) -> Quota:
        """The nodes of all quota trees, or of one; raises ``McadError`` if quota is off."""
        with _explained():
            client, own = self._connection.client, self.namespace
            figures = await figures_in(client, None, own=own, wants=QUOTA_REPORTS)
            warn_of_notes(figures)
            trees = await read_trees(figures)
        found = [one for one in trees if tree in (None, one["tree"])]
        if not found:
            known = ", ".join(one["tree"] for one in trees)
            raise NotFoundError(f'no quota tree "{tree}"; there is {known}')
        for text in warnings_of(found):
            warn(text)
        return Quota.of(found)

    async def capacity(self) -> Capacity:
        """What the nodes have, what is used, reserved and free. Raises ``UnavailableError`` where
        the dispatcher cannot be asked."""
        with _explained():
            figures = await figures_in(self._connection.client, None, wants=CAPACITY_REPORTS)
            view = await figures.capacity()
        if view is None:
            raise UnavailableError("; ".join(("the capacity is not stored", *figures.notes)))
        warn_of_notes(figures)
        return Capacity(view)

    async def events(self, name: str) -> Events:
        """The Events of an AppWrapper, its items and its pods, oldest first. The API server keeps
        them for an hour; raises ``NotFoundError``."""
        return await self._events(await self._read(name))

    async def _events(self, obj: Json) -> Events:
        with _explained():
            client = self._connection.client
            uids = {obj["metadata"]["uid"], *(await owned_objects(client, obj)).uids}
            found, _ = await all_events(client, obj, uids)
        return Events(map(Event.of, found))

    async def logs(
        self,
        name: str,
        *,
        item: int | None = None,
        container: str | None = None,
        tail: int | None = None,
    ) -> tuple[Log, ...]:
        """The logs of the pods of an AppWrapper as they are now: of all, or of one ``item``; of
        the first container, or of another; whole, or the last lines. Raises ``NotFoundError``."""
        return await self._logs(await self._read(name), item, container, tail)

    async def _logs(
        self, obj: Json, item: int | None, container: str | None, tail: int | None
    ) -> tuple[Log, ...]:
        with _explained():
            return await read_logs(self._connection.client, obj, item, container, tail)

    async def hold(self, name: str) -> None:
        """Keep an AppWrapper from starting until it is released. What is dispatched is ended first;
        its place in line stays. Raises ``McadError`` if it has ended, and ``NotFoundError``."""
        await self._suspend(await self._read(name), suspended=True)

    async def release(self, name: str) -> None:
        """Let an AppWrapper on hold queue again, at its original position; errors as ``hold``."""
        await self._suspend(await self._read(name), suspended=False)

    async def _suspend(self, obj: Json, *, suspended: bool) -> None:
        if why := why_over(obj):
            verb = "held" if suspended else "released"
            raise McadError(f"{title(obj)} cannot be {verb}: {why}")
        if is_held(obj) is not suspended:
            with _explained():
                await suspend(self._connection.client, obj, suspended=suspended)

    async def delete(self, name: str) -> None:
        """Delete an AppWrapper with all of its objects; raises ``NotFoundError``."""
        await self._delete(await self._read(name))

    async def _delete(self, obj: Json) -> None:
        """Delete exactly this object, not another of its name."""
        metadata = obj["metadata"]
        options = DeleteOptions(metadata["uid"], propagation="Background")
        with _explained():
            client = self._connection.client
            await client.delete(APPWRAPPERS, metadata["namespace"], metadata["name"], options)

    async def _find(self, name: str) -> Json | None:
        namespace, plain = self._split(name)
        with _explained():
            return await read_appwrapper(self._connection.client, namespace, plain)

    async def _read(self, name: str) -> Json:
        obj = await self._find(name)
        if obj is None:
            raise self._missing(name)
        return obj

    def _missing(self, name: str) -> NotFoundError:
        namespace, plain = self._split(name)
        return NotFoundError(
            f'no AppWrapper "{plain}" in namespace {namespace}; `queue(waiting_only=False)` has all'
        )

    def _split(self, name: str) -> tuple[str, str]:
        namespace, slash, plain = name.rpartition("/")
        if not plain or "/" in namespace or (slash and not namespace):
            raise McadError(f"{name!r} is not an AppWrapper: write NAME or NAMESPACE/NAME")
        return namespace or self.namespace, plain

    def _config(self) -> Config:
        """The configuration of the environment (MCAD_...), for the place of the Lease."""
        return load_config(Settings())

    @property
    def _connection(self) -> Session:
        if self._session is None:
            raise McadError("the client is closed; use `async with AsyncClient() as client`")
        return self._session


class AsyncAppWrapper:
    """An AppWrapper of the cluster, as it was when it was last read."""

    def __init__(self, client: AsyncClient, obj: Json) -> None:
        self._client = client
        self.raw = obj

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.raw["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.raw["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Its uid."""
        return str(self.raw["metadata"]["uid"])

    @property
    def state(self) -> str:
        """``status.state``, such as Pending or Running; "" before the dispatcher has seen it."""
        return state_of(self.raw)

    async def refresh(self) -> Self:
        """Read it again; raises ``NotFoundError`` if it is gone, or another has its name."""
        found = await self._client.get(f"{self.namespace}/{self.name}")
        if found.uid != self.uid:
            raise NotFoundError(f"{self.namespace}/{self.name} was deleted and created anew")
        self.raw = found.raw
        return self

    async def wait(
        self,
        until: Until = "dispatched",
        *,
        timeout: float | None = None,
        on_reason: Callable[[str], object] | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> Self:
        """Wait as ``AsyncClient.wait`` does, and read it again unless it is deleted."""
        await self._client._wait(self.raw, until, timeout, on_reason, on_progress)
        return self if until == "deleted" else await self.refresh()

    async def why(self) -> Why:
        """Why it waits, and what would start it."""
        return await self._client.why(f"{self.namespace}/{self.name}")

    async def events(self) -> Events:
        """The Events of it, of its items and of its pods, oldest first."""
        return await self._client._events(self.raw)

    async def logs(
        self, *, item: int | None = None, container: str | None = None, tail: int | None = None
    ) -> tuple[Log, ...]:
        """The logs of its pods; see ``AsyncClient.logs``."""
        return await self._client._logs(self.raw, item, container, tail)

    async def hold(self) -> Self:
        """Keep it from starting until it is released, and read it again."""
        return await self._suspend(suspended=True)

    async def release(self) -> Self:
        """Let it queue again, and read it again."""
        return await self._suspend(suspended=False)

    async def _suspend(self, *, suspended: bool) -> Self:
        await self.refresh()
        await self._client._suspend(self.raw, suspended=suspended)
        return await self.refresh()

    async def delete(self) -> None:
        """Delete it with all of its objects."""
        await self._client._delete(self.raw)

    def __repr__(self) -> str:
        return f"<AppWrapper {self.namespace}/{self.name}: {self.state or 'new'}>"

    def _repr_html_(self) -> str:
        return html.facts(f"{self.namespace}/{self.name}", {"state": self.state or "new"})


def _one_appwrapper(
    documents: list[Document], namespace: str | None, wrapping: Wrapping
) -> Document:
    """The only document, if it is an AppWrapper; else one of all of them."""
    if documents[0].content.get("kind") != "AppWrapper":
        if not wrapping.name:
            raise McadError("name: is missing; it is the name of the AppWrapper of these objects")
        return Document(documents[0].origin, wrapped(documents, namespace, wrapping))
    if len(documents) > 1:
        raise McadError("objects: submit AppWrappers one by one")
    if wrapping != Wrapping(dialect=wrapping.dialect):
        raise McadError(
            "objects: is an AppWrapper already; write name, priority and leaf into its manifest"
        )
    return documents[0]


def _shares(amounts: Mapping[str, str]) -> str:
    return ",".join(f"{resource}={amount}" for resource, amount in amounts.items())


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def _explained() -> Iterator[None]:
    """Failed requests in the block become ``McadError``."""
    try:
        yield
    except KubeError as error:
        raise explain(error) from error
