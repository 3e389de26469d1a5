"""Each verb of the CLI by role on a real API server, with the chart's ``edit`` and ``view``."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcad.cli.main import main
from tests.chart.conftest import helm
from tests.chart.helm import NAMESPACE, RELEASE, Helm, of_kind
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.process import Dispatcher
from tests.e2e.support import GROUP, appwrapper, create, deployment, post

pytestmark = [
    pytest.mark.controlplane,
    # A process ends with its connections; here the loop of a command ends before TLS is closed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
__all__ = ["helm"]

Json = dict[str, Any]

TEAM = "team-a"
ROLES = ("edit", "view", "admin")
ABSENT = ("Deployment", "NetworkPolicy", "PodDisruptionBudget")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with controlplane_or_skip() as running:
        running.add_node("only", cpu="8")
        running.create_namespace(TEAM)
        running.create_namespace(NAMESPACE)
        yield running


@pytest.fixture(scope="module")
def roles(plane: ControlPlane, helm: Helm) -> Iterator[Mapping[str, Path]]:
    """The chart with a dispatcher; a kubeconfig for each role in the namespace of a team."""
    objects = [one for one in helm.template() if one["kind"] not in ABSENT]
    plane.apply(of_kind(objects, "CustomResourceDefinition"))
    plane.wait_for_crd(f"appwrappers.{GROUP}")
    plane.apply([one for one in objects if one["kind"] != "CustomResourceDefinition"])
    account = plane.kubeconfig_for_token(plane.service_account(NAMESPACE, RELEASE), RELEASE)
    found = {"admin": plane.admin_kubeconfig}
    for role in ("edit", "view"):
        token = plane.service_account(TEAM, role)
        plane.kubectl(
            "create", "rolebinding", role, f"--clusterrole={role}",
            f"--serviceaccount={TEAM}:{role}", f"--namespace={TEAM}",
        )  # fmt: skip
        found[role] = plane.kubeconfig_for_token(token, role)
        plane.wait_for(
            partial(reads, found[role]),
            what="the role is aggregated and bound",
        )
    with Dispatcher(plane, account):
        yield found


def say(
    kubeconfig: Path, *args: str, stdin: str | None = None, where: Sequence[str] = ("-n", TEAM)
) -> Result:
    """Type a command, in the namespace of the team."""
    env = {"KUBECONFIG": str(kubeconfig), "COLUMNS": "120"}
    result = CliRunner().invoke(main, [*args, *where], input=stdin, env=env)
    gc.collect()  # what is left of its connections, while that is expected
    return result


def reads(kubeconfig: Path) -> bool:
    return say(kubeconfig, "get").exit_code == 0


NAME = f"appwrapper.{GROUP}/job"
PATCH = f'cannot patch resource "appwrappers" in API group "{GROUP}" in the namespace "{TEAM}"'
DELETE = PATCH.replace("patch", "delete")
CREATE = PATCH.replace("patch", "create")

READS = {
    ("queue",): "",
    ("get", "job"): "job ",
    ("describe", "job"): "Name:         job",
    ("tree", "job"): "└─Deployment/job ",
    ("events", "job"): " Dispatched ",
    ("wait", "job", "--for=dispatched", "--timeout=30s"): f"{NAME} dispatched",
    ("wait", "job", "--for=running", "--timeout=30s"): f"{NAME} running",
}
"""What every role may do, and what is printed."""

WRITES = {
    ("priority", "job", "5"): (f"{NAME} set to priority 5", PATCH),
    ("requeue", "job"): (f"{NAME} requeued", PATCH),
    ("hold", "job"): (f"{NAME} held", PATCH),
    ("release", "job"): (f"{NAME} released", PATCH),
    ("cancel", "job"): (f"{NAME} deleted", DELETE),
}
"""What is printed, and what a role without the right is told. Each dry run is tried before."""


@pytest.fixture(params=ROLES)
def role(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_what_a_role_may_do(plane: ControlPlane, roles: Mapping[str, Path], role: str) -> None:
    config, may = roles[role], role != "view"
    manifest = json.dumps(appwrapper("job", deployment("job", 1), namespace=TEAM))
    lint = say(config, "lint", "-", stdin=manifest)
    assert lint.exit_code == 0, lint.output
    assert ("you may not create it yourself" in lint.stderr) is not may
    sent = say(config, "submit", "-", stdin=manifest)
    assert sent.exit_code == (0 if may else 1)
    assert (f"{NAME} created" if may else CREATE) in sent.output
    if not may:
        create(plane, appwrapper("job", deployment("job", 1), namespace=TEAM))
    for args, words in reversed(READS.items()):
        result = say(config, *args)
        assert (result.exit_code, words in result.stdout) == (0, True), (args, result.output)
    for args, (done, refused) in WRITES.items():
        if args[0] == "release" and not may:  # there is nothing on hold
            continue
        if args[0] == "requeue":
            assert say(config, "wait", "job", "--for=dispatched").exit_code == 0
        for dry in (("--dry-run",), ()):
            result = say(config, *args, *dry)
            assert result.exit_code == (0 if may else 1), (args, result.output)
            assert (done if may else refused) in result.output
            assert may or result.stderr.strip().endswith("ask an administrator for this right")
    if not may:
        assert say(roles["admin"], "cancel", "job").exit_code == 0
    plane.wait_for(lambda: "job" not in say(config, "get", "-o", "name").stdout, 30, "it is gone")


def test_nothing_of_another_team(plane: ControlPlane, roles: Mapping[str, Path]) -> None:
    plane.create_namespace("team-b")
    assert post(plane, appwrapper("job", deployment("job", 1), namespace="team-b"))[0] == 201
    result = say(roles["edit"], "tree", "job")
    assert result.exit_code == 4
    for args in (("hold", "team-b/job"), ("hold", "--all", "-A"), ("logs", "team-b/job")):
        result = say(roles["edit"], *args, where=())
        assert (result.exit_code, result.stdout) == (1, "")
        assert re.fullmatch(
            r"error: appwrappers\S* .*is forbidden.*; ask an administrator for this right\n",
            result.stderr,
        )


def test_logs_need_the_right_to_read_them(plane: ControlPlane, roles: Mapping[str, Path]) -> None:
    """Simulated nodes have no kubelet: the answer shows that the API server has let it through."""
    create(plane, appwrapper("talks", deployment("talks", 1), namespace=TEAM))
    for role in ROLES:
        assert say(roles[role], "wait", "talks", "--for=running", "--timeout=60s").exit_code == 0
        result = say(roles[role], "logs", "talks")
        assert "forbidden" not in result.output
        assert re.match(r"error: pod talks-\S+: .*:10250/containerLogs/team-a/", result.stderr)
