"""A dispatcher beside the cluster in memory: it has seen all objects, and decides nothing.

It serves the visibility API, as kube-apiserver would forward to it. Answers are of the objects of
that moment.
"""

from __future__ import annotations

import asyncio
import json
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from aiohttp import StreamReader, web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict
from yarl import URL

from mcad.api.appwrapper import Parsed, parse
from mcad.api.config import Config, to_settings
from mcad.api.defaults import (
    PodDefaults,
    read_limit_range,
    read_priority_class,
    read_runtime_class,
)
from mcad.api.labels import VISIBILITY_GROUP
from mcad.api.owner import Owner
from mcad.api.pauses import read_pause
from mcad.api.quotas import read_quota
from mcad.cli.demo_cluster.visibility import _Embedded, _OpenAccess
from mcad.controller.event_translation import EventTranslator, Readers, creation_order, slim_pod
from mcad.controller.leader_figures import LeaderFigures
from mcad.controller.mirror import Mirror
from mcad.controller.served_kinds import Kinds, catalog_entry
from mcad.controller.visibility.routes import application
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide, KindWatched, PauseSeen, QuotaSeen
from mcad.kube.client import Client
from mcad.kube.discovery import Discovery
from mcad.kube.document import Document
from mcad.kube.kinds import PODS
from mcad.kube.port import Request, Response
from tests.fakeapi import FakeApi, refuse
from tests.kube.support import FakeClock

Json = dict[str, Any]

NOW_US = 1_800_000_000_000_000  # 2027-01-15T08:00:00Z
PREFIX = f"/apis/{VISIBILITY_GROUP}/"


class Onlooker:
    """Answers requests for the visibility API; 503 if the Lease is not held."""

    def __init__(self, api: FakeApi, config: Config | None = None) -> None:
        self._api, self._clock = api, _Clock()
        has_quota = bool(api.objects.get("quotasubtrees"))
        self._config = config or Config.model_validate({"quotaEnabled": has_quota})

    async def answer(self, request: Request) -> Response:
        """The answer of a dispatcher that leads."""
        if not self._api.objects.get("leases"):
            return refuse(503, "ServiceUnavailable", "service unavailable")
        replica = SimpleNamespace(controller=await self.controller())
        proxy = _Embedded("", (), ("x-remote-user",), (), (), "api-server")
        client = Client(self._api, self._clock, Random(1))
        app = application(LeaderFigures(replica), _OpenAccess(client), proxy)  # type: ignore[arg-type]
        app.freeze()
        answer = await app._handle(_forwarded(request, app))
        assert isinstance(answer, web.Response)
        body = answer.body or b""
        assert isinstance(body, bytes)
        return Response(answer.status, body, {"Content-Type": answer.content_type})

    async def controller(self) -> Any:
        """As much of a controller as figures need."""
        client = Client(_Unseen(self._api), self._clock, Random(1))
        kinds = Kinds(Discovery(client), self._config)
        await kinds.refresh()
        reads = _Reads(self._api, kinds)
        core = Dispatcher(to_settings(self._config))
        self._feed(core, reads, kinds)
        return SimpleNamespace(
            clock=self._clock,
            dispatcher=core,
            watches=SimpleNamespace(absence="", is_synced=True),
            quotas=object() if self._config.quota_enabled else None,
            read_appwrapper=reads.appwrapper,
        )

    def _feed(self, core: Dispatcher, reads: _Reads, kinds: Kinds) -> None:
        now = self._clock.now_us()
        unlinked: list[tuple[Any, Owner]] = []
        sightings = EventTranslator(
            Mirror(),
            Readers.of(self._config, reads.appwrapper),
            lambda event: core.step(event, now) and None,
            lambda pod, owner: unlinked.append((pod, owner)),
            core.cluster.judged,
        )
        if self._config.quota_enabled:
            for one in reads.all("quotasubtrees"):
                core.step(QuotaSeen(read_quota(one)), now)
        for one in reads.all("dispatchpauses"):
            core.step(PauseSeen(read_pause(one)), now)
        for one in sorted(reads.all("appwrappers"), key=creation_order):
            sightings.appwrapper_seen(one, listed=True)
        for one in reads.all("nodes"):
            sightings.node_seen(sightings.read_node(one))
        for kind in kinds.wrapped():
            if kind != PODS:
                core.step(KindWatched(kind.group, kind.plural, watched=True), now)
                for one in reads.all(kind.plural):
                    sightings.object_seen(catalog_entry(kind), one)
        for one in reads.all("pods"):
            sightings.pod_seen(slim_pod(Document(json.dumps(one).encode(), PODS)))
        owners = {one["metadata"]["uid"]: one for one in reads.all("replicasets")}
        for _, owner in unlinked:
            if owner.uid in owners:
                (above,) = owners[owner.uid]["metadata"]["ownerReferences"]
                group, _, version = above["apiVersion"].rpartition("/")
                found = Owner(above["uid"], group, version, above["kind"], above["name"])
                sightings.owner_found(owner.uid, found)
        # A cycle takes up reservations; without any, nothing is dispatched.
        reserves = any(one.get("status", {}).get("reservation") for one in reads.all("appwrappers"))
        core.step(Decide(may_dispatch=reserves), now)


def behold(api: FakeApi) -> FakeApi:
    """The same with a dispatcher beside it, if it has none."""
    api.aggregated.setdefault(PREFIX, Onlooker(api).answer)
    return api


class _Clock(FakeClock):
    """That of the dispatcher stands still, at the time of the clusters of these tests."""

    def now_us(self) -> int:
        return NOW_US


class _Reads:
    def __init__(self, api: FakeApi, kinds: Kinds) -> None:
        self._api, self._kinds = api, kinds
        self._defaults = PodDefaults()
        for one in self.all("limitranges"):
            meta = one["metadata"]
            self._defaults.put_range(meta["namespace"], meta["uid"], read_limit_range(one))
        for one in self.all("runtimeclasses"):
            self._defaults.put_class(one["metadata"]["name"], read_runtime_class(one))
        for one in self.all("priorityclasses"):
            self._defaults.put_priority(one["metadata"]["name"], read_priority_class(one))

    def all(self, plural: str) -> list[Json]:
        return list(self._api.objects.get(plural, {}).values())

    def appwrapper(self, obj: Json) -> Parsed:
        return self._defaults.completed(parse(obj, self._kinds.catalog))


class _Unseen:
    """The API server for the dispatcher: what it asks is not among the requests of the caller."""

    def __init__(self, api: FakeApi) -> None:
        self._api = api

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        answer = self._api._honest(request)
        assert isinstance(answer, Response)
        return answer


def _forwarded(request: Request, app: web.Application) -> web.Request:
    body = request.body
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    protocol = Mock(_reading_paused=False)
    payload = StreamReader(protocol, 2**20, loop=asyncio.get_running_loop())
    payload.feed_data(data)
    payload.feed_eof()
    headers = CIMultiDict({**request.headers, "x-remote-user": "api-server"})
    if body is not None:
        headers["Content-Type"] = request.content_type
        headers["Content-Length"] = str(len(data))
    path = str(URL(request.path, encoded=True).with_query(dict(request.params)))
    return make_mocked_request(request.method, path, headers, payload=payload, app=app)
