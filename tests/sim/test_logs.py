"""Logs of pods: which requests are refused, as a real API server refuses them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from mcad.kube.port import Request
from mcad.kube.types import Json
from mcad.sim.serving.server import SimApi
from tests.controlplane.controlplane import ControlPlane
from tests.sim.worlds import World, pod, virtually, world

SILENCE = b"(simulated pods run nothing, so there is nothing they could have written)\n"


def two(name: str, **spec: Any) -> Json:
    """A pod with two containers."""
    made = pod(name, **spec)
    containers = made["spec"]["containers"]
    containers.append(containers[0] | {"name": "other"})
    return made


async def read(w: World, name: str, **params: str) -> tuple[int, Any]:
    """Status, and the text or the message."""
    path = f"/api/v1/namespaces/default/pods/{name}/log"
    answer = await SimApi(w.registry).request(Request("GET", path, params))
    body = answer.body
    return answer.status, body if answer.status < 300 else answer.json()["message"]


@virtually
async def test_a_container_that_has_started_has_one_line() -> None:
    async with world("n1") as w:
        w.create("Pod", two("a"))
        w.pod("slow", annotations={"sim.mcad.dev/start-delay": "1h"})
        await w.settle()
        assert await read(w, "a", container="main") == (200, SILENCE)
        assert await read(w, "a", container="other", tailLines="5") == (200, SILENCE)
        assert await read(w, "a", container="other", tailLines="0") == (200, b"")
        status, message = await read(w, "slow")
        assert status == 400
        assert message == 'container "main" in pod "slow" is waiting to start: ContainerCreating'
        assert (await read(w, "nothing"))[0] == 404


NOWHERE = {"nodeSelector": {"is": "nowhere"}}
CASES = ({}, {"container": "x"}, {"container": "main"})


@pytest.mark.controlplane
@pytest.mark.parametrize("params", CASES, ids=str)
def test_refusals_are_those_of_a_real_api_server(plane: ControlPlane, params: Json) -> None:
    path = "/api/v1/namespaces/default/pods"
    plane.request("POST", path, two("talks", **NOWHERE))
    real, body = plane.raw("GET", f"{path}/talks/log?{urlencode(params)}")

    answers: list[tuple[int, Any]] = []

    @virtually
    async def ask() -> None:
        async with world("n1") as w:
            w.create("Pod", two("talks", **NOWHERE))
            answers.append(await read(w, "talks", **params))

    ask()
    status, said = answers[0]
    assert status == real
    assert said == b"" == body if real < 300 else said.encode() in body
