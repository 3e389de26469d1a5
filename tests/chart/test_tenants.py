"""With the roles `view` and `edit` of one namespace, every command tells what is to be seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.client.figures.of_namespace import NOTE
from tests.chart.helm import Helm
from tests.cli.test_watch import typed
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher, install
from tests.e2e.support import GROUP, appwrapper, cli, create, deployment, states

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

TEAM = "team"
WARNING = f"warning: {NOTE}\n"


@dataclass(frozen=True)
class Scene:
    """One AppWrapper of the team runs, one waits; and one of another team runs."""

    plane: ControlPlane
    viewer: Path
    editor: Path


@pytest.fixture(scope="module")
def scene(helm: Helm, control_plane: ControlPlane) -> Iterator[Scene]:
    plane = control_plane
    plane.add_node("node-1", cpu="4", memory="8Gi")
    account = install(plane)
    roles = [one for one in helm.template() if "edit" in one["metadata"]["name"].split("-")]
    roles += [one for one in helm.template() if "view" in one["metadata"]["name"].split("-")]
    assert [one["kind"] for one in roles] == ["ClusterRole"] * 2
    plane.apply(roles)
    plane.wait_for(lambda: all(map(_knows(plane), ("view", "edit"))), what="aggregation")
    plane.create_namespace("others")
    users = {role: _bind(plane, role) for role in ("view", "edit")}
    with Dispatcher(plane, account):
        create(plane, appwrapper("runs", deployment("runs", 1, "1"), namespace=TEAM))
        create(plane, appwrapper("theirs", deployment("theirs", 1, "2"), namespace="others"))
        create(plane, appwrapper("waits", deployment("waits", 2, "1"), namespace=TEAM))
        plane.wait_for(
            lambda: states(plane, TEAM) == {"runs": "Running", "waits": "Pending"}, what="states"
        )
        yield Scene(plane, users["view"], users["edit"])


def _knows(plane: ControlPlane) -> Any:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    return lambda role: GROUP in json.dumps(plane.request("GET", f"{path}/{role}")[1])


def _bind(plane: ControlPlane, role: str) -> Path:
    """The kubeconfig of a ServiceAccount with this role in the team's namespace only."""
    token = plane.service_account(TEAM, role)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": TEAM},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "namespace": TEAM, "name": role}],
    }
    plane.apply([binding])
    return plane.kubeconfig_for_token(token, role)


@pytest.mark.parametrize("role", ["viewer", "editor"])
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("queue", ["waits"]),
        ("get", ["runs", "waits"]),
        ("get aw/waits -o wide", ["waits", "cpu: 2 requested, 1 available, 1 missing."]),
        ("describe waits", ["Position:     <unknown>", "cpu        2           1           1"]),
        ("describe runs", ["1 running", "runs   yes", "Dispatched"]),
        ("top", ["waits", "runs", "Capacity is not known."]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_commands_tell_of_the_own_namespace(
    scene: Scene, role: str, command: str, told: list[str]
) -> None:
    done = cli(*command.split(), "-n", TEAM, kubeconfig=getattr(scene, role))
    assert (done.returncode, done.stderr) == (0, WARNING)
    assert all(text in done.stdout for text in told), done.stdout
    assert "theirs" not in done.stdout


def test_what_others_have_stays_unseen(scene: Scene) -> None:
    for command in ("queue -A", "get -n others", "capacity"):
        done = cli(*command.split(), kubeconfig=scene.viewer)
        assert (done.returncode, done.stdout) == (1, "")
        assert len(done.stderr.splitlines()) == 1


def test_a_viewer_submits_nothing_and_learns_why(scene: Scene) -> None:
    done = cli("submit", "-f", "-", kubeconfig=scene.viewer, stdin=_manifest("refused"))
    assert done.returncode == 1
    assert 'cannot create resource "appwrappers"' in done.stderr
    assert done.stderr.endswith("; ask an administrator for this right\n")


def test_an_editor_submits_waits_and_watches(scene: Scene, tmp_path: Path) -> None:
    config = str(scene.editor)
    with typed(tmp_path, "get", "-w", "-n", TEAM, "--kubeconfig", config) as watch:
        watch.wait_for(lambda: len(watch.lines) >= 3)
        args = ("submit", "-f", "-", "--wait", "--timeout", "60s")
        done = cli(*args, kubeconfig=scene.editor, stdin=_manifest("more"))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1].endswith("more dispatched")
        watch.wait_for(lambda: any(li.startswith("more") and "Running" in li for li in watch.lines))
        assert watch.errors.strip() == WARNING.strip()


def _manifest(name: str) -> str:
    return yaml.safe_dump(appwrapper(name, deployment(name, 1, "500m"), namespace=TEAM))
