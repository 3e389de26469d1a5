"""Which words of Events say why pods of an item are not created, and that failures cost nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.api.wire import parse_instant
from mcad.controller.pod_warnings import PodWarnings
from mcad.core.commands import ReadWarnings
from mcad.core.events import WarningsRead
from mcad.core.state.model import ObjectRef
from mcad.kube.port import Request, Response
from tests.api.strategies import mutated, shaped
from tests.controller.test_execute import Rig, status
from tests.fakeapi import held

Json = dict[str, Any]
NOON = "2026-01-01T12:00:00Z"
JOB = ObjectRef("batch", "v1", "jobs", "Job", "default", "x")


def read_of(kind: str, group: str = "batch", since: str = NOON) -> ReadWarnings:
    """The command for an item of this kind called ``x``."""
    ref = ObjectRef(group, "v1", f"{kind.lower()}s", kind, "default", "x")
    return ReadWarnings("uid-a", 3, 1, ref, parse_instant(since))


def event(kind: str = "Job", name: str = "x", message: str = "forbidden", **fields: Any) -> Json:
    """A Warning Event about an object."""
    return {
        "metadata": {"name": f"{name}.18a5", "creationTimestamp": NOON},
        "involvedObject": {"kind": kind, "name": name, "namespace": "default"},
        "type": "Warning",
        "reason": "FailedCreate",
        "message": message,
        "lastTimestamp": NOON,
    } | fields


async def words_of(command: ReadWarnings, *events: Any) -> str:
    """What is told of these Events."""
    rig = Rig(lambda _: Response(200, {"metadata": {}, "items": list(events)}))
    await rig.run(command)
    (told,) = rig.shell.events
    assert isinstance(told, WarningsRead)
    assert (told.uid, told.attempt, told.item) == ("uid-a", 3, 1)
    return told.words


async def test_one_page_of_the_warnings_of_the_namespace_is_asked_for() -> None:
    rig = Rig(lambda _: Response(200, {"metadata": {"continue": "more"}, "items": [event()]}))
    await rig.run(read_of("Job"))
    (request,) = rig.api.requests
    assert (request.method, request.path) == ("GET", "/api/v1/namespaces/default/events")
    assert request.params == {
        "fieldSelector": "type=Warning,involvedObject.kind!=Pod",
        "limit": "500",
    }
    assert rig.shell.events == [WarningsRead("uid-a", 3, 1, "Job default/x: “forbidden”")]


@pytest.mark.parametrize(
    ("reason", "message", "counts"),
    [
        ("FailedCreate", "quota", True),
        ("FailedCreatePod", "quota", True),
        ("FailedToCreateHeadPod", "quota", True),
        ("FailedToCreateWorkerPod", "quota", True),
        ("FailedToCreateRayCluster", "quota", True),
        ("JobCreationFailed", "quota", True),
        ("HeadlessServiceCreationFailed", "quota", True),
        ("TrainJobResourcesCreationFailed", "quota", True),
        ("SparkApplicationSubmissionFailed", "quota", True),
        ("MPIJobFailed", "worker pod created failed: quota", True),
        ("MPIJobFailed", "exit code 1", False),
        ("FailedToDeleteWorkerPod", "quota", False),
        ("BackoffLimitExceeded", "failed", False),
        ("FailedPlacement", "quota", False),
        ("SuccessfulCreate", "Created pod", False),
        ("CreateContainerError", "words", False),
        ("", "quota", False),
        (None, None, False),
    ],
)
async def test_reasons_that_something_was_not_created(
    reason: Any, message: Any, counts: bool
) -> None:
    words = await words_of(read_of("Job"), event(reason=reason, message=message))
    assert words == (f"Job default/x: “{message}”" if counts else "")


@pytest.mark.parametrize(
    ("item", "group", "kind", "name", "counts"),
    [
        ("Job", "batch", "Job", "x", True),
        ("Job", "batch", "Job", "x-1", False),  # another Job
        ("Job", "batch", "Job", "y", False),
        ("Job", "batch", "Deployment", "x", False),  # another object of that name
        ("Job", "batch", "ReplicaSet", "x-5d8f", False),
        ("Deployment", "apps", "ReplicaSet", "x-5d8f", True),
        ("Deployment", "apps", "ReplicaSet", "xy-5d8f", False),
        ("Deployment", "apps", "Deployment", "x-5d8f", False),
        ("CronJob", "batch", "Job", "x-29", True),
        ("JobSet", "jobset.x-k8s.io", "Job", "x-workers-0", True),
        ("RayJob", "ray.io", "RayCluster", "x-raycluster-abc", True),
        ("RayJob", "ray.io", "Job", "x", True),  # the submitter
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io", "StatefulSet", "x", True),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io", "StatefulSet", "x-0", True),
        ("PyTorchJob", "kubeflow.org", "PyTorchJob", "x", True),
        ("PyTorchJob", "kubeflow.org", "Job", "x-0", False),  # it has none
        ("Gadget", "example.com", "Job", "x-0", True),  # a kind that no table has
        ("Gadget", "example.com", "Gadget", "x-0", False),
        ("Gadget", "example.com", "Job", "y-0", False),
        ("Job", "batch", None, None, False),
    ],
)
async def test_events_about_an_item_or_what_stands_between_it_and_its_pods(
    item: str, group: str, kind: Any, name: Any, counts: bool
) -> None:
    words = await words_of(read_of(item, group), event(kind, name))
    assert words == (f"{kind} default/{name}: “forbidden”" if counts else "")


@pytest.mark.parametrize(
    ("times", "counts"),
    [
        ({"lastTimestamp": "2026-01-01T12:00:00Z"}, True),  # in the second of the attempt
        ({"lastTimestamp": "2026-01-01T11:59:59Z"}, False),
        ({"lastTimestamp": None, "eventTime": "2026-01-01T12:00:00.900000Z"}, True),
        ({"lastTimestamp": None, "eventTime": "2026-01-01T11:00:00.000000Z"}, False),
        (
            {
                "lastTimestamp": None,
                "eventTime": "2026-01-01T11:00:00.000000Z",
                "series": {"count": 7, "lastObservedTime": "2026-01-01T12:00:01.000000Z"},
            },
            True,
        ),
        ({"lastTimestamp": None, "firstTimestamp": NOON}, True),
        ({"lastTimestamp": None}, False),
        ({"lastTimestamp": 7, "series": []}, False),
    ],
)
async def test_events_of_earlier_attempts_do_not_count(times: Json, counts: bool) -> None:
    old = event(metadata={"name": "x.1"}) | times
    words = await words_of(read_of("Job", since="2026-01-01T12:00:00.500000Z"), old)
    assert bool(words) is counts


async def test_the_latest_counts() -> None:
    def at(second: int, message: str, name: str = "x.1") -> Json:
        time = f"2026-01-01T12:00:{second:02}Z"
        return event(metadata={"name": name}, lastTimestamp=time, message=message)

    latest = "Job default/x: “b”"
    assert await words_of(read_of("Job"), at(1, "a"), at(3, "b"), at(2, "c")) == latest
    same = [at(1, "a", "x.18a5f"), at(1, "b", "x.18a60"), at(1, "c", "x.18a00")]
    assert await words_of(read_of("Job"), *same) == latest


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("a\n  b\tc", "Job default/x: “a b c”"),
        ("(combined from similar events): exceeded quota", "Job default/x: “exceeded quota”"),
        ("", "Job default/x: “FailedCreate”"),
        ("y" * 1000, f"Job default/x: “{'y' * 495}”"),
    ],
)
async def test_the_words(message: str, words: str) -> None:
    assert await words_of(read_of("Job"), event(message=message)) == words


@pytest.mark.parametrize("body", [{}, {"items": None}, {"items": "x"}, {"items": [None, 7, []]}])
async def test_an_answer_that_is_no_list_has_no_words(body: Json) -> None:
    rig = Rig(lambda _: Response(200, body))
    await rig.run(read_of("Job"))
    assert rig.shell.events == [WarningsRead("uid-a", 3, 1, "")]


async def test_a_failure_is_logged_once_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(lambda _: status(403, "Forbidden"))
    for _ in range(3):
        await rig.run(read_of("Job"))
    assert len(rig.api.requests) == 3
    assert rig.shell.events == [WarningsRead("uid-a", 3, 1, "")] * 3
    (logged,) = [one for one in caplog.messages if "Events" in one]
    assert "Job default/x" in logged
    assert "403" in logged


async def test_without_a_namespace_nothing_is_asked() -> None:
    rig = Rig(lambda _: Response(200, {"items": []}))
    nowhere = ObjectRef("", "v1", "namespaces", "Namespace", "", "x")
    await rig.run(ReadWarnings("uid-a", 3, 1, nowhere, 0))
    assert rig.shell.events == [WarningsRead("uid-a", 3, 1, "")]
    assert rig.api.requests == []


async def test_no_dispatch_waits_for_it() -> None:
    rig = Rig(lambda _: Response(200, {"items": []}))
    gate = asyncio.Event()
    rig.api.fail("GET", "", held(gate))
    await rig.run(read_of("Job"))
    assert (rig.executor.lanes["report"].running, rig.executor.lanes["dispatch"].running) == (1, 0)
    gate.set()
    await rig.rest()
    assert rig.shell.events == [WarningsRead("uid-a", 3, 1, "")]


class Answering:
    """A client that has one answer."""

    def __init__(self, answer: Json) -> None:
        self.answer = answer

    async def read(self, request: Request, timeout: float) -> Json:
        return self.answer


KEYS = ("items", "metadata", "name", "involvedObject", "kind", "reason", "message", "series")
GOOD = [{"items": [event(), event("Pod", "x-0"), event(series={"lastObservedTime": NOON})]}]


@given(st.one_of(st.dictionaries(st.sampled_from(KEYS), shaped(*KEYS)), mutated(GOOD)))
def test_no_event_raises(answer: Any) -> None:
    client: Any = Answering(json.loads(json.dumps(answer)) if isinstance(answer, dict) else {})
    words = asyncio.run(PodWarnings(client).read(read_of("Job")))
    assert len(words) <= 512


@pytest.mark.parametrize(
    ("reason", "kind", "name", "counts"),
    [
        ("Preempted", "Pod", "x", True),
        ("TaintManagerEviction", "Pod", "x", True),
        ("Evicted", "Pod", "x", True),
        ("Killing", "Pod", "x", False),
        ("FailedCreate", "Pod", "x", False),
        ("Preempted", "Pod", "x-1", False),
    ],
)
async def test_events_say_what_took_a_bare_pod_away(
    reason: str, kind: str, name: str, *, counts: bool
) -> None:
    told = await words_of(read_of("Pod", ""), event(kind, name, reason=reason, type="Normal"))
    assert told == ("Pod default/x: “forbidden”" if counts else "")


@pytest.mark.parametrize(
    ("reason", "uid", "counts"),
    [
        ("FailedMount", "uid-x", True),
        ("FailedAttachVolume", "uid-x", True),
        ("FailedCreatePodSandBox", "uid-x", True),
        ("FailedPrepareDynamicResources", "uid-x", True),
        ("FailedMount", "uid-of-one-before", False),
        ("FailedMount", None, False),
        ("FailedScheduling", "uid-x", False),
        ("Preempted", "uid-x", False),
        ("Unhealthy", "uid-x", False),
        ("BackOff", "uid-x", False),
    ],
)
async def test_events_say_why_a_pod_is_not_started(reason: str, uid: Any, *, counts: bool) -> None:
    about = {"kind": "Pod", "name": "x", "namespace": "default", "uid": uid}
    rig = Rig(lambda _: Response(200, {"items": [event(reason=reason, involvedObject=about)]}))
    await rig.run(replace(read_of("Pod", ""), pod="uid-x"))
    words = "Pod default/x: “forbidden”" if counts else ""
    assert rig.shell.events == [WarningsRead("uid-a", 3, 1, words, "uid-x")]


async def test_events_about_the_pod_alone_are_asked_for() -> None:
    rig = Rig(lambda _: Response(200, {"metadata": {}, "items": []}))
    await rig.run(read_of("Pod", ""))
    (request,) = rig.api.requests
    assert request.params["fieldSelector"] == "involvedObject.kind=Pod,involvedObject.name=x"
