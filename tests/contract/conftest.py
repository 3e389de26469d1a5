"""Both servers' answers, asked for once, and the count of what was compared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract import servers
from tests.contract.all_scripts import SCRIPTS
from tests.contract.servers import Answers
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip

COMPARED = pytest.StashKey[int]()


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """A control plane of the suite's own; its controllers end when they are not needed."""
    with controlplane_or_skip() as plane:
        yield plane


@pytest.fixture(scope="session")
def answers(request: pytest.FixtureRequest, plane: ControlPlane) -> tuple[Answers, Answers]:
    """What the real and the embedded server answered to every script that was selected."""
    chosen = {
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and "name" in getattr(item, "fixturenames", ())
        and hasattr(item, "callspec")
    }
    scripts = [script for name, script in SCRIPTS.items() if name in chosen]
    found = servers.real(plane, scripts), servers.embedded(scripts)
    request.config.stash[COMPARED] = sum(len(script.steps) for script in scripts)
    return found


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """The figure that the README quotes."""
    compared = config.stash.get(COMPARED, 0)
    if compared:
        terminalreporter.write_line(f"contract: {compared} requests compared on both servers")
