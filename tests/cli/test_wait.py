"""``mcad wait`` and ``mcad requeue``: until the dispatcher has come so far, or never will."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import pytest

from mcad.cli.commands import requeue
from tests.cli.embedded import Embedded, wait_for
from tests.e2e.support import appwrapper, deployment, pod
from tests.fakeapi import GROUP

Json = dict[str, Any]

KUBECTL = f"appwrapper.{GROUP}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with Embedded(tmp_path_factory.mktemp("wait")).running() as running:
        yield running


@pytest.fixture(autouse=True)
def _clean(cluster: Embedded) -> Iterator[None]:
    yield
    cluster.mcad("cancel", "--all", "--yes")
    wait_for(lambda: not cluster.mcad("get", "-A", "-o", "name").stdout, "all are gone")


def old(name: str, *items: Json, **spec: Any) -> Json:
    """An AppWrapper in the older dialect."""
    generic = [{"generictemplate": one} for one in items]
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name},
        "spec": {"resources": {"GenericItems": generic}, **spec},
    }


def failing(name: str) -> Json:
    made = appwrapper(name, pod(name, command=("sh", "-c", "sleep 0.3; exit 3")))
    notes = {"retryLimit": "0", "failureGracePeriodDuration": "0s"}
    prefix = "workload.codeflare.dev.appwrapper/"
    made["metadata"]["annotations"] = {prefix + key: value for key, value in notes.items()}
    return made


CASES = {
    "dispatched": (appwrapper("a", pod("a")), "dispatched", 0),
    "running": (appwrapper("a", deployment("a", 3)), "running", 0),
    "running, v1beta1": (old("a", deployment("a", 3)), "running", 0),
    "completed": (appwrapper("a", pod("a", command=("sleep", "0.3"))), "completed", 0),
    "failed": (failing("a"), "failed", 0),
    "failed, completed": (failing("a"), "completed", 1),
    "completed, failed": (appwrapper("a", pod("a", command=("sleep", "0.3"))), "failed", 1),
    "completed, running": (appwrapper("a", pod("a", command=("true",))), "running", 0),
}


@pytest.mark.parametrize("case", CASES)
def test_the_end_of_a_wait(cluster: Embedded, case: str) -> None:
    obj, goal, code = CASES[case]
    cluster.create(obj)
    result = cluster.mcad("wait", "a", "--for", goal, "--timeout", "40s")
    assert (result.exit_code, result.stdout) == (code, "" if code else f"{KUBECTL}/a {goal}\n")
    if code:
        how = "failed" if goal == "completed" else "completed"
        assert result.stderr.startswith(f"error: default/a has {how}")


def later(work: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(0.5, work)
    timer.start()
    return timer


def remove(cluster: Embedded, name: str) -> Callable[[], object]:
    def work(one: Any) -> None:
        kind = one.registry.kind(f"{GROUP}/v1beta2", "AppWrapper")
        one.registry.delete(kind, ("default", name))

    return lambda: cluster.on_loop(work)


@pytest.mark.parametrize(
    ("goal", "code", "said"),
    [
        ("deleted", 0, f"{KUBECTL}/a deleted\n{KUBECTL}/b deleted\n"),
        ("completed", 1, "error: default/a was deleted before it was completed; see `mcad"),
        ("failed", 1, "error: default/a was deleted; see `mcad describe`\n"),
    ],
)
def test_deletion(cluster: Embedded, goal: str, code: int, said: str) -> None:
    cluster.create(*(appwrapper(name, pod(name)) for name in "ab"))
    timers = [later(remove(cluster, name)) for name in "ab"]
    result = cluster.mcad("wait", "--all", "--for", goal, "--timeout", "20s")
    for timer in timers:
        timer.join()
    assert result.exit_code == code
    lines = sorted(result.output.splitlines(keepends=True))  # both are deleted at the same time
    assert "".join(lines).startswith(said)


def test_what_is_gone_is_deleted_and_nothing_else(cluster: Embedded) -> None:
    assert cluster.mcad("wait", "x", "--for=deleted").stdout == f"{KUBECTL}/x deleted\n"
    assert cluster.mcad("wait", "--all", "--for=deleted").exit_code == 0
    for which in ("x", "--all"):
        result = cluster.mcad("wait", which, "--for=running")
        assert (result.exit_code, result.stdout) == (4, "")


def test_patience_has_an_end_and_reasons_are_printed(cluster: Embedded) -> None:
    cluster.create(appwrapper("big", pod("big", "100")), appwrapper("a", pod("a"), suspend=True))
    result = cluster.mcad("wait", "big", "a", "--for=running", "--timeout=1s")
    assert (result.exit_code, result.stdout) == (124, "")
    *reasons, end = result.stderr.splitlines()
    assert end == "error: not running within 1 s: default/big, default/a; see `mcad describe`"
    assert "default/a waits: it is on hold" in reasons
    assert any(line.startswith("default/big waits: ") for line in reasons)


# -- requeue ---------------------------------------------------------------------------------


def finalize(finalizers: list[str], one: Any) -> None:
    """Set the finalizers of the pod."""
    kind = one.registry.kind("v1", "Pod")
    metadata = one.registry.get(kind, ("default", "p"))["metadata"] | {"finalizers": finalizers}
    one.registry.patch(kind, ("default", "p"), lambda obj: obj | {"metadata": metadata})


def test_it_queues_again_at_its_original_position(cluster: Embedded) -> None:
    cluster.create(appwrapper("first", pod("p", "6")))
    assert cluster.mcad("wait", "first", "--for=running", "--timeout=20s").exit_code == 0
    cluster.on_loop(partial(finalize, ["example.com/slow"]))  # it ends after the release
    cluster.create(appwrapper("second", pod("q", "6")))
    cluster.until("second", "Pending")
    assert cluster.mcad("requeue", "first", "--dry-run").stdout == (
        f"{KUBECTL}/first requeued (server dry run)\n"
    )
    result = cluster.mcad("requeue", "first")
    assert (result.exit_code, result.output) == (0, f"{KUBECTL}/first requeued\n")

    cluster.on_loop(partial(finalize, []))

    def again() -> bool:
        obj = cluster.get("first")
        assert obj is not None
        status = obj["status"]
        return status["state"] == "Running" and status["dispatch"]["attempt"] == 2

    wait_for(again, "the first one has a second attempt: it is ahead of the second one")
    second = cluster.until("second", "Pending")
    assert "dispatch" not in second["status"]


def test_where_there_is_nothing_to_end(cluster: Embedded) -> None:
    cluster.create(
        appwrapper("waits", pod("w", "100")),
        appwrapper("held", pod("h"), suspend=True),
        appwrapper("done", pod("d", command=("true",))),
    )
    cluster.until("done", "Completed")
    cluster.until("waits", "Pending")
    result = cluster.mcad("requeue", "--all", "--yes")
    assert result.exit_code == 0
    assert sorted(result.output.splitlines()) == [
        f"{KUBECTL}/done unchanged: it has completed",
        f"{KUBECTL}/held unchanged: it is on hold; `mcad release` lets it queue",
        f"{KUBECTL}/waits unchanged: it is not dispatched",
    ]
    result = cluster.mcad("requeue", "done")
    told = "error: default/done cannot be requeued: it has completed; create another one\n"
    assert (result.exit_code, result.output) == (1, told)


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A cluster whose dispatcher has dispatched ``a``, renews its Lease and does no more."""
    with Embedded(tmp_path_factory.mktemp("silent")).running(dispatches=False) as running:
        running.create(appwrapper("a", pod("a")))

        def dispatch(one: Any) -> None:
            kind = one.registry.kind(f"{GROUP}/v1beta2", "AppWrapper")
            record = {"attempt": 1, "epoch": 1, "phase": "dispatched", "inventory": []}
            status = {"state": "Running", "dispatch": record}
            obj = one.registry.get(kind, ("default", "a"))
            one.registry.update_status(kind, obj | {"status": status})

        running.on_loop(dispatch)
        yield running


def lead(silent: Embedded) -> None:
    """Write the Lease as a dispatcher that runs would."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "x", "leaseDurationSeconds": 60, "renewTime": now}
    metadata = {"name": "mcad-dispatcher", "namespace": "kube-system"}
    silent.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }
    )


def suspended(silent: Embedded) -> bool:
    obj = silent.get("a")
    assert obj is not None
    return bool(obj["spec"].get("suspend"))


def test_an_end_before_the_time_says_how_to_go_on(silent: Embedded) -> None:
    result = silent.mcad("requeue", "a")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: no dispatcher is running")
    assert result.stderr.endswith("until one is started; nothing was changed\n")
    assert not suspended(silent)
    lead(silent)
    advice = "default/a is on hold: `mcad release default/a` lets it queue\n"
    result = silent.mcad("requeue", "a", "--timeout", "1s")
    assert (result.exit_code, result.stdout) == (124, "")
    assert result.stderr == f"error: not ended within 1 s: default/a; {advice}"
    assert suspended(silent)
    assert silent.mcad("release", "default/a").exit_code == 0
    command = [sys.executable, "-m", "mcad", "requeue", "a", "--kubeconfig", str(silent.kubeconfig)]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        wait_for(lambda: suspended(silent), "it is on hold")
        process.send_signal(signal.SIGINT)
        said, told = process.communicate(timeout=20)
    assert (process.returncode, said) == (130, "")
    assert "default/a is on hold: `" in told
    assert "release default/a` lets it queue\n" in told
    assert suspended(silent)


def test_an_interruption_before_the_answer_says_how_to_go_on_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server may have put it on hold although the answer has not come yet."""
    asked, answered = asyncio.Event(), asyncio.Event()

    async def patch_spec(*_: object, **__: object) -> None:
        asked.set()
        await answered.wait()

    async def story() -> None:
        obj = {"metadata": {"namespace": "default", "name": "a"}}
        holding = asyncio.ensure_future(requeue._hold(cast(Any, None), obj))
        await asked.wait()
        holding.cancel()
        await asyncio.sleep(0)
        assert not holding.done()
        answered.set()
        with pytest.raises(asyncio.CancelledError):
            await holding

    monkeypatch.setattr(requeue, "patch_spec", patch_spec)
    asyncio.run(story())
    assert "default/a is on hold: `mcad release default/a`" in capsys.readouterr().err
