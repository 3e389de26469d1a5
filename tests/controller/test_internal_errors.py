"""An error of the process around the core, about one AppWrapper, holds that one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mcad.controller import execute, runtime, status_writer
from mcad.core.state.lifecycle import Phase
from tests import errors_held
from tests.controller.test_runtime import Rig, add_appwrapper

PLACES = {
    "a manifest is read": (runtime, "parse"),
    "a status is rendered": (status_writer, "render_status"),
    "an item is rendered": (execute, "render"),
}


@pytest.fixture(autouse=True)
def held() -> Iterator[None]:
    with errors_held():
        yield


def _is_about(argument: Any, name: str) -> bool:
    if isinstance(argument, dict):
        return bool(argument.get("metadata", {}).get("name") == name)
    return getattr(argument, "name", "") == name or argument == f"uid-{name}"


@pytest.mark.parametrize(("module", "function"), PLACES.values(), ids=PLACES.keys())
async def test_it_is_held_and_the_others_run(
    module: Any, function: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = getattr(module, function)

    def broken(*args: Any, **more: Any) -> Any:
        if any(_is_about(one, "a") for one in args):
            raise KeyError("s3" + "cret")
        return real(*args, **more)

    monkeypatch.setattr(module, function, broken)
    rig = Rig()
    add_appwrapper(rig.server, "a", "100m")
    add_appwrapper(rig.server, "b", "100m")
    async with rig:
        await rig.clock.advance(30.0)
        entries = rig.controller.dispatcher.cluster.entries

        assert entries["uid-a"].phase is Phase.HELD
        assert entries["uid-b"].phase is Phase.RUNNING
        assert "internal error uid=uid-a appwrapper=default/a id=E" in caplog.text
        stacks = rig.controller.errors.page()
        assert "KeyError" in stacks
        assert "s3cret" not in stacks
        page = (await rig.controller.metrics.page()).decode()
        error = entries["uid-a"].error
        assert error is not None
        assert f'mcad_appwrappers_internal_errors{{id="{error.id}"}} 1.0' in page


async def test_a_job_that_raises_holds_its_appwrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    add_appwrapper(rig.server, "a", "100m")

    async def broken(*_: Any, **__: Any) -> None:
        raise KeyError("x")

    monkeypatch.setattr(execute.Executor, "_create", broken)
    async with rig:
        await rig.clock.advance(30.0)

        assert rig.controller.dispatcher.cluster.entries["uid-a"].phase is Phase.HELD


async def test_an_error_about_the_whole_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    capacity = rig.controller.dispatcher.cluster.capacity

    def broken() -> None:
        raise KeyError("x")

    monkeypatch.setattr(capacity, "place_unplaced", broken)
    await rig.__aenter__()
    await rig.clock.advance(5.0)

    assert rig.task.done()
    with pytest.raises(KeyError):
        rig.task.result()
