"""What the end-to-end tests share: objects to create, the CLI with its exit code, what is there."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import MCAD

Json = dict[str, Any]

SAMPLES = Path(__file__).parents[2] / "samples"
GROUP = "workload.codeflare.dev"


# -- what is there ---------------------------------------------------------------------------


def appwrappers_path(namespace: str = "default", version: str = "v1beta2") -> str:
    """The collection of AppWrappers in a namespace."""
    return f"/apis/{GROUP}/{version}/namespaces/{namespace}/appwrappers"


def items(plane: ControlPlane, path: str) -> list[Json]:
    """The objects of a collection; a server that has just started may say 429 for a while."""

    def answered() -> tuple[int, Json] | None:
        status, answer = plane.request("GET", path)
        return None if status == 429 else (status, answer)

    status, answer = plane.wait_for(answered, what=f"another answer than 429 to GET {path}")
    assert status == 200, f"GET {path}: {status}: {answer}"
    found: list[Json] = answer["items"]
    return found


def pods(plane: ControlPlane, namespace: str = "default") -> list[Json]:
    """The pods of a namespace that are not being deleted."""
    found = items(plane, f"/api/v1/namespaces/{namespace}/pods")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def phases(plane: ControlPlane, namespace: str = "default") -> dict[str, str]:
    """Name -> phase of the pods of a namespace."""
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in pods(plane, namespace)}


def get(plane: ControlPlane, name: str, namespace: str = "default") -> Json:
    """One AppWrapper."""
    code, answer = plane.request("GET", f"{appwrappers_path(namespace)}/{name}")
    assert code == 200, answer
    return answer


def appwrappers(plane: ControlPlane, namespace: str = "default") -> dict[str, Json]:
    """All of a namespace, by name."""
    found = items(plane, appwrappers_path(namespace))
    return {one["metadata"]["name"]: one for one in found}


def state(appwrapper: Json) -> str:
    """``status.state``, "" before the first verdict."""
    found: str = appwrapper.get("status", {}).get("state", "")
    return found


def states(plane: ControlPlane, namespace: str = "default") -> dict[str, str]:
    """Name -> state of the AppWrappers of a namespace."""
    return {name: state(one) for name, one in appwrappers(plane, namespace).items()}


def in_state(plane: ControlPlane, wanted: str) -> set[str]:
    """The names of the AppWrappers in this state."""
    return {name for name, found in states(plane).items() if found == wanted}


def status_of(plane: ControlPlane, name: str, namespace: str = "default") -> Json:
    """The status of an AppWrapper, {} if there is none."""
    answer = plane.request("GET", f"{appwrappers_path(namespace)}/{name}")[1]
    status: Json = answer.get("status", {})
    return status


def condition(appwrapper: Json, kind: str) -> Json:
    """One condition, {} if it is absent."""
    found = appwrapper.get("status", {}).get("conditions", [])
    return next((one for one in found if one["type"] == kind), {})


def conditions_of(plane: ControlPlane, name: str, namespace: str = "default") -> dict[str, Json]:
    """Type -> condition, in the order in which they are listed."""
    status = status_of(plane, name, namespace)
    return {one["type"]: one for one in status.get("conditions", [])}


# -- objects to create -----------------------------------------------------------------------


def pod(name: str, cpu: str = "100m", command: tuple[str, ...] = (), **spec: Any) -> Json:
    """A bare pod; without a command it runs for ever."""
    container = {"name": "main", "image": "busybox:1.36", "resources": {"requests": {"cpu": cpu}}}
    if command:
        container["command"] = list(command)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def deployment(name: str, replicas: int, cpu: str = "100m", **spec: Any) -> Json:
    """A Deployment; ``spec`` is for its pods."""
    labels = {"app": name}
    inner = pod(name, cpu, **spec)["spec"] | {"restartPolicy": "Always"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": inner},
        },
    }


def configmap(name: str) -> Json:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


def appwrapper(name: str, *templates: Json, namespace: str = "default", **spec: Any) -> Json:
    """An AppWrapper in the later dialect; ``spec`` is for further fields."""
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"components": [{"template": one} for one in templates], **spec},
    }


def post(plane: ControlPlane, obj: Json) -> tuple[int, Json]:
    """The answer to the creation of an AppWrapper in the version that it says."""
    version = obj["apiVersion"].rpartition("/")[2]
    path = appwrappers_path(obj["metadata"].get("namespace", "default"), version)
    return plane.request("POST", path, obj)


def create(plane: ControlPlane, *objs: Json) -> Json:
    """Create AppWrappers one after the other; returns the last one."""
    answer: Json = {}
    for obj in objs:
        status, answer = post(plane, obj)
        assert status == 201, answer
    return answer


def patch(plane: ControlPlane, name: str, body: Json) -> None:
    """A merge patch of one AppWrapper."""
    path, merge = f"{appwrappers_path()}/{name}", "application/merge-patch+json"
    code, answer = plane.request("PATCH", path, body, content_type=merge)
    assert code == 200, answer


def delete(plane: ControlPlane, *names: str, namespace: str = "default") -> None:
    """Delete AppWrappers (all of the namespace if none is named) and wait for their pods' end."""
    path = appwrappers_path(namespace)
    for name in names or states(plane, namespace):
        plane.request("DELETE", f"{path}/{name}")
    gone = set(names)
    plane.wait_for(
        lambda: not _remains(plane, namespace, gone), 60, f"{names or 'all'} are gone, pods and all"
    )


def _remains(plane: ControlPlane, namespace: str, names: set[str]) -> list[str]:
    owned = [
        *items(plane, appwrappers_path(namespace)),
        *(
            one
            for one in items(plane, f"/api/v1/namespaces/{namespace}/pods")
            if f"{GROUP}/appwrapper" in one["metadata"].get("labels", {})
        ),
    ]
    return [name for name in map(_appwrapper_name, owned) if not names or name in names]


def _appwrapper_name(obj: Json) -> str:
    metadata = obj["metadata"]
    name: str = metadata.get("labels", {}).get(f"{GROUP}/appwrapper", metadata["name"])
    return name


# -- the CLI ---------------------------------------------------------------------------------


def cli(
    *args: str,
    kubeconfig: Path | None = None,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """What a person types: exit code, output and errors."""
    flags = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
    return subprocess.run(
        [*MCAD, *args, *flags],
        input=stdin,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


# -- texts -----------------------------------------------------------------------------------


def normalized(text: str) -> list[str]:
    """Lines with folded blanks; times in place of which the form is checked."""
    times = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "<time>", text)
    return [" ".join(line.split()) for line in times.splitlines()]


def assert_in_order(expected: str, actual: str) -> None:
    """Every expected line begins a line of the actual text, in this order."""
    lines = iter(normalized(actual))
    for wanted in expected.splitlines():
        assert any(line.startswith(wanted) for line in lines), f"{wanted!r} missing in\n{actual}"


QUEUED_LINES = """\
Last Transition Micro Time: <time>
Last Update Micro Time: <time>
Status: True
Type: Init
Last Transition Micro Time: <time>
Last Update Micro Time: <time>
Reason: AwaitingHeadOfLine
Status: True
Type: Queueing
Last Transition Micro Time: <time>
Last Update Micro Time: <time>
Reason: FrontOfQueue.
Status: True
Type: HeadOfLine
Last Transition Micro Time: <time>
Last Update Micro Time: <time>
Message: Insufficient resources to dispatch AppWrapper.
Reason: AppWrapperNotRunnable.
Status: True
Type: Backoff
Controllerfirsttimestamp: <time>
Filterignore: true
Number Of Requeueings: 0
Queuejobstate: Backoff
Requeueing Time In Seconds: 0
Sender: before [backoff] - Rejoining
State: Pending
"""
"""What MCAD's tutorial prints of ``kubectl describe`` of one that waits; blanks folded. KubeRay's
document shows what an older MCAD said."""
