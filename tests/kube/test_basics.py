"""The parts without I/O: clock, errors, Retry-After, backoff, line splitting, paths."""

import json
import time
from random import Random
from typing import Any

import pytest
from multidict import CIMultiDict

from mcad.kube import clock as clock_module
from mcad.kube.clock import Clock, RealClock
from mcad.kube.errors import (
    RETRY_AFTER_S_MAX,
    ApiError,
    BadAnswer,
    ConnectionLost,
    KubeError,
    RequestTimeout,
    api_error,
    status_error,
)
from mcad.kube.lines import LineSplitter
from mcad.kube.port import Response
from mcad.kube.resource import Resource
from mcad.kube.retry import (
    WATCH_PACE,
    Backoff,
    Retrier,
    idempotent,
    not_processed,
    parse_retry_after,
)
from tests.kube.support import NODES, PODS, WRAPPERS, FakeClock


class TestClock:
    async def test_the_real_clock_is_a_clock(self):
        clock: Clock = RealClock()
        before = clock.monotonic()
        await clock.sleep(0.001)
        assert clock.monotonic() > before
        assert abs(clock.now_us() - time.time_ns() // 1000) < 1_000_000

    def test_the_time_in_which_the_machine_slept_counts(self, monkeypatch):
        told = {time.CLOCK_MONOTONIC: 5_000_000_000, time.CLOCK_BOOTTIME: 65_000_000_000}
        monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: told[clock])
        assert RealClock().monotonic() == 65.0

    @pytest.mark.parametrize("hours", [1, -1])
    def test_a_step_of_the_wall_clock_moves_nothing_and_is_logged_once(
        self, monkeypatch, caplog, hours
    ):
        wall, monotonic = 5_000_000_000, 1_000_000
        monkeypatch.setattr(clock_module, "_wall_us", lambda: wall)
        monkeypatch.setattr(clock_module, "_monotonic_us", lambda: monotonic)
        clock = RealClock()
        assert clock.now_us() == 5_000_000_000
        wall, monotonic = wall + (1 + hours * 3600) * 1_000_000, 2_000_000
        assert clock.now_us() == clock.now_us() == 5_001_000_000
        assert [f"seconds={hours * 3600:+d}:" in line for line in caplog.messages] == [True]
        wall, monotonic = wall - (hours * 3600 - 1) * 1_000_000, 3_000_000  # set right again
        assert clock.now_us() == 5_002_000_000
        assert len(caplog.messages) == 2


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "reason", "true"),
        [
            (401, "Unauthorized", {"unauthorized"}),
            (403, "Forbidden", {"forbidden"}),
            (404, "NotFound", {"not_found"}),
            (409, "AlreadyExists", {"already_exists"}),
            (409, "Conflict", {"conflict"}),
            (410, "Expired", {"gone"}),
            (422, "Invalid", {"invalid"}),
            (429, "TooManyRequests", {"throttled", "transient"}),
            (500, "InternalError", {"transient"}),
            (501, "NotImplemented", set()),
            (504, "Timeout", {"transient"}),
        ],
    )
    def test_each_answer_has_its_properties_and_no_others(self, status, reason, true):
        body = {"kind": "Status", "code": status, "reason": reason, "message": "why"}
        error = api_error(status, json.dumps(body).encode())
        names = {
            "already_exists", "conflict", "forbidden", "gone", "invalid", "not_found",
            "throttled", "transient", "unauthorized", "namespace_terminating",
        }  # fmt: skip
        assert {name for name in names if getattr(error, name)} == true
        assert str(error) == f"{status} {reason}: why"

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"<html>502 Bad Gateway</html>",
            b'{"kind":"Status","message":"trunc',
            b"[1, 2]",
            b"null",
            b'"text"',
            b"\xff\xfe\x00",
            b"[" * 100_000,
            b'{"kind":"Status","code":"x","details":[],"message":7}',
            b'{"kind":"Pod"}',
            {"kind": "Pod"},
        ],
        ids=lambda body: repr(body)[:40],
    )
    def test_any_body_becomes_an_api_error(self, body: Any):
        error = api_error(502, body, retry_after=3.0)
        assert (error.status, error.retry_after, error.transient) == (502, 3.0, True)
        assert len(str(error)) < 9000

    def test_html_keeps_the_proxys_words(self):
        assert "Bad Gateway" in api_error(502, b"<html>502 Bad Gateway</html>").message

    def test_the_status_object_brings_retry_after_and_causes(self):
        details = {"retryAfterSeconds": 7, "causes": [{"reason": "NamespaceTerminating"}]}
        error = status_error({"code": 403, "reason": "Forbidden", "details": details})
        assert (error.retry_after, error.namespace_terminating) == (7.0, True)

    def test_in_band_errors_take_their_own_code(self):
        assert status_error({"code": 410}).gone
        assert status_error({}).status == 500

    def test_unknown_outcomes_are_transient_kube_errors(self):
        for error in (ConnectionLost("x"), RequestTimeout("x"), BadAnswer("x")):
            assert isinstance(error, KubeError)
            assert error.transient

    def test_a_body_of_success_must_be_an_object(self):
        assert Response(200, b'{"a":1}').json() == Response(200, {"a": 1}).json() == {"a": 1}
        for body in (b"", b"[]", b'{"a":', b"<html>", b"[" * 100_000):
            with pytest.raises(BadAnswer):
                Response(200, body).json()


class TestRetryAfter:
    NOW_US = 1_445_412_480_000_000  # Wed, 21 Oct 2015 07:28:00 GMT

    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            (None, None),
            ("", None),
            ("0", 0.0),
            ("1", 1.0),
            (" 120 ", 120.0),
            ("1.5", None),
            ("-3", None),
            ("1e3", None),
            ("soon", None),
            ("\u0663", None),  # an Arabic digit
            ("9" * 5000, RETRY_AFTER_S_MAX),
            ("99999", RETRY_AFTER_S_MAX),
            ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
            ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
            ("Wed, 21 Oct 2015 09:28:30 +0200", 30.0),
            ("Wednesday, 21-Oct-15 07:28:30 GMT", 30.0),
            ("Wed, 21 Oct 2115 07:28:00 GMT", RETRY_AFTER_S_MAX),
            ("Wed, 99 Oct 2015 07:28:00 GMT", None),
        ],
    )
    def test_parse_retry_after(self, value, seconds):
        assert parse_retry_after(value, self.NOW_US) == seconds


class TestBackoff:
    def test_it_doubles_to_its_limit_with_jitter_upwards(self):
        backoff = Backoff(FakeClock(), Random(7), WATCH_PACE)
        delays = [backoff.delay() for _ in range(9)]
        bases = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]
        assert all(base <= delay <= 2 * base for base, delay in zip(bases, delays, strict=True))
        assert len({delay / base for base, delay in zip(bases, delays, strict=True)}) == 9

    async def test_it_starts_again_after_two_quiet_minutes(self):
        clock = FakeClock()
        backoff = Backoff(clock, Random(7), WATCH_PACE)
        for _ in range(6):
            await clock.sleep(backoff.delay())
        clock.now += 119.0
        assert backoff.delay() >= 30.0
        clock.now += 60.0 + 121.0  # the wait itself is no quiet time
        assert backoff.delay() <= 1.6

    def test_retry_after_is_a_lower_bound(self):
        assert Backoff(FakeClock(), Random(7), WATCH_PACE).delay(12.0) == 12.0


class TestRetrier:
    async def attempt(self, clock, errors, again, **kwargs):
        timeouts = []

        async def attempt(timeout_s: float) -> str:
            timeouts.append(timeout_s)
            if errors:
                raise errors.pop(0)
            return "done"

        run = Retrier(clock, Random(7)).run
        return await run(attempt, again=again, **kwargs), timeouts

    async def test_reads_are_repeated_whatever_may_pass(self):
        errors = [ApiError(500), ConnectionLost("x"), ApiError(429), RequestTimeout("x")]
        result, timeouts = await self.attempt(
            FakeClock(), errors, idempotent, budget_s=30.0, attempt_s=5.0
        )
        assert result == "done"
        assert timeouts == [5.0] * 5

    @pytest.mark.parametrize(
        "error", [ApiError(404), ApiError(403), ApiError(501), ApiError(410)], ids=str
    )
    async def test_reads_are_not_repeated_where_waiting_does_not_help(self, error):
        clock = FakeClock()
        with pytest.raises(ApiError):
            await self.attempt(clock, [error], idempotent, budget_s=30.0)
        assert clock.sleeps == []

    async def test_writes_wait_as_long_as_the_server_says(self):
        clock = FakeClock()
        errors: list[KubeError] = [ApiError(429, retry_after=3.0)]
        _, timeouts = await self.attempt(clock, errors, not_processed, budget_s=30.0)
        assert clock.sleeps == [3.0]
        assert timeouts == [30.0, 27.0]

    async def test_an_attempt_never_gets_more_than_is_left(self):
        errors: list[KubeError] = [ApiError(429, retry_after=2.0)]
        _, timeouts = await self.attempt(
            FakeClock(), errors, idempotent, budget_s=3.0, attempt_s=5.0
        )
        assert timeouts == [3.0, 1.0]

    async def test_it_gives_up_within_the_budget(self):
        clock = FakeClock()
        with pytest.raises(ApiError):
            await self.attempt(clock, [ApiError(500)] * 999, idempotent, budget_s=30.0)
        assert 15.0 < sum(clock.sleeps) < 30.0
        assert len(clock.sleeps) < 15


class TestLines:
    def test_lines_come_out_whatever_the_chunks(self):
        text = b'{"a":1}\n\n{"b":"\xc3\xa4"}\r\n{"c":3}\nrest'
        for size in range(1, len(text) + 1):
            splitter = LineSplitter()
            chunks = [text[at : at + size] for at in range(0, len(text), size)]
            lines = [line for chunk in chunks for line in splitter.feed(chunk)]
            assert [json.loads(line) for line in lines] == [{"a": 1}, {"b": "ä"}, {"c": 3}]

    def test_a4_splitting_is_linear_in_lines_per_chunk_and_chunks_per_line(self):
        def seconds(*chunks: bytes) -> float:
            started = time.process_time()
            splitter = LineSplitter()
            for chunk in chunks:
                splitter.feed(chunk)
            return time.process_time() - started

        assert seconds(b"x\n" * 500_000) < 1.0  # a quadratic splitter needs minutes
        assert seconds(*[b"x" * 100] * 300_000, b"\n") < 1.0

    def test_a_line_has_a_limit(self):
        splitter = LineSplitter(line_bytes_max=10)
        assert splitter.feed(b"0123456789") == []
        with pytest.raises(BadAnswer):
            splitter.feed(b"x")

    def test_the_limit_is_one_of_lines_not_of_streams(self):
        splitter = LineSplitter(line_bytes_max=10)
        for _ in range(5):
            assert splitter.feed(b"6789\n012345") != [b""]


class TestResource:
    def test_paths(self):
        assert PODS.path() == "/api/v1/pods"
        assert PODS.path("ns", "a.b") == "/api/v1/namespaces/ns/pods/a.b"
        assert NODES.path("ignored", "n1") == "/api/v1/nodes/n1"
        assert (
            WRAPPERS.path("ns", "aw", "status")
            == "/apis/workload.codeflare.dev/v1beta2/namespaces/ns/appwrappers/aw/status"
        )
        assert WRAPPERS.api_version == "workload.codeflare.dev/v1beta2"
        assert Resource("rbac", "v1", "roles", "Role").path("ns", "a:b") == (
            "/apis/rbac/v1/namespaces/ns/roles/a%3Ab"
        )

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../../nodes/n", "%2e%2e"])
    def test_a_name_never_reaches_another_path(self, name):
        with pytest.raises(ApiError) as caught:
            PODS.path("ns", name)
        assert caught.value.invalid
        with pytest.raises(ApiError):
            PODS.path(name)

    def test_a_namespaced_object_is_never_addressed_without_namespace(self):
        with pytest.raises(ApiError):
            PODS.path(None, "a")


@pytest.mark.parametrize(
    ("headers", "warnings"),
    [
        ({}, ()),
        ({"Warning": '299 - "old"'}, ("old",)),
        (
            {"warning": r'299 - "unknown field \"spec.x\"", 299 k8s "a, b"'},
            ('unknown field "spec.x"', "a, b"),
        ),
        (CIMultiDict([("Warning", '299 - "one"'), ("Warning", '299 - "two"')]), ("one", "two")),
        ({"Warning": "nonsense"}, ()),
    ],
)
def test_warnings_of_an_answer(headers: Any, warnings: tuple[str, ...]) -> None:
    assert Response(201, {}, headers).warnings == warnings
