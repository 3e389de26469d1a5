"""Sends a script to one server and keeps what it answers."""

from __future__ import annotations

import json
import traceback
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from mcad.kube.clock import Clock
from mcad.kube.errors import ApiError
from mcad.kube.port import Api, Request, Response
from tests.contract.script import Script, Step, resolve

HEADERS = ("Warning", "Retry-After")
POLL_S = 0.05
PATIENCE_S = 45.0
STREAM_IDLE_S = 60.0


@dataclass(frozen=True)
class Answer:
    """What came back: status, the headers that clients read, the decoded body, and when."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)
    at_us: int = 0


async def run(
    script: Script, api: Api, clock: Clock, compact: Callable[[], Awaitable[None]]
) -> list[Answer]:
    """The answers, one per step, each sent when the one before was answered."""
    await _prepare(script, api)
    answers: list[Answer] = []
    values: dict[int, Any] = {}
    for step in script.steps:
        if step.compacts:
            await compact()
            answer = Answer(0, None)
        else:
            answer = await _answer(api, clock, step, values)
        answers.append(answer)
        values[step.number] = answer.body
    return answers


async def _prepare(script: Script, api: Api) -> None:
    """The script's namespace, with the account that every pod there will run as."""
    namespace = {"metadata": {"name": script.namespace}}
    # No token: its volume in each pod is a difference of its own (see known.py).
    account = {"metadata": {"name": "default"}, "automountServiceAccountToken": False}
    answer = await api.request(Request("POST", "/api/v1/namespaces", body=namespace))
    assert answer.status == 201, answer.json()
    if not script.is_lively:  # a controller makes it otherwise
        path = f"/api/v1/namespaces/{script.namespace}/serviceaccounts"
        answer = await api.request(Request("POST", path, body=account))
        assert answer.status == 201, answer.json()


async def _answer(api: Api, clock: Clock, step: Step, values: dict[int, Any]) -> Answer:
    deadline = clock.monotonic() + PATIENCE_S
    while True:
        request = _request(step, values)
        got = await (_watch(api, request) if step.is_watch else _ask(api, request))
        if step.until is None or step.until(got.status, got.body) or clock.monotonic() > deadline:
            return Answer(got.status, got.body, got.headers, clock.now_us())
        await clock.sleep(POLL_S)


def _request(step: Step, values: dict[int, Any]) -> Request:
    body = resolve(step.body, values)
    if body is not None and not isinstance(body, bytes | dict):
        body = json.dumps(body).encode()
    params = {key: str(value) for key, value in resolve(step.params, values).items()}
    path = resolve(step.path, values)
    return Request(step.method, path, params, body, step.content_type, step.headers)


async def _ask(api: Api, request: Request) -> Answer:
    try:
        response = await api.request(request, 40.0)
    except Exception as error:  # noqa: BLE001 - a server that breaks answers, too: differently
        return Answer(-1, "".join(traceback.format_exception(error)))
    headers = {name: response.headers[name] for name in HEADERS if name in response.headers}
    body = _decoded(response)
    if isinstance(body, str):
        headers["Content-Type"] = response.headers.get("Content-Type", "")
    return Answer(response.status, body, headers)


def _decoded(response: Response) -> Any:
    if isinstance(response.body, dict):
        return response.body
    try:
        return json.loads(response.body)
    except ValueError:
        return response.body.decode()


async def _watch(api: Api, request: Request) -> Answer:
    try:
        async with aclosing(api.stream(request, STREAM_IDLE_S)) as lines:
            return Answer(200, [json.loads(line) async for line in lines])
    except ApiError as error:
        told = {"reason": error.reason, "message": error.message, "details": error.details}
        return Answer(error.status, told)
    except Exception as error:  # noqa: BLE001 - as above
        return Answer(-1, "".join(traceback.format_exception(error)))
