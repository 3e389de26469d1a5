"""What a tenant, a team lead, an operator and an administrator are told, by roles of the chart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.helm import NAMESPACE, RELEASE, Helm
from tests.cli.test_watch import typed
from tests.controlplane.controlplane import ControlPlane, free_ports
from tests.e2e.process import Dispatcher
from tests.e2e.support import appwrapper, cli, create, deployment, states
from tests.e2e.test_visibility import POD_IP, applied, is_available, mounted

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

TEAM, OTHERS = "team", "others"
OTHER = "an AppWrapper of another namespace"
STORED = "; what is stored is shown, without positions, demands, start times and capacity\n"
ROLES = ("tenant", "lead", "operator", "administrator")


@dataclass(frozen=True)
class Scene:
    """One AppWrapper of the team runs, one waits; and one of another team runs."""

    plane: ControlPlane
    users: dict[str, Path]


@pytest.fixture(scope="module")
def scene(helm: Helm, control_plane: ControlPlane) -> Iterator[Scene]:
    plane, (port,) = control_plane, free_ports(1)
    plane.add_node("node-1", cpu="4", memory="8Gi")
    config = {"quotaEnabled": True}
    objects = applied(plane, helm, port, config=config)
    plane.wait_for_crd("quotasubtrees.quota.codeflare.dev")
    for name in (TEAM, OTHERS):
        plane.create_namespace(name)
    plane.apply(
        [
            _subtree("root", "", org="8"),
            _subtree("teams", "org", **{TEAM: "6", OTHERS: "2", "default": "0"}),
        ]
    )
    plane.wait_for(lambda: "whatifs" in _role(plane, "edit"), what="the roles are aggregated")
    users = {
        "tenant": _user(plane, "tenant", (TEAM, "edit")),
        "lead": _user(plane, "lead", (TEAM, "admin"), (OTHERS, "view")),
        "operator": _user(plane, "operator", ("", "edit")),
        "administrator": _user(plane, "administrator", ("", "cluster-admin")),
    }
    account = plane.kubeconfig_for_token(plane.service_account(NAMESPACE, RELEASE), RELEASE)
    args = (
        "--set=quotaEnabled=true",
        f"--visibility=127.0.0.1:{port}",
        f"--visibility-certs={mounted(plane, objects, 'visibility')}",
        f"--visibility-service={NAMESPACE}/{RELEASE}-visibility",
    )
    with Dispatcher(plane, account, *args, env={"POD_IP": POD_IP}):
        plane.wait_for(lambda: is_available(plane), 60, "the API server reaches the dispatcher")
        create(plane, _owned("runs", "1", TEAM), _owned("theirs", "2", OTHERS))
        create(plane, _owned("waits", "2", TEAM))
        plane.wait_for(
            lambda: states(plane, TEAM) == {"runs": "Running", "waits": "Pending"}, what="states"
        )
        plane.wait_for(lambda: states(plane, OTHERS) == {"theirs": "Running"}, what="theirs")
        yield Scene(plane, users)


def _role(plane: ControlPlane, name: str) -> str:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    return json.dumps(plane.request("GET", f"{path}/{name}")[1])


def _owned(name: str, cpu: str, namespace: str) -> Json:
    """One pod, charged to the leaf of its namespace."""
    obj = appwrapper(name, deployment(name, 1, cpu), namespace=namespace)
    obj["metadata"]["labels"] = {"teams": namespace}
    return obj


def _subtree(name: str, parent: str, **cpu: str) -> Json:
    children = [{"name": each, "quotas": {"requests": {"cpu": n}}} for each, n in cpu.items()]
    return {
        "apiVersion": "quota.codeflare.dev/v1alpha1",
        "kind": "QuotaSubtree",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"tree": "teams"}},
        "spec": {"children": children} | ({"parent": parent} if parent else {}),
    }


def _user(plane: ControlPlane, name: str, *bound: tuple[str, str]) -> Path:
    """The kubeconfig of a user with these roles: in a namespace, or everywhere (""). Its own
    namespace is the team's."""
    token = plane.service_account(TEAM, name)
    for where, role in bound:
        kind = "RoleBinding" if where else "ClusterRoleBinding"
        place = {"namespace": where} if where else {}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": f"user-{name}", **place},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [{"kind": "ServiceAccount", "namespace": TEAM, "name": name}],
        }
        plane.apply([binding])
    path = plane.kubeconfig_for_token(token, name)
    plane.wait_for(
        lambda: plane.kubectl("get", "appwrappers", "-n", TEAM, kubeconfig=path, check=False),
        what="the binding counts",
    )
    return path


NEW = _owned("new", "1", TEAM)
FAR = _owned("far", "1", OTHERS)

# command, and by role the exit code, with what is told; "!" before what is not.
Told = tuple[int, tuple[str, ...]]
MATRIX: dict[str, tuple[Told, Told, Told, Told]] = {
    f"queue -n {TEAM}": ((0, ("waits", "!theirs")),) * 4,
    f"get -n {OTHERS}": (
        (1, (f"may not list appwrappers.workload.codeflare.dev in namespace {OTHERS}",)),
        *(((0, ("theirs",)),) * 3),
    ),
    "queue -A": (
        (1, ("in the whole cluster; choose a namespace of yours",)),
        (1, ("in the whole cluster; choose a namespace of yours",)),
        (0, ("waits",)),
        (0, ("waits",)),
    ),
    f"history -o json -n {TEAM}": ((0, ('"items": []',)),) * 4,
    "history -o json -A": (
        (1, ("in the whole cluster; choose a namespace of yours",)),
        (1, ("in the whole cluster; choose a namespace of yours",)),
        (0, ('"items": []',)),
        (0, ('"items": []',)),
    ),
    f"describe waits -n {TEAM}": (
        (0, ("Position: 1 of 1", "cpu: 2 requested, 1 available", "(cpu: 1 of 6 used)")),
    )
    * 4,
    f"why waits -n {TEAM}": (
        (0, (f"{OTHER} 2", "team/runs 1", " ends.", "!theirs")),
        (0, (f"{OTHER} 2", "team/runs 1", "1 more node like node-1", "!theirs")),
        *(((0, ("others/theirs 2", "team/runs 1", "1 more node like node-1")),) * 2),
    ),
    f"what-if -f NEW -n {TEAM}": (((0, ("team/new", "starts", "!theirs")),) * 4),
    f"submit NEW --dry-run=queue -n {TEAM}": (((0, ("team/new", "starts")),) * 4),
    f"what-if -f FAR -n {OTHERS}": (
        (3, ("whatifs", "ask an administrator for this right")),
        (3, ("whatifs", "ask an administrator for this right")),
        (0, ("others/far",)),
        (0, ("others/far",)),
    ),
    f"what-if --without others/theirs -n {TEAM}": (
        (3, ("cannot list resource", "appwrapperreports", "!theirs")),
        (3, ("cannot list resource", "!theirs")),
        (0, ("team/waits", "starts")),
        (0, ("team/waits", "starts")),
    ),
    "quota": (
        (1, ("you may not list quotasubtrees",)),
        (1, ("you may not list quotasubtrees",)),
        (0, ("team cpu 6 1", "others cpu 2 2")),
        (0, ("team cpu 6 1",)),
    ),
    "capacity": (
        (3, ("you may not list capacityreports of this cluster",)),
        (3, ("you may not list capacityreports of this cluster",)),
        (0, ("node-1", "<total>")),
        (0, ("node-1", "<total>")),
    ),
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("command", MATRIX)
def test_who_is_told_what(scene: Scene, role: str, command: str, tmp_path: Path) -> None:
    code, told = MATRIX[command][ROLES.index(role)]
    for name, obj in (("NEW", NEW), ("FAR", FAR)):
        (tmp_path / name).write_text(yaml.safe_dump(obj))
    words = [str(tmp_path / one) if one in ("NEW", "FAR") else one for one in command.split()]
    done = cli(*words, kubeconfig=scene.users[role])
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == code, said
    assert len(done.stderr.splitlines()) <= (code != 0), said
    for text in told:
        assert (text.removeprefix("!") in said) is not text.startswith("!"), (text, said)


def test_nothing_was_created_by_asking(scene: Scene) -> None:
    assert set(states(scene.plane, TEAM)) == {"runs", "waits"}
    assert set(states(scene.plane, OTHERS)) == {"theirs"}


def test_a_tenant_submits_waits_and_watches(scene: Scene, tmp_path: Path) -> None:
    tenant = scene.users["tenant"]
    with typed(tmp_path, "get", "-w", "-n", TEAM, "--kubeconfig", str(tenant)) as watch:
        watch.wait_for(lambda: len(watch.lines) >= 3)
        args = ("submit", "-f", "-", "--wait", "--timeout", "60s")
        manifest = yaml.safe_dump(_owned("more", "500m", TEAM))
        done = cli(*args, kubeconfig=tenant, stdin=manifest)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1].endswith("more dispatched")
        watch.wait_for(lambda: any(li.startswith("more") and "Running" in li for li in watch.lines))
        assert watch.errors.strip() == ""


def test_without_a_dispatcher_a_tenant_is_shown_what_is_stored(scene: Scene) -> None:
    """Runs last: the API is switched off for good."""
    api = "/apis/apiregistration.k8s.io/v1/apiservices"
    name = "v1beta1.visibility.workload.codeflare.dev"
    scene.plane.request("DELETE", f"{api}/{name}")
    tenant = scene.users["tenant"]
    scene.plane.wait_for(
        lambda: cli("queue", "-n", TEAM, kubeconfig=tenant).stderr.endswith(STORED),
        what="the API is gone",
    )
    done = cli("queue", "-n", TEAM, "-o", "json", kubeconfig=tenant)
    assert len(done.stderr.splitlines()) == 1
    (row,) = json.loads(done.stdout)["items"]
    assert (row["name"], row["position"], row["demand"]) == ("waits", None, None)
    assert "cpu: 2 requested, 1 available" in row["why"]
    assert cli("capacity", kubeconfig=tenant).returncode == 3
