"""Pods on their nodes: they start, run, end and go."""

from __future__ import annotations

import pytest

from mcad.kube.types import Json
from mcad.sim.controllers.commands import End, duration_s, end_of, faults
from mcad.sim.controllers.kubelet import Kubelet
from tests.sim.worlds import World, condition, notes_of, virtually, world


def _state(w: World, name: str, index: int = 0) -> Json:
    status: Json = w.get("Pod", name)["status"]["containerStatuses"][index]
    return status


def _exit_code(w: World, name: str) -> int:
    code: int = _state(w, name)["state"]["terminated"]["exitCode"]
    return code


@virtually
async def test_a_pod_is_created_started_and_ready() -> None:
    async with world("n1") as w:
        w.pod("p")
        await w.settle(0.5)
        status = w.get("Pod", "p")["status"]
        assert status["phase"] == "Pending"
        waiting = {"waiting": {"reason": "ContainerCreating"}}
        assert status["containerStatuses"][0]["state"] == waiting
        assert status["hostIP"] == "172.18.0.2"
        assert condition({"status": status}, "Ready")["status"] == "False"

        await w.settle(1)
        status = w.get("Pod", "p")["status"]
        assert status["phase"] == "Running"
        assert status["podIP"] == "10.244.0.1"
        assert status["podIPs"] == [{"ip": "10.244.0.1"}]
        assert status["startTime"] == "2027-01-15T08:00:00Z"
        names = {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"}
        assert {one["type"]: one["status"] for one in status["conditions"]} == dict.fromkeys(
            names | {"PodScheduled"}, "True"
        )
        assert w.reasons("p") == ["Scheduled", "Pulled", "Created", "Started"]


@virtually
async def test_a_pod_with_two_containers_ends_with_the_last() -> None:
    async with world("n1") as w:
        containers = [
            {"name": name, "image": "i", "command": ["sleep", seconds]}
            for name, seconds in (("short", "5"), ("long", "9"))
        ]
        w.make("Pod", "p", containers=containers, restartPolicy="Never")
        await w.settle(7)
        assert w.phase("p") == "Running"
        assert "terminated" in _state(w, "p", 0)["state"]
        assert "running" in _state(w, "p", 1)["state"]
        assert w.condition("p", "Ready")["message"] == "containers with unready status: [short]"

        await w.settle(4)
        assert w.phase("p") == "Succeeded"


@virtually
async def test_a_script_that_exits_with_a_code_fails_the_pod() -> None:
    async with world("n1") as w:
        w.pod("p", command=["sh", "-c", "sleep 2; exit 3"], restartPolicy="Never")
        await w.settle()

        assert w.phase("p") == "Failed"
        assert _exit_code(w, "p") == 3
        assert w.condition("p", "Ready")["reason"] == "PodFailed"


@pytest.mark.parametrize(
    ("policy", "command", "phase", "restarts"),
    [
        ("Always", ["true"], "Running", 1),
        ("OnFailure", ["false"], "Running", 1),
        ("OnFailure", ["true"], "Succeeded", 0),
        ("Never", ["false"], "Failed", 0),
    ],
)
@virtually
async def test_the_restart_policy_decides_what_follows_the_end(
    policy: str, command: list[str], phase: str, restarts: int
) -> None:
    async with world("n1") as w:
        w.pod("p", command=command, restartPolicy=policy)
        await w.settle(5)
        assert (w.phase("p"), _state(w, "p")["restartCount"]) == (phase, restarts)


@virtually
async def test_a_container_that_ends_again_and_again_backs_off() -> None:
    async with world("n1") as w:
        w.pod("p", command=["sh", "-c", "sleep 1; exit 1"])
        await w.settle(4)  # started at 1 s, restarted at once at 2 s, ended again at 3 s
        state = _state(w, "p")
        waiting = state["state"]["waiting"]
        assert waiting["reason"] == "CrashLoopBackOff"
        assert "back-off 10s restarting failed container=main" in waiting["message"]
        assert state["lastState"]["terminated"]["exitCode"] == 1
        assert w.condition("p", "Ready")["status"] == "False"
        assert "BackOff" in w.reasons("p")

        counts = []
        for _ in range(4):
            await w.settle(60)
            counts.append(_state(w, "p")["restartCount"])
        assert counts == [3, 4, 5, 5]


@virtually
async def test_a_kubelet_that_finds_a_running_pod_lets_it_run_to_its_end() -> None:
    async with world("n1") as w:
        w.pod("p", annotations=notes_of(run_for="100s"), restartPolicy="Never")
        await w.settle(60)
        before = w.get("Pod", "p")["status"]
        w.cluster.kubelet.stop()
        Kubelet(w.registry).start()
        await w.settle(30)
        assert w.get("Pod", "p")["status"] == before
        await w.settle(20)
        assert w.phase("p") == "Succeeded"


@virtually
async def test_the_deadline_of_a_pod_ends_it() -> None:
    async with world("n1") as w:
        w.pod("p", activeDeadlineSeconds=20)
        await w.settle(19)
        assert w.phase("p") == "Running"

        await w.settle(2)
        status = w.get("Pod", "p")["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
        assert _exit_code(w, "p") == 137


@virtually
async def test_annotations_say_when_and_how_a_pod_ends() -> None:
    async with world("n1") as w:
        for name, notes in (
            ("runs", notes_of(run_for="10s")),
            ("fails", notes_of(fail_after="10s")),
            ("code", notes_of(run_for="10s", exit_code="42")),
            ("late", notes_of(start_delay="20s")),
            ("wrong", notes_of(run_for="soon")),
        ):
            w.pod(name, annotations=notes, restartPolicy="Never")
        await w.settle(12)
        assert (w.phase("runs"), w.phase("late")) == ("Succeeded", "Pending")
        assert (w.phase("fails"), _exit_code(w, "fails")) == ("Failed", 1)
        assert (w.phase("code"), _exit_code(w, "code")) == ("Failed", 42)
        said = [text for reason, text in w.events("wrong") if reason == "InvalidAnnotation"]
        assert said[0].startswith('annotation sim.mcad.dev/run-for: "soon" is not a duration')


@virtually
async def test_an_annotation_ends_a_running_pod() -> None:
    async with world("n1") as w:
        w.pod("p", restartPolicy="Never")
        await w.settle()
        w.remeta("Pod", "p", annotations=notes_of(fail_after="0s"))
        await w.settle(0.1)
        assert w.phase("p") == "Failed"


@virtually
async def test_a_deleted_pod_ends_within_a_second_and_is_gone() -> None:
    async with world("n1") as w:
        w.pod("p")
        await w.settle()
        left = w.delete("Pod", "p")
        assert left["metadata"]["deletionGracePeriodSeconds"] == 30
        await w.settle(0.5)
        assert w.find("Pod", "p") is not None

        await w.settle(1)
        assert w.find("Pod", "p") is None
        assert "Killing" in w.reasons("p")


@virtually
async def test_a_deleted_pod_that_a_finalizer_keeps_says_how_it_ended() -> None:
    async with world("n1") as w:
        w.pod("p")
        w.remeta("Pod", "p", finalizers=["example.com/wait"])
        await w.settle()
        w.delete("Pod", "p")
        await w.settle()

        assert (w.phase("p"), _exit_code(w, "p")) == ("Failed", 137)
        assert w.get("Pod", "p")["metadata"]["deletionGracePeriodSeconds"] == 0
        w.remeta("Pod", "p", finalizers=[])
        assert w.find("Pod", "p") is None


@virtually
async def test_a_successor_of_the_same_name_is_another_pod() -> None:
    async with world("n1") as w:
        w.pod("p", command=["sleep", "100"], restartPolicy="Never")
        await w.settle(50)
        w.delete("Pod", "p", grace_s=0)
        w.pod("p", command=["sleep", "100"], restartPolicy="Never")
        await w.settle(60)
        assert w.phase("p") == "Running"
        await w.settle(60)
        assert w.phase("p") == "Succeeded"


@pytest.mark.parametrize(
    ("command", "end"),
    [
        (["sleep", "30"], End(30, 0)),
        (["/bin/sleep", "1m", "30"], End(90, 0)),
        (["sleep", "infinity"], None),
        (["true"], End(0, 0)),
        (["/bin/false"], End(0, 1)),
        (["sh", "-c", "sleep 2; exit 3"], End(2, 3)),
        (["bash", "-ec", "--", "sleep 1 && sleep 0.5s"], End(1.5, 0)),
        (["sh", "-c", "echo hi; false"], End(0, 1)),
        (["sh", "-c", "true"], End(0, 0)),
        (["sh", "-c", "while true; do sleep 1; done"], None),
        (["sh", "-c", "sleep infinity"], None),
        (["sh", "-c", "serve --port 80"], None),
        (["sh"], None),
        (["python", "-c", "exit 3"], None),
        ([], None),
    ],
)
def test_what_a_command_would_do_is_read_off_its_words(command: list[str], end: End | None) -> None:
    assert end_of({"command": command}, {}) == end


def test_an_exit_code_alone_is_for_the_end_that_comes_anyway_or_at_once() -> None:
    told = notes_of(exit_code="5")
    assert end_of({"command": ["sleep", "7"]}, told) == End(7, 5)
    assert end_of({}, told) == End(0, 5)


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("10s", 10), ("1.5m", 90), ("500ms", 0.5), ("2h", 7200), ("1d", 86400)],
)
def test_durations(text: str, value: float) -> None:
    assert duration_s(text) == value


def test_annotations_that_cannot_be_read_are_named_with_what_to_do() -> None:
    assert faults(notes_of(fail_after="x", exit_code="bad")) == [
        'annotation sim.mcad.dev/fail-after: "x" is not a duration: write it like "10s" or "1m"',
        'annotation sim.mcad.dev/exit-code: "bad" is not an exit code: write it like "1"',
    ]


@virtually
async def test_an_image_is_pulled_again_until_it_is_there() -> None:
    async with world("n1") as w:
        w.pod("p", annotations=notes_of(pull_fails_for="15s"))
        await w.settle(2)
        state = _state(w, "p")["state"]["waiting"]
        cause = 'failed to pull and unpack image "busybox": not found'
        assert state == {"reason": "ErrImagePull", "message": cause}
        assert w.phase("p") == "Pending"
        await w.settle(5)
        state = _state(w, "p")["state"]["waiting"]
        assert state["reason"] == "ImagePullBackOff"
        assert state["message"] == f'Back-off pulling image "busybox": ErrImagePull: {cause}'
        await w.settle(30)
        assert w.phase("p") == "Running"
        assert w.reasons("p")[1:4] == ["Pulling", "Failed", "Failed"]


@virtually
async def test_a_pull_may_fail_for_ever_and_a_deadline_ends_it() -> None:
    async with world("n1") as w:
        w.pod("p", annotations=notes_of(pull_fails_for="ever"))
        w.pod("late", annotations=notes_of(config_fails_for="ever"), activeDeadlineSeconds=60)
        await w.settle(50)
        reason = _state(w, "late")["state"]["waiting"]["reason"]
        assert reason == "CreateContainerConfigError"
        await w.settle(3600)
        assert "ImagePull" in _state(w, "p")["state"]["waiting"]["reason"]
        assert w.get("Pod", "late")["status"]["reason"] == "DeadlineExceeded"


@virtually
async def test_a_container_is_ready_later_than_it_runs() -> None:
    async with world("n1") as w:
        w.pod("p", annotations=notes_of(ready_after="20s"))
        await w.settle(10)
        assert (w.phase("p"), w.condition("p", "Ready")["status"]) == ("Running", "False")
        assert not _state(w, "p")["ready"]
        await w.settle(20)
        assert w.condition("p", "Ready")["status"] == "True"


@virtually
async def test_a_test_may_draw_how_pods_live() -> None:
    async with world("n1") as w:
        kubelet = w.cluster.controllers["Kubelet"]
        assert isinstance(kubelet, Kubelet)
        kubelet.notes = lambda pod: notes_of(run_for="5s")
        w.pod("p", restartPolicy="Never")
        await w.settle(10)
        assert w.phase("p") == "Succeeded"
