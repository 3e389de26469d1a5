"""Events: valid by the server's strict rules, said once, bounded, and never in the way."""

import asyncio
import re

import pytest

from mcad.kube.recorder import Counts, Limits, Recorder, Regarding, Reporter
from tests.fakeapi import FakeApi, content, refuse, reset
from tests.kube.support import eventually, pod

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
REPORTER = Reporter("mcad.codeflare.dev/dispatcher", "mcad-7f9c")
WRAPPER = Regarding("workload.codeflare.dev/v1beta2", "AppWrapper", "default", "aw", "u-1", "17")


@pytest.fixture
def recorder(server, client):
    return Recorder(client, REPORTER)


def say(recorder: Recorder, note: str = "waits", uid: str = "u-1", **kwargs) -> None:
    about = Regarding("v1", "Pod", "default", "aw", uid)
    recorder.record(about, "Refused", note, action="Dispatch", **kwargs)


def check(event: dict) -> None:
    """The rules of pkg/apis/core/validation/events.go for new events.k8s.io/v1 Events."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["eventTime"])
    assert re.fullmatch(r"[a-z0-9.-]+/[A-Za-z0-9._-]{1,63}", event["reportingController"])
    for word in ("reportingInstance", "action", "reason"):
        assert 0 < len(event[word].encode()) <= 128
    assert len(event["note"].encode()) <= 1024
    assert event["type"] in {"Normal", "Warning"}
    assert event["metadata"]["namespace"] == event["regarding"].get("namespace", "default")
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", event["metadata"]["name"])
    deprecated = {"series", "firstTimestamp", "lastTimestamp", "count", "source"}
    assert not deprecated & event.keys()
    assert not [key for key in event if key.startswith("deprecated")]


async def written(server: FakeApi, recorder: Recorder, path: str = EVENTS) -> list[dict]:
    await recorder.drain()
    events = [content(request) for request in server.seen("POST", path)]
    for event in events:
        check(event)
    return events


class TestContent:
    async def test_an_event(self, server, recorder):
        recorder.record(WRAPPER, "Dispatched", "All 3 items exist.", action="Dispatch")
        (event,) = await written(server, recorder)
        name = event["metadata"].pop("name")
        assert re.fullmatch(r"aw\.[0-9a-f]{16}", name)
        assert event == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": "default"},
            "eventTime": "2027-01-15T08:01:40.000000Z",
            "reportingController": "mcad.codeflare.dev/dispatcher",
            "reportingInstance": "mcad-7f9c",
            "action": "Dispatch",
            "reason": "Dispatched",
            "note": "All 3 items exist.",
            "type": "Normal",
            "regarding": {
                "apiVersion": "workload.codeflare.dev/v1beta2",
                "kind": "AppWrapper",
                "namespace": "default",
                "name": "aw",
                "uid": "u-1",
                "resourceVersion": "17",
            },
        }
        assert recorder.counts == Counts(written=1)

    async def test_warnings(self, server, recorder):
        say(recorder, warning=True)
        assert (await written(server, recorder))[0]["type"] == "Warning"

    @pytest.mark.parametrize(
        "note", ["x" * 5000, "ä" * 600, "\ud800" * 2000, "", "\x00\n" * 900], ids=range(5)
    )
    async def test_notes_are_cut_to_1024_bytes(self, server, recorder, note):
        say(recorder, note)
        (event,) = await written(server, recorder)
        assert event["note"].endswith("...") == bool(note)

    async def test_long_words_are_cut(self, server, client):
        recorder = Recorder(client, Reporter("a.b/c", "i" * 500))
        recorder.record(WRAPPER, "R" * 500, "n", action="A" * 500)
        await written(server, recorder)

    async def test_cluster_scoped_objects_are_spoken_of_in_default(self, server, recorder):
        recorder.record(Regarding("v1", "Node", "", "n1", "u"), "Gone", "n", action="Watch")
        (event,) = await written(server, recorder)
        assert event["metadata"]["namespace"] == "default"
        assert "namespace" not in event["regarding"]

    async def test_names_are_unique_deterministic_and_short(self, server, recorder, client):
        long = Regarding("v1", "Pod", "default", "n" * 235 + "." + "m" * 17, "u")
        for note in "abc":
            recorder.record(long, "R", note, action="A")
        names = [event["metadata"]["name"] for event in await written(server, recorder)]
        again = Recorder(client, REPORTER)
        for note in "abc":
            again.record(long, "R", note, action="A")
        assert [event["metadata"]["name"] for event in again._queue._queue] == names
        assert len(set(names)) == 3

    def test_a_reference_to_an_object(self):
        obj = pod("a")
        obj["metadata"] |= {"uid": "u", "resourceVersion": "5"}
        assert Regarding.of(obj) == Regarding("v1", "Pod", "default", "a", "u", "5")


class TestRestraint:
    async def test_equal_events_are_written_once_per_interval(self, server, recorder, clock):
        for _ in range(5):
            say(recorder)
            clock.now += 100
        say(recorder, "another note")
        say(recorder, uid="another object")
        clock.now += 100
        say(recorder)
        assert len(await written(server, recorder)) == 4
        assert recorder.counts == Counts(written=4, repeated=4)

    async def test_a_chatty_object_is_cut_short_and_recovers(self, server, recorder, clock):
        for number in range(100):
            say(recorder, f"note {number}")
        say(recorder, uid="another object")
        assert len(await written(server, recorder)) == 26
        assert recorder.counts.limited == 75
        clock.now += 300
        for number in range(5):
            say(recorder, f"later {number}")
        assert len(await written(server, recorder)) == 27

    async def test_everything_is_bounded(self, client):
        recorder = Recorder(client, REPORTER, Limits(objects_max=10, queue_max=20))
        for number in range(100):
            say(recorder, uid=f"u{number}")
        assert recorder.counts == Counts(dropped=80)
        assert len(recorder._accounts) == 10


class TestFailures:
    async def test_failures_are_counted_and_never_raised(self, server, recorder):
        server.fail("POST", EVENTS, refuse(403), reset, refuse(404))
        for number in range(4):
            say(recorder, f"note {number}")
        await recorder.drain()
        assert recorder.counts == Counts(written=1, failed=3)

    async def test_running_writes_in_order_and_stops_when_cancelled(self, server, recorder):
        task = asyncio.ensure_future(recorder.run())
        for number in range(10):
            say(recorder, f"note {number}")
        await eventually(lambda: recorder.counts.written == 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        notes = [content(request)["note"] for request in server.seen("POST")]
        assert notes == [f"note {number}" for number in range(10)]


class TestUnderLoad:
    """Where writes queue up, an Event waits for a moment and a later one takes its place."""

    async def test_the_later_one_of_an_object_is_written(self, server, recorder):
        recorder.is_busy = lambda: True
        say(recorder, "waits")
        say(recorder, "runs")
        say(recorder, "waits", uid="u-2")
        notes = sorted(event["note"] for event in await written(server, recorder))
        assert notes == ["runs", "waits"]
        assert (recorder.counts.written, recorder.counts.overtaken) == (2, 1)

    async def test_a_warning_is_written_at_once_and_takes_no_place(self, server, recorder):
        recorder.is_busy = lambda: True
        say(recorder, "waits")
        say(recorder, "is refused", warning=True)
        say(recorder, "fails", warning=True)
        assert recorder._queue.qsize() == 2
        assert len(await written(server, recorder)) == 3

    @pytest.mark.parametrize(("is_busy", "moment_s"), [(True, 0.01), (False, 1e6)])
    async def test_it_is_written_after_the_moment_or_the_load(
        self, server, client, is_busy, moment_s
    ):
        recorder = Recorder(client, REPORTER, Limits(moment_s=moment_s, look_s=0.01))
        running = asyncio.ensure_future(recorder.run())
        recorder.is_busy = lambda: True
        say(recorder, "waits")
        recorder.is_busy = lambda: is_busy
        say(recorder, "runs")
        await eventually(lambda: recorder.counts.written == 1)
        say(recorder, "ends")
        await eventually(lambda: recorder.counts.written == 2)
        running.cancel()
        notes = [content(request)["note"] for request in server.seen("POST", EVENTS)]
        assert notes == ["runs", "ends"]

    async def test_no_more_wait_than_the_queue_may_hold(self, server, client):
        recorder = Recorder(client, REPORTER, Limits(queue_max=3))
        recorder.is_busy = lambda: True
        for number in range(5):
            say(recorder, "waits", uid=f"u-{number}")
        assert (len(recorder._held), recorder._queue.qsize()) == (3, 2)
