"""The API port over HTTP: what becomes of bytes, tokens, watches and the end of the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from random import Random
from typing import Any

import aiohttp
import pytest

from mcad.kube.clock import RealClock
from mcad.kube.errors import ApiError
from mcad.kube.port import Request, Response
from mcad.sim.registry import Registry
from mcad.sim.serving.serve import BODY_MAX, ApiServerHttp, kubeconfig
from mcad.sim.serving.server import SimApi

PODS = "/api/v1/namespaces/default/pods"


class Echo:
    """An Api that answers with what it was asked, and watches that can be counted."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.watching = 0
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.refusal: ApiError | None = None
        self.answer: Response | BaseException | None = None

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        self.asked.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer or Response(200, {"kind": "Echo"})

    async def stream(self, request: Request, idle_timeout: float) -> AsyncGenerator[bytes, None]:
        self.asked.append(request)
        if self.refusal is not None:
            raise self.refusal
        self.watching += 1
        try:
            while (line := await self.lines.get()) is not None:
                yield line
        finally:
            self.watching -= 1


class Served:
    def __init__(self, api: Any, token: str = "") -> None:
        self.server = ApiServerHttp(api, token=token)
        self.url = ""
        self.session = aiohttp.ClientSession()

    async def ask(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        async with self.session.request(method, self.url + path, **options) as response:
            text = await response.text()
            is_json = response.content_type == "application/json"
            return response.status, json.loads(text) if is_json and text else text

    async def refusal(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        """Status and reason of a refusal."""
        status, answer = await self.ask(method, path, **options)
        assert answer["kind"] == "Status"
        return status, answer["reason"]


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
async def served(echo: Echo) -> AsyncIterator[Served]:
    async with serve(echo) as one:
        yield one


@asynccontextmanager
async def serve(api: Any, token: str = "") -> AsyncIterator[Served]:
    served = Served(api, token)
    served.url = await served.server.start()
    try:
        yield served
    finally:
        await served.session.close()
        await served.server.close()


async def test_a_request_arrives_as_it_was_sent(served: Served, echo: Echo) -> None:
    path = f"{PODS}/a%2Fb?labelSelector=a%20in%20(b%2Cc)&x="
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    url = aiohttp.client.URL(served.url + path, encoded=True)
    async with served.session.put(url, json={"a": 1}, headers=accept) as response:
        assert response.status == 200
    asked = echo.asked[0]
    assert (asked.method, asked.path) == ("PUT", f"{PODS}/a%2Fb")
    assert asked.params == {"labelSelector": "a in (b,c)", "x": ""}
    assert json.loads(asked.body or b"") == {"a": 1}
    assert asked.headers["Accept"] == accept["Accept"]


async def test_yaml_is_read_as_json_and_its_times_stay_texts(served: Served, echo: Echo) -> None:
    body = "kind: Pod\nmetadata: {name: a, when: 2026-01-01T00:00:00Z}\n"
    headers = {"Content-Type": "application/yaml"}
    assert (await served.ask("POST", PODS, data=body, headers=headers))[0] == 200
    assert echo.asked[0].body == {
        "kind": "Pod",
        "metadata": {"name": "a", "when": "2026-01-01T00:00:00Z"},
    }
    assert echo.asked[0].content_type == "application/json"
    for wrong in ("a: [", "- a", "a: &x [1]\nb: *x", "a: !!python/object:os.system {}"):
        told = await served.refusal("POST", PODS, data=wrong, headers=headers)
        assert told == (400, "BadRequest"), wrong
    assert len(echo.asked) == 1


async def test_protobuf_arrives_as_json(served: Served, echo: Echo) -> None:
    about, raw = b"\x0a\x02v1\x12\x06Secret", b"\x0a\x03\x0a\x01s"
    body = b"k8s\x00\x0a" + bytes([len(about)]) + about + b"\x12" + bytes([len(raw)]) + raw
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    assert (await served.ask("POST", PODS, data=body, headers=headers))[0] == 200
    assert echo.asked[0].content_type == "application/json"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    assert echo.asked[0].body == secret
    unknown = body.replace(b"Secret", b"Things")  # whose path is not served either
    assert (await served.ask("POST", PODS, data=unknown, headers=headers))[0] == 200
    assert echo.asked[1].body == {"apiVersion": "v1", "kind": "Things"}
    without_numbers = body.replace(b"\x06Secret", b"\x09Endpoints").replace(
        bytes([len(about)]) + about[:1], bytes([len(about) + 3]) + about[:1], 1
    )
    status, answer = await served.ask("POST", PODS, data=without_numbers, headers=headers)
    assert status == 415
    assert "reads no Endpoints of v1 in protobuf" in answer["message"]
    told = await served.refusal("POST", PODS, data=body[:-1], headers=headers)
    assert told == (400, "BadRequest")


@pytest.mark.parametrize(
    ("method", "content_type"), [("POST", "application/cbor"), ("PUT", "text/plain")]
)
async def test_other_formats_are_refused_with_what_is_taken(
    served: Served, echo: Echo, method: str, content_type: str
) -> None:
    headers = {"Content-Type": content_type}
    status, answer = await served.ask(method, f"{PODS}/a", data=b"x", headers=headers)
    assert (status, answer["reason"]) == (415, "UnsupportedMediaType")
    assert "application/" in answer["message"]
    assert echo.asked == []


async def test_a_body_that_is_too_large_is_refused(served: Served, echo: Echo) -> None:
    headers = {"Content-Type": "application/json"}
    too_large, largest = (BytesIO(b" " * size) for size in (BODY_MAX + 1, BODY_MAX))
    told = await served.refusal("POST", PODS, data=too_large, headers=headers)
    assert told == (413, "RequestEntityTooLarge")
    assert (await served.ask("POST", PODS, data=largest, headers=headers))[0] == 200


async def test_an_error_within_is_a_status_and_the_server_goes_on(
    served: Served, echo: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    echo.answer = KeyError("x")
    assert await served.refusal("GET", PODS) == (500, "InternalError")
    assert "KeyError" in caplog.text
    echo.answer = RecursionError()
    assert (await served.ask("GET", PODS))[0] == 400
    echo.answer = None
    assert (await served.ask("GET", PODS))[0] == 200


async def test_head_is_a_get_without_a_body_and_options_is_refused() -> None:
    async with serve(SimApi(Registry(RealClock(), Random(1)))) as served:
        async with served.session.head(served.url + "/api/v1/namespaces") as response:
            assert response.status == 200
            assert await response.read() == b""
        assert (await served.ask("GET", "/api/v1/namespaces"))[0] == 200
        told = await served.refusal("OPTIONS", "/api/v1/namespaces")
        assert told == (405, "MethodNotAllowed")


async def test_health_is_answered_by_the_server_itself(served: Served, echo: Echo) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/readyz/ping", "/livez?verbose"):
        assert await served.ask("GET", path) == (200, "ok")
    assert echo.asked == []


async def test_web_pages_and_foreign_names_are_refused(served: Served, echo: Echo) -> None:
    strange = (
        {"Origin": "http://example.org"},
        {"Host": "example.org"},
        {"Host": "example.org:80"},
    )
    for headers in strange:
        assert await served.refusal("GET", PODS, headers=headers) == (403, "Forbidden")
    for host in ("localhost:1", "[::1]:1"):
        assert (await served.ask("GET", PODS, headers={"Host": host}))[0] == 200


async def test_with_a_token_nothing_is_served_without_it(echo: Echo) -> None:
    async with serve(echo, token="s3cret") as served:
        for wrong in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Basic s3cret"}):
            assert await served.refusal("GET", PODS, headers=wrong) == (401, "Unauthorized")
        right = {"Authorization": "Bearer s3cret"}
        assert (await served.ask("GET", PODS, headers=right))[0] == 200


async def test_a_watch_sends_each_event_when_it_happens(served: Served, echo: Echo) -> None:
    async with served.session.get(f"{served.url}{PODS}?watch=true") as response:
        assert response.status == 200  # before any event
        for line in (b'{"a":1}', b'{"a":2}'):
            echo.lines.put_nowait(line)
            assert await asyncio.wait_for(response.content.readline(), 5) == line + b"\n"
        echo.lines.put_nowait(None)
        assert await response.content.read() == b""
    assert echo.watching == 0


async def test_a_watch_that_is_refused_is_a_status(served: Served, echo: Echo) -> None:
    echo.refusal = ApiError(410, "Expired", "too old")
    status, answer = await served.ask("GET", f"{PODS}?watch=1")
    assert (status, answer["reason"], answer["message"]) == (410, "Expired", "too old")


async def test_a_watch_ends_with_its_client(served: Served, echo: Echo) -> None:
    response = await served.session.get(f"{served.url}{PODS}?watch=1")
    assert echo.watching == 1
    response.close()
    await _until(lambda: echo.watching == 0)


async def test_a_closing_server_ends_its_watches_at_once(echo: Echo) -> None:
    async with serve(echo) as served:
        async with served.session.get(f"{served.url}{PODS}?watch=1") as response:
            assert echo.watching == 1
            async with asyncio.timeout(0.9):
                await served.server.close()
                assert await response.content.read() == b""
        assert echo.watching == 0
        with pytest.raises(aiohttp.ClientConnectionError):
            await served.ask("GET", PODS)


def test_a_kubeconfig_points_to_the_server() -> None:
    config = kubeconfig("http://127.0.0.1:1", "t")
    (cluster,), (user,), (context,) = (config[key] for key in ("clusters", "users", "contexts"))
    assert config["current-context"] == context["name"]
    assert context["context"] == {"cluster": cluster["name"], "user": user["name"]}
    assert cluster["cluster"]["server"] == "http://127.0.0.1:1"
    assert user["user"] == {"token": "t"}
    assert kubeconfig("http://127.0.0.1:1")["users"][0]["user"] == {}


async def _until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)
