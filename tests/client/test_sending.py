"""What the API server warns of when an AppWrapper is created reaches the user."""

from __future__ import annotations

import asyncio
import warnings
from random import Random

import pytest

from mcad.client.errors import McadWarning
from mcad.client.manifests.sending import send
from mcad.kube.client import Client
from mcad.kube.clock import RealClock
from mcad.kube.port import Request, Response
from tests.fakeapi import FakeApi
from tests.manifests import components, pod

POLICY = "Validation failed for ValidatingAdmissionPolicy 'mcad-warnings' with binding 'mine': "


def sent(*told: str) -> list[str]:
    """The warnings of one creation, where the API server warns of this."""
    one = components("train", pod("p"))
    one["metadata"]["namespace"] = "team"
    header = ", ".join(f'299 - "{text}"' for text in told)

    async def answer(_: Request) -> Response:
        return Response(201, one, {"Warning": header} if told else {})

    server = FakeApi()
    server.fail_always("POST", "/appwrappers$", answer)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = asyncio.run(send(Client(server, RealClock(), Random(1)), one))
    assert made == one
    assert {each.category for each in caught} <= {McadWarning}
    return [str(each.message) for each in caught]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ((), []),
        (('unknown field \\"spec.x\\"',), ['team/train: unknown field "spec.x"']),
        ((f"{POLICY}Job j is odd.", "old"), ["team/train: Job j is odd.", "team/train: old"]),
    ],
)
def test_warnings_name_the_appwrapper_and_not_the_policy(
    told: tuple[str, ...], said: list[str]
) -> None:
    assert sent(*told) == said
