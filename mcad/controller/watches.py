"""All watches of the controller, and whether they are complete (P11) and fresh (P14).

It decides nothing: the core learns which kinds are watched, and the runtime asks here whether it
may decide.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec.structs import replace

from mcad.api import labels, projections
from mcad.api.scale_up.settings import GROUP, PLURALS
from mcad.controller.event_translation import (
    EventTranslator,
    SlimNode,
    SlimPod,
    slim_node,
    slim_pod,
)
from mcad.controller.initial_lists import Copy, FirstList
from mcad.controller.served_kinds import Kinds, catalog_entry
from mcad.controller.streams import Stream
from mcad.core.events import Event, KindWatched
from mcad.core.state.quotation import quoted
from mcad.kube.client import EVERYTHING, Client, Selection
from mcad.kube.document import HEAD, WHOLE, Document, Picks
from mcad.kube.kinds import APPWRAPPERS, DISPATCH_PAUSES, NODES, PODS, QUOTA_SUBTREES
from mcad.kube.reflector import Reflector
from mcad.kube.resource import Resource

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Sequence

    from mcad.controller.appwrapper_intake import AppWrapperIntake
    from mcad.controller.dispatch_pauses import Pauses
    from mcad.controller.quota_subtrees import Quotas
    from mcad.controller.scale_ups import ScaleUps

Json = dict[str, Any]
T = TypeVar("T")
_log = logging.getLogger(__name__)

FIELDS: dict[Resource, Picks] = {
    APPWRAPPERS: projections.APPWRAPPER,
    NODES: projections.NODE,
    PODS: projections.POD,
}
"""What is read at once of every object of a kind; of all others only what identifies them."""

PODS_AT_ONCE = 100
"""Pods of a page between two turns of the event loop: 4 ms. Each turn costs as much as a few of
them, and there are the most of these."""

DATA = frozenset({("", "configmaps"), ("", "secrets")})
"""Objects that hold nothing but data, which does not concern the dispatcher: their
metadata shows that they exist."""

EVERYWHERE: tuple[str | None, ...] = (None,)
ESSENTIAL = tuple(
    (kind.group, kind.plural)
    for kind in (APPWRAPPERS, NODES, PODS, QUOTA_SUBTREES, DISPATCH_PAUSES)
)
"""What every decision rests on. QuotaSubtrees are watched if quota is on; without the CRD of
DispatchPauses there are none."""

ASKED = tuple((GROUP, plural) for plural in PLURALS.values())
"""The kinds by which an autoscaler is asked. No decision waits for them."""

UNWRAPPED = frozenset({*ESSENTIAL, *ASKED})

CLOSELY_S, WATCHED_S = (12, 15), (50, 60)
"""Seconds for which the essential kinds are watched at a time, and all others: what a watch keeps
back is found when it ends (ADR 43)."""

LATE = (QUOTA_SUBTREES, DISPATCH_PAUSES)
"""Kinds that may be installed while the dispatcher runs."""

INSTALL = "install them with `mcad crd | kubectl apply --server-side -f -`"
ABSENCE = f"AppWrappers are not installed; {INSTALL}"
PAUSE_ABSENCE = f"DispatchPauses are not installed, so none can be created; {INSTALL}"
QUOTA_ABSENCE = f"QuotaSubtrees are not installed; {INSTALL}, or set quotaEnabled to false"


class Host(Protocol):
    """What the watches need of the controller.

    ``arrivals`` takes AppWrappers, ``pauses`` DispatchPauses, ``quotas`` QuotaSubtrees if quota is
    on, and ``scale_ups`` what an autoscaler says, if it is asked.
    """

    arrivals: AppWrapperIntake
    quotas: Quotas | None
    pauses: Pauses
    scale_ups: ScaleUps | None

    def feed(self, event: Event) -> None:
        """Feed an event to the core."""
        ...

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a task that ends with the controller."""
        ...

    async def readable(self) -> None:
        """Return when everything is known that the demand of an AppWrapper depends on."""
        ...

    def kind_denied(self) -> None:
        """A watched kind is no longer served in the known version."""
        ...

    def synced(self) -> None:
        """The barrier is passed; called once."""
        ...


class _Watch:
    """The reflectors of one stream; restarted ones list first."""

    def __init__(self, resource: Resource, stream: Stream[Any], host: Host) -> None:
        self.resource = resource
        self.stream = stream
        self.reflectors: list[Reflector[Any]] = []
        self._host = host
        self._tasks: list[asyncio.Task[Any]] = []

    def start(self) -> None:
        """Start, or restart in the served version."""
        for task in self._tasks:
            task.cancel()
        for reflector in self.reflectors:
            reflector.resource = self.resource
        self._tasks = [self._host.spawn(one.run()) for one in self.reflectors]

    def catch_up(self) -> None:
        """Go on from where they are. Lists that are under way are not begun again."""
        for number, reflector in enumerate(self.reflectors):
            if not reflector.expect_more():
                self._tasks[number].cancel()
                self._tasks[number] = self._host.spawn(reflector.run(resume=True))

    def forget(self) -> None:
        """The next list tells every object."""
        for reflector in self.reflectors:
            reflector.forget()


def _itself(document: Document) -> Document:
    """AppWrappers stay texts until it is known whether they are news."""
    return document


class Watches:
    """The streams by (group, plural), and the barrier."""

    def __init__(
        self,
        client: Client,
        kinds: Kinds,
        sightings: EventTranslator,
        host: Host,
        namespaces: Sequence[str] = (),
    ) -> None:
        """``namespaces`` are those of AppWrappers and QuotaSubtrees; none means all."""
        self._client = client
        self._kinds = kinds
        self._sightings = sightings
        self._host = host
        self._namespaces = namespaces or EVERYWHERE
        self._watches: dict[tuple[str, str], _Watch] = {}
        self._first: FirstList | None = None
        self._stands_by = self._is_copy_reported = False
        self.streams: dict[tuple[str, str], Stream[Any]] = {}
        self.is_synced = False

    @property
    def absence(self) -> str:
        """Why nothing can be decided, and what to do: AppWrappers are not installed."""
        stream = self.streams.get(ESSENTIAL[0])
        return stream.error if stream is not None and stream.is_absent else ""

    def obstacles(self) -> list[str]:
        """Why nothing may be dispatched now: essential kinds that are not watched (P11, P14)."""
        if not self.streams and self._kinds.trouble:
            return [f"discovery: {self._kinds.trouble}"]
        now, found = self._client.clock.monotonic(), []
        for stream in self._essential():
            if self._is_optional(stream):
                continue
            if not stream.is_synced or stream.error:
                found.append(f"{stream.name}: {stream.error or 'not listed yet'}")
            elif stream.is_silent(now):
                found.append(f"{stream.name}: no news for {now - stream.alive_at:.0f} s")
        return found

    def degraded(self) -> list[str]:
        """Wrapped kinds that cannot be watched, and why: AppWrappers with them are on hold."""
        return [
            f"{stream.name}: {stream.error or 'not listed yet'}"
            for pair, stream in self.streams.items()
            if pair not in UNWRAPPED and not stream.is_watched
        ]

    @property
    def has_requests(self) -> bool:
        """Whether there may be requests to an autoscaler, and all of them can be seen."""
        streams = [self.streams[pair] for pair in ASKED if pair in self.streams]
        return bool(streams) and all(one.is_watched for one in streams)

    def stand_by(self) -> None:
        """Start all watches, and hold back what they tell until ``lead`` is called (ADR 55)."""
        self._stands_by = True
        self.watch_all()

    @property
    def is_copied(self) -> bool:
        """Whether a standby holds everything that can be listed."""
        return bool(self.streams) and all(one.is_copied for one in self.streams.values())

    def lead(self) -> None:
        """What was held back counts as soon as each kind has caught up with the present (P11)."""
        self._stands_by = False
        for pair in self.streams:
            if pair not in UNWRAPPED:
                self._host.feed(KindWatched(*pair, False, "not listed yet"))
        for watch in self._watches.values():
            watch.stream.lead()
            watch.catch_up()
        self.watch_wrapped()

    def kinds_changed(self) -> None:
        """Other kinds are served than before, or in other versions: a standby reads AppWrappers
        again, because their demand may depend on it."""
        if self._stands_by and self._first is not None:
            self._first.clear()
            watch = self._watches[ESSENTIAL[0]]
            watch.stream.begin_anew()
            watch.forget()
            watch.start()
        self.watch_wrapped()

    def watch_all(self) -> None:
        """Start all watches; called once, when the kinds are known."""
        seen, arrivals = self._sightings, self._host.arrivals
        clock, ready = self._client.clock, self._host.readable
        self._first = first = FirstList(
            arrivals.judge, arrivals.listed, clock, arrivals.read_ahead, ready
        )
        appwrappers: Stream[Document] = Stream(
            "appwrappers",
            arrivals.seen,
            seen.appwrapper_gone,
            self._stream_changed,
            clock.monotonic,
            first=first,
            spawn=self._host.spawn,
            listing=arrivals.listing,
            absence=ABSENCE,
            stands_by=self._stands_by,
        )
        self._watch(APPWRAPPERS, appwrappers, slim=_itself, namespaces=self._namespaces)
        # Nodes and pods are watched everywhere: a pod of any namespace uses its node up.
        nodes: Stream[SlimNode] = self._stream("nodes", seen.node_seen, seen.node_gone)
        self._watch(NODES, nodes, slim=lambda document: seen.read_node(slim_node(document)))
        pods: Stream[SlimPod] = self._stream("pods", seen.pod_seen, seen.pod_gone)
        self._watch(PODS, pods, slim=slim_pod)
        if self._host.quotas is not None:
            self._watch_quotas(self._host.quotas)
        pauses = self._host.pauses
        stop = self._stream("dispatchpauses", pauses.seen, pauses.gone, absence=PAUSE_ABSENCE)
        self._watch(DISPATCH_PAUSES, stop)
        self.watch_wrapped()

    def _watch_quotas(self, quotas: Quotas) -> None:
        stream = self._stream(
            "quotasubtrees",
            quotas.seen,
            quotas.gone,
            listing=quotas.listing,
            absence=QUOTA_ABSENCE,
        )
        self._watch(QUOTA_SUBTREES, stream, namespaces=self._namespaces)

    def _stream(
        self, name: str, seen: Callable[[T], None], lost: Callable[[str], None], **more: Any
    ) -> Stream[T]:
        """A stream whose objects need no order; a standby holds them back."""
        stream: Stream[T] = Stream(
            name,
            seen,
            lost,
            self._stream_changed,
            self._client.clock.monotonic,
            spawn=self._host.spawn,
            stands_by=self._stands_by,
            **more,
        )

        def feed(obj: T) -> None:
            stream.seen(obj)  # which may change until then: a kind is served in another version

        if self._stands_by:
            stream.first = Copy(feed, self._client.clock)
        return stream

    def watch_wrapped(self) -> None:
        """Watch every kind that may be wrapped, by label (P7), except pods.

        Called again when the served kinds change: a kind in another version is watched in that, and
        a kind that became served or is no longer served is listed at once. The server keeps a watch
        open for minutes after a kind is removed.
        """
        for pair, watch in self._watches.items():
            served = self._kinds.serves(pair)
            came = served and watch.stream.is_absent and watch.resource in LATE
            if came or (not served and not watch.stream.error):
                watch.start()
        if self._host.scale_ups is not None:
            self._watch_requests(self._host.scale_ups)
        for resource in self._kinds.wrapped():
            known = self._watches.get((resource.group, resource.plural))
            if known is not None:
                if known.resource != resource or known.stream.error:
                    self._watch_anew(known, resource)
                continue
            stream: Stream[Json] = self._stream(
                f"{resource.plural}.{resource.group}".rstrip("."),
                partial(self._sightings.object_seen, catalog_entry(resource)),
                self._sightings.object_gone,
            )
            if not self._stands_by:
                watched = KindWatched(resource.group, resource.plural, False, "not listed yet")
                self._host.feed(watched)
            self._watch(
                resource,
                stream,
                selection=Selection(
                    label_selector=labels.APPWRAPPER_UID,
                    metadata_only=(resource.group, resource.plural) in DATA,
                ),
                namespaces=self._namespaces if resource.namespaced else EVERYWHERE,
            )

    def _watch_requests(self, ups: ScaleUps) -> None:
        """Watch the requests to an autoscaler, by served kinds, as ``watch_wrapped`` does."""
        for pair in ups.kinds:
            resource, known = self._kinds.served(pair), self._watches.get(pair)
            if resource is None:
                continue
            if known is None:
                seen, name = partial(ups.seen, pair=pair), f"{resource.plural}.{resource.group}"
                stream: Stream[Json] = self._stream(name, seen, ups.gone)
                selection = Selection(label_selector=labels.SCALE_UP_UID)
                self._watch(resource, stream, selection=selection, namespaces=self._namespaces)
            elif known.resource != resource or known.stream.error:
                known.resource = resource
                known.start()
        if not self._stands_by:
            ups.tell_served()

    def _watch_anew(self, watch: _Watch, resource: Resource) -> None:
        if watch.resource != resource:
            _log.info("watching kind=%s version=%s", watch.stream.name, resource.version)
        watch.resource = resource
        watch.stream.seen = partial(self._sightings.object_seen, catalog_entry(resource))
        watch.start()

    def _watch(
        self,
        resource: Resource,
        stream: Stream[Any],
        *,
        slim: Callable[[Document], Any] = Document.json,
        selection: Selection = EVERYTHING,
        namespaces: Sequence[str | None] = EVERYWHERE,
    ) -> None:
        watch = _Watch(resource, stream, self._host)
        key = (resource.group, resource.plural)
        self._watches[key], self.streams[key] = watch, stream
        for namespace in namespaces:
            part = stream.part(namespace or "")
            where = replace(selection, namespace=namespace)
            reflector = Reflector(self._client, resource, part, slim, where)
            reflector.watch_s = CLOSELY_S if key in ESSENTIAL else WATCHED_S
            reflector.fields = FIELDS.get(resource, HEAD)
            if resource is PODS:
                reflector.at_once = PODS_AT_ONCE
            if resource is APPWRAPPERS:
                reflector.new_fields = WHOLE  # they are read ahead
                reflector.ready = partial(self._host.arrivals.await_served, part)
            watch.reflectors.append(reflector)
        watch.start()

    def _essential(self) -> list[Stream[Any]]:
        return [self.streams[pair] for pair in ESSENTIAL if pair in self.streams]

    def _is_optional(self, stream: Stream[Any]) -> bool:
        """Whether nothing depends on it: DispatchPauses are not installed, so there are none."""
        pair = DISPATCH_PAUSES.group, DISPATCH_PAUSES.plural
        return stream.is_absent and self.streams.get(pair) is stream

    def _stream_changed(self, stream: Stream[Any]) -> None:
        if self._stands_by:
            self._report_copy()
            return
        key = next(k for k, known in self.streams.items() if known is stream)
        if key in ASKED:
            self._requests_changed(key, stream)
        elif key not in ESSENTIAL:
            words = stream.error if stream.is_absent else quoted(stream.error)
            self._host.feed(KindWatched(*key, stream.is_watched, words))
            if stream.is_absent:
                self._host.kind_denied()
        elif self._is_optional(stream):
            self._host.pauses.absent()
        self._pass_barrier()

    def _requests_changed(self, pair: tuple[str, str], stream: Stream[Any]) -> None:
        if stream.is_absent and self._host.scale_ups is not None:
            self._host.scale_ups.absent(pair)
            self._host.kind_denied()

    def _report_copy(self) -> None:
        """Log once that a take-over needs no list."""
        if self.is_copied and not self._is_copy_reported:
            self._is_copy_reported = True
            _log.info("a copy is complete kinds=%d", len(self.streams))

    def _pass_barrier(self) -> None:
        """P11: every kind is listed; a wrapped kind that cannot be listed blocks only its users."""
        if self.is_synced:
            return
        settled = all(stream.is_synced or stream.error for stream in self.streams.values())
        essential = [one for one in self._essential() if not self._is_optional(one)]
        if settled and all(stream.is_synced for stream in essential):
            self.is_synced = True
            self._host.synced()
