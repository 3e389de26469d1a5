"""``mcad submit --wait``: until it is dispatched, and every way in which that does not happen."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcad.cli.arguments.duration import SecondsType
from mcad.cli.main import main
from mcad.client.appwrappers import watch as appwrapper_watch
from mcad.kube.client import Client
from tests.cli.cluster import condition, lease
from tests.cli.conftest import FakeEnvironment, StoppedClock, Type
from tests.cli.test_submit import wrapper, write
from tests.fakeapi import GROUP, FakeApi

Json = dict[str, Any]
Submit = Callable[..., Result]

REFUSED = "Insufficient resources to dispatch AppWrapper."
TITLE = f"appwrapper.{GROUP}/new"
HASTE = 50


class TickingClock(StoppedClock):
    """Pauses pass, so that watches and changes take turns, but much faster than they should."""

    def monotonic(self) -> float:
        return time.monotonic() * HASTE

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / HASTE)


@pytest.fixture
def submit(api: FakeApi, tmp_path: Path) -> Iterator[Submit]:
    """``submit(change, ...)`` types it and changes the cluster once the watch has begun."""
    threads: list[threading.Thread] = []

    def call(*changes: Callable[[], None], args: tuple[str, ...] = ("--wait",)) -> Result:
        world = FakeEnvironment(api)
        world.clock = TickingClock()
        thread = threading.Thread(target=_when_watched, args=(api, changes))
        threads.append(thread)
        thread.start()
        path = write(tmp_path, wrapper())
        return CliRunner().invoke(main, ["submit", "-f", path, *args], obj=world)

    yield call
    for thread in threads:
        thread.join(5)


def _when_watched(api: FakeApi, changes: tuple[Callable[[], None], ...]) -> None:
    deadline = time.monotonic() + 10
    while changes and not api.seen("WATCH", "/appwrappers") and time.monotonic() < deadline:
        time.sleep(0.01)
    for change in changes:
        change()
        time.sleep(0.05)


def status(api: FakeApi, state: str, *conditions: Json) -> Callable[[], None]:
    said = {"state": state, "conditions": list(conditions)}
    return lambda: api.change(
        "appwrappers", "new", lambda obj: obj.setdefault("status", {}).update(said)
    )


@pytest.mark.parametrize("state", ["Running", "RunningHoldCompletion", "Completed"])
def test_it_stays_until_it_is_dispatched(state: str, api: FakeApi, submit: Submit) -> None:
    backoff = condition("Backoff", "07:59:00", "AppWrapperNotRunnable.", REFUSED)
    result = submit(
        status(api, "Pending", backoff), status(api, "Pending", backoff), status(api, state)
    )
    assert result.exit_code == 0
    assert result.stdout == f"{TITLE} created\n{TITLE} dispatched\n"
    assert result.stderr == f"default/new waits: {REFUSED}\n"


def test_a_failure_is_a_failure(api: FakeApi, submit: Submit) -> None:
    failed = condition("Failed", "07:59:00", "ItemCreationFailure.", "quota exceeded")
    result = submit(status(api, "Failed", failed))
    assert result.exit_code == 1
    assert result.stderr == ("error: default/new has failed: quota exceeded; see `mcad describe`\n")


def test_a_deletion_is_one_too(api: FakeApi, submit: Submit) -> None:
    result = submit(lambda: api.remove("appwrappers", "new"))
    assert result.exit_code == 1
    assert "default/new was deleted before it was dispatched" in result.stderr


def test_patience_has_an_end(api: FakeApi, submit: Submit) -> None:
    result = submit(args=("--wait", "--timeout", "1s"))
    assert result.exit_code == 124
    assert result.stderr == (
        "error: not dispatched within 1 s: default/new; still queued, see `mcad queue`\n"
    )
    assert "new" in [obj["metadata"]["name"] for obj in api.objects["appwrappers"].values()]


def test_a_wait_without_a_dispatcher_is_not_silent(api: FakeApi, submit: Submit) -> None:
    def release(obj: Json) -> None:
        obj["spec"] = lease(holderIdentity="", renewTime="2027-01-15T07:59:50Z")["spec"]

    api.change("leases", "mcad-dispatcher", release)
    result = submit(args=("--wait", "--timeout", "1s"))
    warning, error = result.stderr.splitlines()
    assert warning == (
        "warning: no dispatcher is running (last Lease renewal: 2027-01-15T07:59:50Z): "
        "nothing is dispatched until one is started"
    )
    assert error.startswith("error: not dispatched within 1 s")


def test_scripts_get_the_object_once(api: FakeApi, submit: Submit) -> None:
    result = submit(status(api, "Running"), args=("--wait", "-o", "name"))
    assert (result.exit_code, result.stdout) == (0, f"{TITLE}\n")


def test_what_was_not_created_is_not_waited_for(api: FakeApi, submit: Submit) -> None:
    api.put("appwrappers", wrapper(namespace="default"))
    result = submit()
    assert result.exit_code == 1
    assert result.stderr.startswith("error: default/new exists already")
    assert len(result.stderr.splitlines()) == 1


def test_a_fault_of_ours_is_no_patience(
    api: FakeApi, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def __init__(self, client: Client, *_: Any) -> None: ...

        async def run(self) -> None:
            raise KeyError("oops")

    monkeypatch.setattr(appwrapper_watch, "Reflector", Broken)
    result = submit()
    assert result.exit_code == 1
    assert "internal error: KeyError: 'oops'" in result.stderr


def test_a_dry_run_leaves_nothing_to_wait_for(mcad: Type, tmp_path: Path) -> None:
    path = write(tmp_path, wrapper())
    result = mcad("submit", "-f", path, "--wait", "--dry-run", "server")
    assert (result.exit_code, result.stdout) == (2, "")
    assert mcad("submit", "-f", path, "--timeout", "5s").exit_code == 2


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("5m", 300), ("1h", 3600)])
def test_durations(text: str, seconds: float) -> None:
    assert SecondsType()(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "soon", "-5s", "1.5h", "5 m", "٣", "1e9", "5d"])
def test_what_is_no_duration(text: str, mcad: Type, tmp_path: Path) -> None:
    path = write(tmp_path, wrapper())
    result = mcad("submit", "-f", path, "--wait", "--timeout", text)
    assert result.exit_code == 2
    assert "is not a duration such as 90s, 5m or 1h" in result.stderr
