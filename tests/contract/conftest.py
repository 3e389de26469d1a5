"""Both servers' answers, asked for once, and the count of what was compared."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.contract import servers
from tests.contract.all_scripts import OVER_HTTP, SCRIPTS
from tests.contract.servers import Answers
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip

COMPARED = pytest.StashKey[int]()


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """A control plane of the suite's own; its controllers end when they are not needed."""
    with controlplane_or_skip(start_delay_ms=200) as plane:
        yield plane


@dataclass(frozen=True)
class Sides:
    """What each server answered to every script that was selected."""

    real: Answers
    embedded: dict[str, Answers]  # by how it was asked


@pytest.fixture(scope="session")
def sides(request: pytest.FixtureRequest, plane: ControlPlane) -> Sides:
    """Asked once, before the first comparison."""
    parameters = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = {one.params.get("name") for one in parameters if one is not None}
    scripts = [script for name, script in SCRIPTS.items() if name in chosen]
    request.config.stash[COMPARED] = sum(len(script.steps) for script in scripts)
    in_process = servers.embedded(scripts)
    with ThreadPoolExecutor(1) as beside:  # both wait for watches to end, most of their time
        over_http = beside.submit(servers.served, [one for one in scripts if one.name in OVER_HTTP])
        real = servers.real(plane, scripts)
    return Sides(real, {"in process": in_process, "over HTTP": over_http.result()})


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """How much the green stands for."""
    compared = config.stash.get(COMPARED, 0)
    if compared:
        terminalreporter.write_line(f"contract: {compared} requests compared")
