"""The control plane does what the tests that stand on it take for granted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane, KubectlError
from tests.controlplane.fixtures import controlplane_or_skip
from tests.controlplane.processes import ProcessDiedError, listens

pytestmark = pytest.mark.controlplane

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module", autouse=True)
def _node(control_plane: ControlPlane) -> None:
    control_plane.add_node("first", extended={"nvidia.com/gpu": "8"}, labels={"zone": "a"})


@pytest.fixture
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The module's control plane, without what the last test left in the namespace."""
    yield control_plane
    control_plane.kubectl("delete", "jobs,pods", "--all", "--namespace=default")


def test_a_pod_is_pending_before_it_runs(plane: ControlPlane) -> None:
    pod = _pod("late", ["server"])
    pod["metadata"]["annotations"] = {"controlplane.test/start-delay": "1500ms"}
    plane.apply(pod)
    plane.wait_for(lambda: _pods(plane)[0]["spec"].get("nodeName"), what="it is scheduled")
    assert _phases(plane) == {"late": "Pending"}
    plane.wait_for(lambda: _phases(plane) == {"late": "Running"}, what="it runs")


def test_a_job_takes_as_long_as_its_command_sleeps(plane: ControlPlane) -> None:
    plane.apply(_job("nap", ["sleep", "2"]))
    plane.kubectl("wait", "--for=condition=Complete", "job/nap", "--timeout=30s")
    status = plane.get("/apis/batch/v1/namespaces/default/jobs/nap")["status"]
    assert [one["type"] for one in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert status["succeeded"] == 1
    terminated = _pods(plane)[0]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert _time(terminated["finishedAt"]) - _time(terminated["startedAt"]) >= 2


def test_pods_end_as_their_commands_would(plane: ControlPlane) -> None:
    """What pod-end.jq reads off a command: phase and exit code, None for a running pod."""
    cases: dict[str, tuple[list[str], str, int | None]] = {
        "sleep": (["sleep", "1"], "Succeeded", 0),
        "decimals": (["/bin/sleep", "0.5s"], "Succeeded", 0),
        "infinity": (["sleep", "infinity"], "Running", None),
        "script": (["sh", "-c", "echo a; sleep 1; echo b"], "Succeeded", 0),
        "dashes": (["/bin/bash", "-ec", "--", "sleep 0.5 && sleep 0.5"], "Succeeded", 0),
        "true": (["true"], "Succeeded", 0),
        "false": (["false"], "Failed", 1),
        "exit": (["sh", "-c", "exit 1"], "Failed", 1),
        "late-exit": (["sh", "-c", "sleep 1; exit 137"], "Failed", 137),
        "exit-zero": (["sh", "-c", "exit 0"], "Succeeded", 0),
        "loop": (["sh", "-c", "while true; do sleep 1; done"], "Running", None),
        "server": (["nginx", "-g", "daemon off;"], "Running", None),
        "image": ([], "Running", None),
    }
    plane.apply([_pod(name, command) for name, (command, _, _) in cases.items()])
    expected = {name: phase for name, (_, phase, _) in cases.items()}
    plane.wait_for(lambda: _phases(plane) == expected, 15, f"the pods are {expected}")
    codes = {pod["metadata"]["name"]: _exit_code(pod) for pod in _pods(plane)}
    assert codes == {name: code for name, (_, _, code) in cases.items()}


def test_restarting_containers_never_end(plane: ControlPlane) -> None:
    endless, ended = _pod("always", ["sleep", "0"]), _pod("never", ["sleep", "1"])
    endless["spec"]["restartPolicy"] = "Always"
    plane.apply([endless, ended])
    plane.wait_for(lambda: _phases(plane).get("never") == "Succeeded", what="the other has ended")
    assert _phases(plane)["always"] == "Running"


def test_touching_a_pod_does_not_make_it_run_longer(plane: ControlPlane) -> None:
    plane.apply(_pod("touched", ["sleep", "3"]))
    plane.wait_for(lambda: _phases(plane) == {"touched": "Running"}, what="it runs")
    time.sleep(1.5)
    plane.kubectl("label", "pod/touched", "a=b")
    plane.wait_for(lambda: _phases(plane) == {"touched": "Succeeded"}, 2.5, "it has ended")


def test_a_deleted_pod_is_gone_at_once_and_deleted_once(plane: ControlPlane) -> None:
    plane.apply(_pod("victim", ["server"]))
    plane.wait_for(lambda: _phases(plane) == {"victim": "Running"}, what="it runs")
    mark = plane.audit_mark()
    plane.kubectl("delete", "pod/victim", "--timeout=5s")
    kubelets = [one for one in plane.audit(mark) if (one.user, one.verb) == ("kwok", "delete")]
    assert [one.code for one in kubelets] == [200]


def test_the_audit_log_has_reads_and_writes_with_their_user(plane: ControlPlane) -> None:
    mark = plane.audit_mark()
    token = plane.service_account("default", "writer")
    plane.kubectl("create", "clusterrolebinding", "w", "--clusterrole=edit", _to("writer"))
    body = {"metadata": {"name": "note"}, "data": {"a": "b"}}
    maps = "/api/v1/namespaces/default/configmaps"
    plane.wait_for(lambda: plane.request("POST", maps, body, token=token)[0] in {201, 409})
    assert plane.request("GET", f"{maps}?watch=1&timeoutSeconds=1", token=token)[0] == 200

    user = "system:serviceaccount:default:writer"
    watches = plane.wait_for(
        lambda: [one for one in plane.audit(mark) if (one.user, one.verb) == (user, "watch")]
    )
    assert len(watches) == 1
    made = [
        one for one in plane.audit(mark) if one.user == user and one.is_write and one.code < 300
    ]
    assert [(one.verb, one.resource, one.namespace, one.name, one.code) for one in made] == [
        ("create", "configmaps", "default", "note", 201)
    ]
    assert made[0].uri == maps
    assert made[0].user_agent == "controlplane-test"


def test_a_service_account_has_only_its_own_rights(plane: ControlPlane) -> None:
    token = plane.service_account("default", "reader")
    plane.kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    plane.kubectl("create", "rolebinding", "reader", "--role=reader", _to("reader"))
    plane.wait_for(lambda: plane.request("GET", PODS, token=token)[0] == 200, what="the right")
    assert plane.request("GET", "/api/v1/pods", token=token)[0] == 403
    assert plane.request("POST", PODS, _pod("x", []), token=token)[0] == 403
    kubeconfig = plane.kubeconfig_for_token(token, "reader")
    assert "No resources found" in plane.kubectl("get", "pods", kubeconfig=kubeconfig, check=False)
    with pytest.raises(KubectlError, match="forbidden"):
        plane.kubectl("get", "secrets", kubeconfig=kubeconfig)


def test_nodes_come_with_what_was_asked_for_and_go(plane: ControlPlane) -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    plane.add_node("second", cpu="500m", memory="1Gi", pods=5, taints=[taint])
    nodes = {one["metadata"]["name"]: one for one in plane.get("/api/v1/nodes")["items"]}
    assert nodes["second"]["status"]["allocatable"] == {"cpu": "500m", "memory": "1Gi", "pods": "5"}
    assert nodes["second"]["spec"]["taints"] == [taint]
    assert nodes["first"]["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert nodes["first"]["metadata"]["labels"]["zone"] == "a"
    plane.remove_node("second")
    assert plane.request("GET", "/api/v1/nodes/second")[0] == 404


def test_a_restarted_api_server_is_the_same_one(plane: ControlPlane) -> None:
    plane.process("kube-apiserver").kill()
    plane.restart("kube-apiserver")
    plane.wait_for(plane.ready, what="it is back")
    plane.apply(_pod("after", ["true"]))
    plane.wait_for(lambda: _phases(plane) == {"after": "Succeeded"}, what="everything works")


def test_kwok_renews_the_nodes_leases(plane: ControlPlane) -> None:
    """Late in the file, so that the first renewal, after 10 s, is past without waiting for it."""
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/first"
    made = _time(plane.get(lease)["metadata"]["creationTimestamp"])
    plane.wait_for(
        lambda: _time(plane.get(lease)["spec"]["renewTime"]) > made + 5, 15, "it is renewed"
    )
    assert plane.get(lease)["spec"]["leaseDurationSeconds"] == 40


def test_stop_leaves_nothing(tmp_path: Path) -> None:
    with controlplane_or_skip(folder=tmp_path / "kept") as plane:
        processes = [plane.process(name) for name in ("etcd", "kube-apiserver", "kwok")]
        port = plane.layout.ports.apiserver
    assert None not in [one.poll() for one in processes]
    assert not listens(port)
    assert plane.audit_log.exists()  # the folder was asked for, so it stays
    plane.stop()  # a second time does no harm


def test_a_killed_parent_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "from tests.controlplane.controlplane import ControlPlane\n"
        "plane = ControlPlane().start()\n"
        "print(plane.layout.ports.apiserver, plane.folder, flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        shown, folder = parent.stdout.readline().split()
        port = int(shown)
        assert listens(port)
        parent.kill()
    ControlPlane().wait_for(lambda: not listens(port), 10, "the API server has ended")
    ControlPlane().wait_for(lambda: not Path(folder).exists(), 10, "the folder is gone")


def test_a_process_that_does_not_start_is_shown_with_its_log() -> None:
    plane = controlplane_or_skip(extra_args={"etcd": ["--no-such-flag"]})
    with pytest.raises(ProcessDiedError, match="no-such-flag"):
        plane.start()
    assert not plane.folder.exists()


def _pod(name: str, command: list[str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": _pod_spec(command) | {"restartPolicy": "Never"},
    }


def _pod_spec(command: list[str]) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "any", "command": command}]}


def _job(name: str, command: list[str]) -> dict[str, Any]:
    pod = _pod_spec(command) | {"restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


def _pods(plane: ControlPlane) -> list[dict[str, Any]]:
    pods: list[dict[str, Any]] = plane.get(PODS)["items"]
    return pods


def _phases(plane: ControlPlane) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in _pods(plane)}


def _exit_code(pod: dict[str, Any]) -> int | None:
    state = pod["status"]["containerStatuses"][0]["state"]
    code: int | None = state.get("terminated", {}).get("exitCode")
    return code


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _to(account: str) -> str:
    return f"--serviceaccount=default:{account}"
