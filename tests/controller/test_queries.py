"""Figures are made in slices: others have their turns, and what is told belongs together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from mcad.controller import cooperative, reservation_views, start_time_views, views
from mcad.controller.http_port import STALL_S, application
from mcad.controller.leader_figures import ASKED_MAX, FiguresUnavailable, LeaderFigures
from mcad.core.cycle import cycle
from mcad.core.events import AppWrapperGone, QuotaSeen
from mcad.core.state.reservation import Reservation, ReservationReason
from mcad.core.state.units import SECOND
from mcad.core.views import rows
from mcad.core.views.rows import Picture
from mcad.core.views.start_times import Basis, StartTime
from mcad.kube.kinds import QUOTA_SUBTREES
from tests.controller.test_runtime import KINDS, Rig, add_appwrapper, add_node
from tests.core.bench import Bench, node, workload
from tests.core.quotas import child, subtree, teams

Json = dict[str, Any]
COUNT = 30
NAMES = [f"a{number:02}" for number in range(COUNT)]
PATHS = ["/api/v1/queue", "/api/v1/appwrappers", "/api/v1/appwrappers/default/a29"]
PATHS += ["/api/v1/capacity", "/metrics"]


@asynccontextmanager
async def full() -> AsyncIterator[Rig]:
    """As many AppWrappers as ``NAMES``, each of a shape of its own, on one node that holds none."""
    async with Rig() as rig:
        for number, name in enumerate(NAMES):
            add_appwrapper(rig.server, name, f"{2000 + number}m")
        await rig.clock.advance(1)
        yield rig


async def get(rig: Rig, path: str) -> web.Response:
    replica: Any = SimpleNamespace(controller=rig.controller, lease=None)
    app = application(replica)
    request = make_mocked_request("GET", path, app=app)
    found = await app.router.resolve(request)
    request._match_info = found
    answer = await found.handler(request)
    assert isinstance(answer, web.Response)
    return answer


def body(answer: web.Response) -> Json:
    assert isinstance(answer.body, bytes)
    decoded: Json = json.loads(answer.body)
    return decoded


@pytest.fixture(autouse=True)
def every_step_is_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooperative, "SLICE_S", 0.0)


@pytest.mark.parametrize("path", PATHS)
async def test_others_have_their_turns_while_it_is_made(path: str) -> None:
    async with full() as rig:
        asking = asyncio.ensure_future(get(rig, path))
        turns = 0
        while not asking.done():
            await asyncio.sleep(0)
            turns += 1
        assert (await asking).status == 200
        assert turns > (COUNT if "appwrappers" in path or "queue" in path else 1)


async def test_what_would_start_one_is_tried_on_a_copy() -> None:
    async with full() as rig:
        before = rig.controller.dispatcher.cluster.capacity.report.sums()
        view = body(await get(rig, "/api/v1/appwrappers/default/a29/why"))
        assert (view["name"], view["position"], view["waitsFor"]) == ("a29", COUNT, "cpu")
        assert [one["kind"] for one in view["wouldStart"]] == ["request"]
        assert (await get(rig, "/api/v1/appwrappers/default/none/why")).status == 404
        assert rig.controller.dispatcher.cluster.capacity.report.sums() == before


async def test_what_would_differ_is_answered_to_a_post() -> None:
    async with full() as rig:
        replica: Any = SimpleNamespace(controller=rig.controller, lease=None)
        path, gone = "/api/v1/what-if/default", {"changes": {"leftOut": ["a00"]}}
        async with TestClient(TestServer(application(replica))) as http:
            answer = await http.post(path, json={"spec": gone})
            told = {one["appwrapper"]: one["then"] for one in (await answer.json())["changes"]}
            assert told["default/a00"] is None
            assert told["default/a01"]["position"] == 1
            answer = await http.post(path, json={"spec": {"changes": {"leftOut": ["none"]}}})
            assert answer.status == 422
            assert 'no AppWrapper "default/none"' in (await answer.json())["message"]
            bad = {"kind": "AppWrapper", "metadata": {"name": "b", "namespace": "default"}}
            answer = await http.post(path, json={"spec": {"manifests": [bad | {"spec": 1}]}})
            ((number, text),) = (await answer.json())["faults"]
            assert (answer.status, number, text.startswith("spec")) == (422, 0, True)
            # What any web page may send without asking first.
            assert (await http.post(path, data="{}")).status == 415


async def test_of_too_many_questions_the_last_ones_are_refused() -> None:
    async with full() as rig:
        replica: Any = SimpleNamespace(controller=rig.controller, lease=None)
        figures = LeaderFigures(replica)
        asked = [figures.why("default", "a29") for _ in range(ASKED_MAX + 3)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [isinstance(one, FiguresUnavailable) for one in answers] == [False] * ASKED_MAX + [
            True
        ] * 3
        assert await figures.why("default", "a29")


async def test_quota_trees_and_their_nodes_are_told() -> None:
    async with full() as rig:
        assert body(await get(rig, "/api/v1/quota")) == {"enabled": False, "trees": []}
        for one in teams(1000, red=1000):
            rig.controller.feed(QuotaSeen(one))
        await rig.clock.advance(1)
        (tree,) = body(await get(rig, "/api/v1/quota"))["trees"]
        assert [node["node"] for node in tree["nodes"]] == ["root", "red"]
        node = body(await get(rig, "/api/v1/quota/gold/root"))
        assert [row["name"] for row in node["queue"]] == NAMES
        assert (await get(rig, "/api/v1/quota/gold/blue")).status == 404
        assert (await get(rig, "/api/v1/quota/silver/root")).status == 404


async def test_before_all_is_listed_there_are_no_figures() -> None:
    async with full() as rig:
        rig.controller.watches.is_synced = False
        for path in PATHS[:4]:
            with pytest.raises(FiguresUnavailable, match="not synced yet"):
                await get(rig, path)


async def test_a_loop_that_stands_still_is_not_healthy() -> None:
    async with full() as rig:
        assert (await get(rig, "/healthz")).status == 200
        rig.controller.stepped_at -= STALL_S + 1
        answer = await get(rig, "/healthz")
        assert (answer.status, (answer.text or "")[:13]) == (500, "no step for 6")


async def test_what_is_ahead_is_not_itself() -> None:
    async with full() as rig:
        detail = body(await get(rig, "/api/v1/appwrappers/default/a03"))
        assert [row["name"] for row in detail["ahead"]] == NAMES[:3]


def suspend(obj: Json) -> None:
    obj["spec"]["suspend"] = True
    obj["metadata"]["generation"] = 2


async def test_those_on_hold_come_before_those_that_do_not_wait() -> None:
    async with Rig() as rig:
        add_appwrapper(rig.server, "runs", "1")
        await rig.clock.advance(1)
        add_appwrapper(rig.server, "waits", "1")
        add_appwrapper(rig.server, "held", "1")
        rig.server.change("appwrappers", "held", suspend)
        await rig.clock.advance(1)
        rows = body(await get(rig, "/api/v1/appwrappers"))["items"]
        assert [row["name"] for row in rows] == ["waits", "held", "runs"]


async def test_the_parent_of_a_node_is_the_next_one_above() -> None:
    async with full() as rig:
        rig.controller.feed(QuotaSeen(subtree("root", child("root", cpu=1000))))
        rig.controller.feed(QuotaSeen(subtree("x", child("dept", cpu=500), parent="root")))
        rig.controller.feed(QuotaSeen(subtree("y", child("team", cpu=100), parent="dept")))
        await rig.clock.advance(1)
        (tree,) = body(await get(rig, "/api/v1/quota"))["trees"]
        assert {one["node"]: one["parent"] for one in tree["nodes"]} == {
            "root": "",
            "dept": "root",
            "team": "dept",
        }


def test_the_reason_of_a_reservation_is_told() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("owner", 1))
    reservation = Reservation(ReservationReason.STARVED, SECOND, 2 * SECOND, nodes=("n1",))
    told = reservation_views._owner_view(bench.entry("owner"), reservation)
    assert (told["name"], told["reason"], told["nodeCount"]) == ("owner", "Starved", 1)


def test_an_estimate_has_an_earliest_and_a_latest_start() -> None:
    told = start_time_views._view(StartTime(SECOND, 2 * SECOND, Basis.LIMITS, "why"))
    assert (told["earliest"], told["latest"]) == (
        "1970-01-01T00:00:01.000000Z",
        "1970-01-01T00:00:02.000000Z",
    )


async def test_whether_shares_count_is_told() -> None:
    rig = Rig(quotaEnabled=True)
    rig.server.served = (*KINDS, QUOTA_SUBTREES)
    async with rig:
        assert body(await get(rig, "/api/v1/quota")) == {"enabled": True, "trees": []}


async def test_a_row_that_is_deleted_meanwhile_breaks_nothing() -> None:
    async with full() as rig:
        asking = asyncio.ensure_future(get(rig, "/api/v1/queue"))
        for _ in range(COUNT // 2):
            await asyncio.sleep(0)
        assert not asking.done()
        for name in NAMES[::2]:
            rig.controller.feed(AppWrapperGone(f"uid-{name}"))
        rows = body(await asking)["items"]
        assert [row["name"] for row in rows] == NAMES
        assert [row["position"] for row in rows] == list(range(1, COUNT + 1))
        assert [row["name"] for row in body(await get(rig, "/api/v1/queue"))["items"]] == NAMES[
            1::2
        ]


async def test_one_that_is_deleted_meanwhile_is_not_there() -> None:
    async with full() as rig:
        asking = asyncio.ensure_future(get(rig, "/api/v1/appwrappers/default/a29"))
        for _ in range(COUNT // 2):
            await asyncio.sleep(0)
        rig.controller.feed(AppWrapperGone("uid-a29"))
        assert (await asking).status == 404


async def test_for_one_appwrapper_few_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    async with full() as rig:
        judged = []
        verdict = cycle.verdict
        monkeypatch.setattr(cycle, "verdict", lambda *args: judged.append(args) or verdict(*args))
        answer = body(await get(rig, "/api/v1/appwrappers/default/a29"))
        assert (answer["position"], answer["inLine"]) == (COUNT, COUNT)
        assert [one["name"] for one in answer["ahead"]] == NAMES[: views.AHEAD_SHOWN]
        assert len(judged) <= views.AHEAD_SHOWN + 2  # itself, once more for its figures


async def test_the_head_is_searched_among_a_bounded_number_of_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is no head if no AppWrapper would fit an empty cluster: each is asked."""
    async with full() as rig:
        asked = []
        ask = cycle.may_be_head
        monkeypatch.setattr(cycle, "may_be_head", lambda *args: asked.append(args) or ask(*args))
        monkeypatch.setattr(rows, "HEADS_ASKED", COUNT // 2)
        items = body(await get(rig, "/api/v1/queue"))["items"]
        assert [one["name"] for one in items if one["headOfLine"]] == []
        assert len(asked) == COUNT // 2


async def test_a_picture_is_put_in_order_in_steps() -> None:
    async with full() as rig:
        cluster = rig.cluster
        picture = Picture(cluster, cluster.now)
        assert len(list(picture.order())) == -(-COUNT // rows.TOGETHER)
        assert [row.name for row in picture.rows() if row] == NAMES
        assert list(picture.order()) == []


async def test_a_picture_stays_as_it_was_taken() -> None:
    async with full() as rig:
        cluster = rig.cluster
        picture, before = Picture(cluster, cluster.now), tuple(Picture(cluster, cluster.now).rows())
        add_node(rig.server, "100")
        await rig.clock.advance(6)  # nothing is bound here, so some wait for bindings
        assert {row.state for row in Picture(cluster, cluster.now).rows() if row} == {"Running"}
        picture.renew()
        after = tuple(picture.rows())
        assert [(r.name, r.position, r.state) for r in after if r] == [
            (r.name, r.position, r.state) for r in before if r
        ]
