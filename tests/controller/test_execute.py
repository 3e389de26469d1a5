"""Commands become requests and answers become events; nothing is judged on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from mcad.api.status import render_status
from mcad.controller.execute import Executor
from mcad.controller.mirror import Manifests, Mirror, Reflection, status_mark
from mcad.controller.request_failures import answer_of
from mcad.core.commands import (
    Command,
    CreateItem,
    DeleteItem,
    DeleteStray,
    ForceDeletion,
    InspectItem,
    LookForRemains,
    ReadWarnings,
    ReviewAccess,
    WriteStatus,
)
from mcad.core.events import (
    AccessReviewed,
    Event,
    ItemCreated,
    ItemDeleted,
    ItemInspected,
    ItemRefused,
    Remaining,
    StatusRefused,
    StatusWritten,
    StrayRefused,
)
from mcad.core.state.answer import Answer
from mcad.core.state.model import PodCounts
from mcad.core.state.status_view import StatusView, Urgency
from mcad.kube.client import Client
from mcad.kube.clock import RealClock
from mcad.kube.errors import ApiError, RequestTimeout
from mcad.kube.port import Request, Response
from mcad.kube.recorder import Recorder, Reporter
from tests.core.bench import workload
from tests.fakeapi import FakeApi, content, held

Json = dict[str, Any]
Handler = Callable[[Request], Response]
STATUS_PATH = "/apis/workload.codeflare.dev/v1beta2/namespaces/default/appwrappers/a/status"


class Shell:
    """Records what the executor tells."""

    quotas = None
    scale_ups = None

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.observed: list[Json] = []

    def feed(self, event: Event) -> None:
        self.events.append(event)

    def observe_appwrapper(self, obj: Json) -> None:
        self.observed.append(obj)

    def wake_at(self, at: int) -> None:
        raise NotImplementedError

    def errored(self, uid: str, error: Exception) -> None:
        raise error


def view(state: str = "Pending") -> StatusView:
    return StatusView(
        state=state,
        queue_job_state="Backoff",
        can_run=False,
        sender="x",
        first_seen=1,
        first_dispatch=0,
        system_priority=0,
        conditions=(),
        pods=PodCounts(),
        requeueings=0,
        requeueing_wait=0,
        observed_generation=1,
        phase="",
        dispatch=None,
    )


class Rig:
    """An executor with one AppWrapper of one bare pod, at version 10."""

    def __init__(self, handler: Handler, **options: Any) -> None:
        self.api = FakeApi()

        async def scripted(request: Request) -> Response:
            return handler(request)

        self.api.fail_always("*", "", scripted)
        clock = RealClock()
        client = Client(self.api, clock, Random(1))
        self.mirror = Mirror()
        manifest = json.dumps(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a-0"}, "spec": {}}
        ).encode()
        self.mirror.put(
            "uid-a",
            Reflection(
                workload("a", 1), Manifests.of([manifest]), b"", version="10", status_mark=b""
            ),
        )
        self.shell = Shell()
        self.recorder = Recorder(client, Reporter("x/y", "z"))
        self.executor = Executor(client, self.mirror, self.recorder, self.shell, **options)

    def bodies(self) -> list[Json]:
        return [content(one) for one in self.api.requests]

    async def run(self, *commands: Command) -> None:
        for command in commands:
            self.executor.submit(command)
        await self.rest()

    async def rest(self) -> None:
        for _ in range(200):
            await asyncio.sleep(0)


def patched(version: str) -> Response:
    return Response(200, {"metadata": {"resourceVersion": version, "uid": "uid-a"}})


def status(code: int, reason: str) -> Response:
    return Response(code, {"kind": "Status", "reason": reason, "message": "words"})


def write(serial: int, state: str = "Pending", urgency: Urgency = Urgency.DISPATCH) -> WriteStatus:
    return WriteStatus("uid-a", serial, view(state), urgency)


async def test_events_give_way_while_two_dispatches_are_under_way() -> None:
    rig, going = Rig(lambda request: patched("11")), asyncio.Event()

    async def hold(request: Request) -> Response:
        await going.wait()
        return patched("11")

    rig.api.always.clear()
    rig.api.fail_always("*", "", hold)
    for busy in (False, True):
        rig.executor.submit(CreateItem("uid-a", 1, 0))
        await rig.rest()
        assert rig.recorder.is_busy() is busy
    going.set()
    await rig.rest()
    assert not rig.recorder.is_busy()


async def test_a_status_write_is_fenced_and_advances_the_fence() -> None:
    rig = Rig(lambda request: patched("11"))
    await rig.run(write(1))
    await rig.run(write(2, "Running"))

    assert [r.path for r in rig.api.requests] == [STATUS_PATH] * 2
    versions = [body["metadata"]["resourceVersion"] for body in rig.bodies()]
    assert versions == ["10", "11"]
    assert rig.shell.events == [StatusWritten("uid-a", 1), StatusWritten("uid-a", 2)]


async def test_a_write_that_changes_nothing_is_not_sent() -> None:
    rig = Rig(lambda request: patched("11"))
    seat = rig.mirror.get("uid-a")
    seat.status_mark = status_mark(render_status(view(), "uid-a"))
    await rig.run(write(1))

    assert rig.api.requests == []
    assert rig.shell.events == [StatusWritten("uid-a", 1)]


async def test_a_report_that_was_superseded_before_it_was_sent_is_not_sent() -> None:
    rig = Rig(lambda request: patched("11"))
    await rig.run(write(1, "Pending", Urgency.REPORT), write(2, "Running", Urgency.DISPATCH))

    assert [body["status"]["state"] for body in rig.bodies()] == ["Running"]
    assert rig.shell.events == [StatusWritten("uid-a", 2)]


async def test_of_reports_that_wait_the_newest_is_sent_in_the_turn_of_the_first() -> None:
    rig = Rig(lambda request: patched("11"))
    rig.executor.lanes["report"]._width = 0
    await rig.run(write(1, "Pending", Urgency.REPORT), write(2, "Failed", Urgency.REPORT))
    rig.executor.lanes["report"]._width = 1
    await rig.run(write(3, "Running", Urgency.REPORT))

    assert [body["status"]["state"] for body in rig.bodies()] == ["Running"]
    assert rig.shell.events == [StatusWritten("uid-a", 3)]


async def test_a_write_back_to_what_is_persisted_unsends_the_one_that_waits() -> None:
    rig = Rig(lambda request: patched("11"))
    rig.mirror.get("uid-a").status_mark = status_mark(render_status(view("Running"), "uid-a"))
    await rig.run(write(1, "Pending", Urgency.REPORT), write(2, "Running"))

    assert rig.api.requests == []
    assert rig.shell.events == [StatusWritten("uid-a", 2)]


async def test_a_write_does_not_overtake_one_that_was_sent() -> None:
    rig = Rig(lambda request: patched(str(10 + len(rig.api.requests))))
    gate = asyncio.Event()
    rig.api.fail("PUT", "", held(gate))
    await rig.run(write(1, "Pending", Urgency.REPORT))
    await rig.run(write(2, "Running", Urgency.DISPATCH))
    assert len(rig.api.requests) == 1
    gate.set()
    await rig.rest()

    assert [body["status"]["state"] for body in rig.bodies()] == ["Pending", "Running"]
    assert [body["metadata"]["resourceVersion"] for body in rig.bodies()] == ["10", "11"]


LIVE = {"metadata": {"uid": "uid-a", "resourceVersion": "11"}}


@pytest.mark.parametrize(
    ("live", "answer"),
    [
        pytest.param(LIVE | {"status": {"state": "Other"}}, 409, id="another client wrote"),
        pytest.param({"metadata": {"uid": "another"}}, 404, id="another object of that name"),
        pytest.param(
            LIVE | {"status": render_status(view(), "uid-a")}, 0, id="our own first request"
        ),
    ],
)
async def test_a_conflict_is_settled_by_reading_the_object(live: Json, answer: int) -> None:
    rig = Rig(
        lambda request: status(409, "Conflict") if request.method == "PUT" else Response(200, live)
    )
    await rig.run(write(1))

    (event,) = rig.shell.events
    if answer:
        assert isinstance(event, StatusRefused)
        assert event.answer.status == answer
        assert rig.shell.observed == [live] * (answer == 409)
    else:
        assert event == StatusWritten("uid-a", 1)
        assert rig.mirror.get("uid-a").version == "11"


async def test_a_created_item_is_told_with_its_uid_and_carries_our_marks() -> None:
    rig = Rig(lambda request: Response(201, {"metadata": {"uid": "made"}}))
    await rig.run(CreateItem("uid-a", 3, 0))

    assert rig.shell.events == [ItemCreated("uid-a", 3, 0, "made")]
    metadata = rig.bodies()[0]["metadata"]
    assert metadata["ownerReferences"][0]["uid"] == "uid-a"
    assert metadata["labels"]["workload.codeflare.dev/attempt"] == "3"


async def test_what_the_server_warns_of_is_told_with_the_item() -> None:
    warning = '299 - "unknown field \\"spec.paralelism\\"", 299 - "deprecated"'
    made = {"metadata": {"uid": "made"}}
    rig = Rig(lambda request: Response(201, made, {"Warning": warning}))
    await rig.run(CreateItem("uid-a", 3, 0))

    told = ('“unknown field "spec.paralelism"”', "“deprecated”")
    assert rig.shell.events == [ItemCreated("uid-a", 3, 0, "made", told)]
    assert rig.api.requests[0].params == {"fieldValidation": "Warn"}


async def test_what_is_created_is_fixed_when_the_command_is_given() -> None:
    rig = Rig(lambda request: Response(201, {"metadata": {"uid": "made"}}))
    for _ in range(40):  # the lane is full, so the command waits
        rig.executor.submit(CreateItem("uid-a", 3, 0))
    seat = rig.mirror.get("uid-a")
    other = seat.manifests.text(0).replace(b"a-0", b"changed")
    rig.mirror.put(
        "uid-a",
        Reflection(seat.workload, Manifests.of([other]), b"", version="11", status_mark=b""),
    )
    await rig.rest()

    assert {body["metadata"]["name"] for body in rig.bodies()} == {"a-0"}


async def test_a_refused_item_is_told_with_the_servers_words() -> None:
    rig = Rig(lambda request: status(422, "Invalid"))
    await rig.run(CreateItem("uid-a", 1, 0))

    assert rig.shell.events == [ItemRefused("uid-a", 1, 0, Answer(422, "Invalid", "“words”"))]


def as_runner(namespace: str) -> str:
    return f"system:serviceaccount:{namespace}:runner"


async def test_only_items_and_access_reviews_are_sent_as_the_impersonated_user() -> None:
    def handler(request: Request) -> Response:
        if request.path.endswith("selfsubjectaccessreviews"):
            return Response(201, {"status": {"allowed": True}})
        return Response(200, {"metadata": {"uid": "made", "resourceVersion": "11"}})

    rig = Rig(handler, creator=as_runner)
    ref = workload("a", 1).items[0].ref
    for command in (
        CreateItem("uid-a", 1, 0),
        ReviewAccess(ref),
        write(1),
        DeleteItem("uid-a", 1, 0, ref, "known"),
        InspectItem("uid-a", 1, 0, ref),
        ReadWarnings("uid-a", 1, 0, ref, 1),
    ):
        await rig.run(command)

    users = [(r.method, r.headers.get("Impersonate-User")) for r in rig.api.requests]
    runner = "system:serviceaccount:default:runner"
    assert sorted(users, key=str) == [
        ("DELETE", None),
        ("GET", None),
        ("GET", None),
        ("POST", runner),
        ("POST", runner),
        ("PUT", None),
    ]
    assert AccessReviewed("default", "", "pods", allowed=True, user=runner) in rig.shell.events


@pytest.mark.parametrize(
    ("code", "creator", "allowed"),
    [(403, as_runner, False), (503, as_runner, None), (403, lambda _: "", None)],
    ids=["must not impersonate", "no answer", "ourselves"],
)
async def test_an_impersonation_that_is_not_allowed_is_a_denial(
    code: int, creator: Callable[[str], str], allowed: bool | None
) -> None:
    rig = Rig(lambda request: status(code, "x"), creator=creator)
    rig.executor._client._timeout_s = 0.05  # a 503 is repeated for that long
    await rig.run(ReviewAccess(workload("a", 1).items[0].ref))
    await asyncio.sleep(0.1)

    user = creator("default")
    assert rig.shell.events == [AccessReviewed("default", "", "pods", allowed, user)]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (RequestTimeout("too late"), Answer(0, "RequestTimeout", "too late")),
        (ApiError(429, "TooManyRequests", "x", retry_after=2.5), (429, 2_500_000)),
        (
            ApiError(
                403,
                "Forbidden",
                "x",
                details={"causes": [{"reason": "NamespaceTerminating"}]},
            ),
            "NamespaceTerminating",
        ),
    ],
)
def test_answers(error: Exception, answer: object) -> None:
    told = answer_of(error)
    assert answer in (told, told.reason, (told.status, told.retry_after))


def _object(owner: str, attempt: str = "1") -> Json:
    reference = {
        "apiVersion": "workload.codeflare.dev/v1beta1",
        "kind": "AppWrapper",
        "name": "a",
        "uid": owner,
        "controller": True,
    }
    return {
        "metadata": {
            "name": "a-0",
            "namespace": "default",
            "uid": "found",
            "labels": {"workload.codeflare.dev/attempt": attempt},
            "ownerReferences": [reference],
        }
    }


async def test_a_deletion_without_a_known_uid_deletes_only_what_is_ours() -> None:
    ref = workload("a", 1).items[0].ref
    for owner, attempt, deletes in (("uid-a", "1", 1), ("else", "1", 0), ("uid-a", "2", 0)):
        live = _object(owner, attempt)
        rig = Rig(lambda request, live=live: Response(200, live))
        await rig.run(DeleteItem("uid-a", 1, 0, ref, ""))
        sent = [r for r in rig.api.requests if r.method == "DELETE"]

        assert len(sent) == deletes
        assert all(r.body["preconditions"] == {"uid": "found"} for r in sent)
        assert rig.shell.events == [ItemDeleted("uid-a", 1, 0)]


async def test_an_item_that_is_gone_or_replaced_counts_as_deleted() -> None:
    ref = workload("a", 1).items[0].ref
    for code, reason in ((404, "NotFound"), (409, "Conflict")):
        rig = Rig(lambda request, code=code, reason=reason: status(code, reason))
        await rig.run(DeleteItem("uid-a", 1, 0, ref, "known"))
        assert rig.shell.events == [ItemDeleted("uid-a", 1, 0)]


async def test_the_holder_of_a_name_is_looked_up_with_its_owner() -> None:
    ref = workload("a", 1).items[0].ref

    rig = Rig(
        lambda request: (
            status(404, "NotFound")
            if "appwrappers" in request.path
            else Response(200, _object("deleted-long-ago"))
        )
    )
    await rig.run(InspectItem("uid-a", 1, 0, ref))

    event = rig.shell.events[0]
    assert isinstance(event, ItemInspected)
    assert event.holder.owner_is_appwrapper
    assert not event.holder.owner_exists


async def test_remains_are_listed_live_by_label_pods_included() -> None:
    item = workload("a", 1).items[0].ref
    ref = type(item)("apps", "v1", "deployments", "Deployment", "default", "a")
    left, newer = _object("uid-a", "1"), _object("uid-a", "2")
    left["metadata"] |= {"deletionTimestamp": "now", "finalizers": ["example.com/keep"]}

    def handler(request: Request) -> Response:
        if request.path.endswith("/pods"):
            return Response(200, {"metadata": {"resourceVersion": "9"}, "items": [left, newer]})
        return status(404, "NotFound")

    rig = Rig(handler)
    await rig.run(LookForRemains("uid-a", "default", 1, (ref,)))

    selectors = {r.params["labelSelector"] for r in rig.api.requests}
    assert selectors == {"workload.codeflare.dev/appwrapper-uid=uid-a"}
    assert isinstance(rig.shell.events[0], Remaining)
    (found,) = rig.shell.events[0].objects
    assert (str(found.ref), found.uid, found.terminating) == ("Pod default/a-0", "found", True)
    assert found.finalizers == ("example.com/keep",)


@pytest.mark.parametrize(
    ("code", "logged"),
    [(200, "deleted by force"), (404, ""), (409, ""), (403, "cannot be deleted by force")],
)
async def test_a_forced_deletion_is_of_this_very_object_and_in_the_background(
    code: int, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Foreground would wait for what is below, and a grace period for a node that is gone."""
    caplog.set_level("INFO", "mcad.controller.execute")
    ref = workload("a", 1).items[0].ref
    reasons = {403: "Forbidden", 404: "NotFound", 409: "Conflict"}
    rig = Rig(
        lambda request: Response(200, {}) if code == 200 else status(code, reasons[code]),
        creator=lambda namespace: f"system:serviceaccount:{namespace}:runner",
    )
    await rig.run(ForceDeletion("uid-a", ref, "found"))

    (request,) = rig.api.requests
    assert (request.method, request.path) == ("DELETE", "/api/v1/namespaces/default/pods/a-0")
    assert request.body["gracePeriodSeconds"] == 0
    assert request.body["propagationPolicy"] == "Background"
    assert request.body["preconditions"] == {"uid": "found"}
    assert rig.shell.events == []
    assert [logged in message for message in caplog.messages] == [True] * bool(logged)


async def test_the_sweep_deletes_only_what_its_appwrapper_still_controls() -> None:
    """An orphaning deletion may have taken its hand off it, and the watches did not tell yet."""
    ref = workload("a", 1).items[0].ref
    orphan = {"metadata": {"name": "a-0", "namespace": "default", "uid": "found"}}
    for live, deletes in ((_object("uid-a"), 1), (_object("else"), 0), (orphan, 0)):
        rig = Rig(lambda request, live=live: Response(200, live))
        await rig.run(DeleteStray("uid-a", ref, "found"))
        sent = [r for r in rig.api.requests if r.method == "DELETE"]

        assert len(sent) == deletes
        assert all(r.body["preconditions"] == {"uid": "found"} for r in sent)
        assert rig.shell.events == []


async def test_a_stray_that_is_said_to_be_gone_while_it_is_there_is_told() -> None:
    """The watch reports a deletion; the 404 of a proxy must not hide the object."""
    ref = workload("a", 1).items[0].ref
    rig = Rig(
        lambda request: (
            status(404, "NotFound")
            if request.method == "DELETE"
            else Response(200, _object("uid-a"))
        )
    )
    await rig.run(DeleteStray("uid-a", ref, "found"))
    (told,) = rig.shell.events
    assert isinstance(told, StrayRefused)
    assert (told.object_uid, told.answer.status) == ("found", 404)
