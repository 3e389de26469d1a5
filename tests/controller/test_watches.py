"""What the controller does when it cannot see: rights lost, kinds removed, a server restored."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from mcad.controller.http_port import STALL_S, application
from mcad.controller.replica import Replica
from mcad.core.events import Decide, KindWatched
from mcad.kube.kinds import APPWRAPPERS, CRDS
from mcad.kube.reflector import ABSENT_S
from mcad.kube.resource import Resource
from tests.controller.test_runtime import KINDS, Later, Rig, add_appwrapper, add_node, reads, writes
from tests.fakeapi import FakeApi, refuse

Json = dict[str, Any]


async def told(rig: Rig, path: str) -> tuple[int, str]:
    """What the HTTP port answers."""
    replica = Replica(rig.client, rig.controller.config, identity="test")
    replica.controller = rig.controller
    async with TestClient(TestServer(application(replica))) as http:
        answer = await http.get(path)
        return answer.status, await answer.text()


async def lively(rig: Rig, seconds: int) -> None:
    """Time that passes while bookmarks come."""
    for _ in range(seconds):
        rig.server.bookmark()
        await rig.clock.advance(1)


def backup(server: FakeApi) -> tuple[int, dict[str, Any]]:
    """What there is, to be restored."""
    return server.version, copy.deepcopy(server.objects)


def restore(server: FakeApi, kept: tuple[int, dict[str, Any]]) -> None:
    """As it was then: versions go back, too, and what happened since never did."""
    server.version, server.objects = kept
    server.history.clear()
    server.send(None)


def add_wrapped_config_map(rig: Rig, name: str) -> None:
    """An AppWrapper that needs no room."""
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    metadata = {"name": name, "namespace": "default", "generation": 1}
    spec = {"components": [{"template": template}]}
    rig.server.put("appwrappers", {"metadata": metadata, "spec": spec})


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log said of watches and of dispatching."""
    words = ("watch fails", "watch works", "nothing is", "dispatching")
    found = [record.getMessage() for record in caplog.records]
    return [one for one in found if one.startswith(words)]


async def test_a_right_to_create_that_is_missing_is_a_line_of_readiness() -> None:
    async with Rig() as rig:
        rig.server.fail_always("POST", "/pods", refuse(403, "Forbidden", "no"))
        add_appwrapper(rig.server, "a", "1m")
        await lively(rig, 10)
        assert await told(rig, "/readyz") == (
            200,
            "ok\ndegraded: pods in namespace default: The dispatcher has no right to create pods "
            "in namespace default: “no”. Grant it; the AppWrappers that wait for it "
            "then go on by themselves.\n",
        )
        rig.server.recover()
        await lively(rig, 60)
        assert await told(rig, "/readyz") == (200, "ok\n")


async def test_a_right_that_is_lost_later_holds_appwrappers_with_the_kind_and_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    async with Rig() as rig:
        add_wrapped_config_map(rig, "before")
        await lively(rig, 2)
        rig.server.fail_always("GET", "/configmaps", refuse(403, "Forbidden", "no right"))
        rig.server.send(None)
        await lively(rig, 5)
        add_wrapped_config_map(rig, "after")
        add_appwrapper(rig.server, "other", "500m")
        await lively(rig, 60)

        status = rig.status("after")["conditions"][-1]
        assert status["reason"] == "KindNotWatched"
        assert "no right" in status["message"]
        assert rig.status("other")["state"] == "Running"
        assert rig.status("before")["state"] == "Running"  # what was known is not forgotten
        code, text = await told(rig, "/readyz")
        assert (code, text) == (200, "ok\ndegraded: configmaps: 403 Forbidden: no right\n")
        assert 'mcad_stream_synced{kind="configmaps"} 0.0' in (await told(rig, "/metrics"))[1]

        rig.server.recover()
        await lively(rig, 70)
        assert rig.status("after")["state"] == "Running"
        assert await told(rig, "/readyz") == (200, "ok\n")
        assert 'mcad_stream_synced{kind="configmaps"} 1.0' in (await told(rig, "/metrics"))[1]
    assert warnings(caplog) == [
        "watch fails kind=configmaps error=403 Forbidden: no right",
        "watch works again kind=configmaps",
    ]


async def test_it_is_not_ready_before_it_knows_what_to_watch() -> None:
    rig = Rig()
    rig.server.fail_always("GET", "^/apis$", refuse(403, "Forbidden", "no right"))
    async with rig:
        await rig.clock.advance(5)
        assert await told(rig, "/readyz") == (
            503,
            "not synced: discovery: 403 Forbidden: no right; retrying with 15 s for each answer\n",
        )
        assert (await told(rig, "/api/v1/queue"))[0] == 503


async def test_a_kind_that_is_removed_is_told_as_not_installed_and_its_objects_go() -> None:
    async with Rig() as rig:
        add_wrapped_config_map(rig, "before")
        await lively(rig, 2)
        rig.server.fail_always("GET", "/configmaps", refuse(404, "NotFound", "no such kind"))
        rig.server.send(None)
        await lively(rig, 5)
        assert len(rig.cluster.objects.by_uid) == 1  # it may be starting
        assert (await told(rig, "/readyz"))[1] == "ok\ndegraded: configmaps: it is not installed\n"
        await lively(rig, int(3 * ABSENT_S))
        assert rig.cluster.objects.by_uid == {}
        rig.server.recover()
        await lively(rig, 90)
        assert len(rig.cluster.objects.by_uid) == 1
        changes = [e.watched for e in rig.events if isinstance(e, KindWatched)]
        assert changes == [False, True, False, True]


class Installed(Later):
    """A CRD that comes and goes; each time it comes, it is checked."""

    def __init__(self) -> None:
        super().__init__()
        self.judged = 0

    async def installed(self) -> bool:
        self.judged += bool(self.answer)
        return await super().installed()


async def test_nothing_is_decided_while_appwrappers_are_not_installed_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What runs is not touched: that the kind is denied does not prove that anything is deleted."""
    caplog.set_level("INFO")
    preflight = Installed()
    preflight.answer = True
    rig = Rig(preflight)
    add_wrapped_config_map(rig, "a")
    async with rig:
        await lively(rig, 2)
        assert rig.status("a")["state"] == "Running"
        rig.server.requests.clear()
        preflight.answer = False
        rig.server.served = tuple(one for one in KINDS if one != APPWRAPPERS)
        rig.server.send(None)
        await lively(rig, 3)
        rig.events.clear()
        await lively(rig, 2 * int(STALL_S))
        assert not [e for e in rig.events if isinstance(e, Decide)]
        assert writes(rig.server) == []
        absence = (
            "AppWrappers are not installed; install them with "
            "`mcad crd | kubectl apply --server-side -f -`"
        )
        assert await told(rig, "/readyz") == (
            503,
            f"nothing is dispatched: appwrappers: {absence}\n",
        )
        assert await told(rig, "/healthz") == (200, "ok\n")
        assert await told(rig, "/api/v1/queue") == (503, f"{absence}\n")
        assert preflight.judged == 1

        rig.server.served, preflight.answer = KINDS, True
        await lively(rig, 3)
        assert preflight.judged == 2
        assert await told(rig, "/readyz") == (200, "ok\n")
        assert writes(rig.server) == []
        assert rig.status("a")["state"] == "Running"
    assert warnings(caplog) == [
        f"watch fails kind=appwrappers error={absence}",
        f"nothing is dispatched why=appwrappers: {absence}",
        "watch works again kind=appwrappers",
        "dispatching again",
    ]


async def test_p13_a_restored_server_is_believed_by_the_relist() -> None:
    """Versions go back: the fence of every write would be refused for ever."""
    async with Rig() as rig:
        add_appwrapper(rig.server, "a", "2")
        await lively(rig, 2)
        assert rig.status("a")["state"] == "Pending"
        kept = backup(rig.server)
        for number in range(3):
            touched = copy.deepcopy(rig.server.named("appwrappers", "a"))
            touched["metadata"]["annotations"] = {"touched": str(number)}
            rig.server.put("appwrappers", touched)
            await lively(rig, 1)
        restore(rig.server, kept)
        rig.server.requests.clear()
        add_node(rig.server, "4")
        await lively(rig, 40)  # a few refused watches lead to the list

        assert rig.status("a")["state"] == "Running"
        assert len(writes(rig.server)) <= 10
        assert len(reads(rig.server)) <= 20


async def test_p13_what_a_restored_server_has_lost_of_a_status_is_written_again() -> None:
    async with Rig() as rig:
        add_appwrapper(rig.server, "a", "2")
        kept = backup(rig.server)
        await lively(rig, 2)
        assert rig.status("a")["state"] == "Pending"
        restore(rig.server, kept)
        assert rig.status("a") == {}
        await lively(rig, 40)
        assert rig.status("a")["state"] == "Pending"


ESSENTIAL = ("appwrappers", "nodes", "pods", "dispatchpauses")


async def test_p14_a_watch_that_is_back_is_a_sign_of_life(caplog: pytest.LogCaptureFixture) -> None:
    """Events may be rare, and the next bookmark a minute away."""
    caplog.set_level("INFO")
    async with Rig() as rig:
        await rig.clock.advance(80)  # not even a bookmark
        for number in range(5):
            add_appwrapper(rig.server, f"a{number}", "500m")
            await rig.clock.advance(1)
        assert writes(rig.server) == []
        assert (await told(rig, "/readyz"))[0] == 503
        rig.events.clear()
        await rig.clock.advance(10)
        assert len(rig.events) <= 11  # looked at once a second, however much has happened
        rig.server.send(None)
        await rig.clock.advance(4)
        assert rig.status("a0")["state"] == "Running"
        assert await told(rig, "/readyz") == (200, "ok\n")
    silent = "; ".join(f"{kind}: no news for 80 s" for kind in ESSENTIAL)
    assert warnings(caplog) == [f"nothing is dispatched why={silent}", "dispatching again"]


# -- what is installed ---------------------------------------------------------------------------

WIDGETS = [{"apiGroup": "example.com", "resources": ["widgets"]}]


class Shop(Rig):
    """A cluster in which widgets may be installed; ``asked`` counts looks at discovery."""

    def __init__(self, served: str = "") -> None:
        super().__init__(wrappedResources=WIDGETS)
        if served:
            self.define()
            self.serve(served)

    def serve(self, *versions: str) -> None:
        """Widgets are served in these versions, the preferred one first."""
        kinds = (Resource("example.com", version, "widgets", "Widget") for version in versions)
        self.server.served = KINDS + tuple(kinds)

    def define(self, name: str = "widgets.example.com") -> None:
        """The CRD is created or changed."""
        self.server.put("customresourcedefinitions", {"metadata": {"name": name}})

    @property
    def asked(self) -> int:
        return reads(self.server).count("/apis")

    def lists(self, version: str) -> int:
        return reads(self.server).count(f"/apis/example.com/{version}/widgets")


async def test_an_idle_dispatcher_asks_nothing_although_a_kind_is_missing() -> None:
    async with Shop() as shop:
        await shop.clock.advance(3600)
        assert shop.asked == 1


async def test_a_kind_that_is_installed_is_watched_within_two_seconds() -> None:
    async with Shop() as shop:
        await shop.clock.advance(1000)
        shop.define()
        await shop.clock.advance(0.3)
        shop.serve("v1")
        await shop.clock.advance(1.7)
        assert shop.lists("v1") == 1
        asked = shop.asked
        await shop.clock.advance(1000)
        assert shop.asked == asked + 1 <= 4  # discovery may follow in parts


async def test_a_kind_whose_crd_is_never_served_is_asked_for_ever_more_seldom() -> None:
    async with Shop() as shop:
        shop.define()
        await shop.clock.advance(600)
        assert shop.asked <= 18


async def test_a_kind_that_is_served_in_another_version_is_watched_in_that() -> None:
    async with Shop("v1alpha1") as shop:
        await lively(shop, 2)
        assert (shop.lists("v1alpha1"), shop.lists("v1")) == (1, 0)
        shop.define()
        await lively(shop, 1)
        shop.serve("v1")  # discovery follows
        await lively(shop, 3)
        assert (shop.lists("v1alpha1"), shop.lists("v1")) == (1, 1)
        assert shop.controller.watches.streams["example.com", "widgets"].is_watched


async def test_a_kind_that_comes_again_is_watched_at_once() -> None:
    async with Shop("v1") as shop:
        await lively(shop, 2)
        shop.serve()
        shop.server.remove("customresourcedefinitions", "widgets.example.com")
        await lively(shop, 3)
        gone = "ok\ndegraded: widgets.example.com: it is not installed\n"
        assert await told(shop, "/readyz") == (200, gone)  # although its watch is open
        shop.server.send(None)
        await lively(shop, 300)
        assert await told(shop, "/readyz") == (200, gone)
        shop.serve("v1")
        shop.define()
        await lively(shop, 2)
        assert await told(shop, "/readyz") == (200, "ok\n")


@pytest.mark.slow
async def test_without_the_right_to_watch_crds_kinds_are_looked_for_ever_more_seldom(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shop = Shop()
    shop.server.deny("customresourcedefinitions", method="GET")
    async with shop:
        await shop.clock.advance(4 * 3600)
        assert 20 <= shop.asked <= 32
        assert reads(shop.server).count(CRDS.path()) < 30
        shop.serve("v1")
        await shop.clock.advance(700)
        assert shop.lists("v1") == 1
        asked = shop.asked
        await shop.clock.advance(3600)
        assert shop.asked == asked  # nothing is missing any more
    told_of = [one for one in caplog.messages if one.startswith("CRDs cannot be watched")]
    assert len(told_of) == 1


async def test_a_kind_of_an_aggregated_server_is_looked_for_while_an_appwrapper_waits_for_it() -> (
    None
):
    async with Shop() as shop:
        template = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        metadata = {"name": "a", "namespace": "default", "generation": 1}
        spec = {"components": [{"template": template}]}
        shop.server.put("appwrappers", {"metadata": metadata, "spec": spec})
        await lively(shop, 70)
        assert shop.asked == 2
        shop.serve("v1")
        await lively(shop, 130)
        assert shop.status("a")["state"] == "Running"
