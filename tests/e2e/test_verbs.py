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
from tests.chart.helm import NAMESPACE, RELEASE, Helm
from tests.controlplane.controlplane import ControlPlane, free_ports
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.process import SHORT_LEASE, Dispatcher
from tests.e2e.support import GROUP, appwrapper, create, deployment, post
from tests.e2e.test_visibility import POD_IP, applied, is_available, mounted
from tests.ui.process import Events, UiProcess

pytestmark = [
    pytest.mark.controlplane,
    pytest.mark.usefixtures("dispatcher"),
    # A process ends with its connections; here the loop of a command ends before TLS is closed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
__all__ = ["helm"]

Json = dict[str, Any]

TEAM = "team-a"
ROLES = ("edit", "view", "admin")
ANSWERS = "A dispatcher answers"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with controlplane_or_skip() as running:
        running.add_node("only", cpu="8")
        running.create_namespace(TEAM)
        yield running


@pytest.fixture(scope="module")
def visibility(plane: ControlPlane, helm: Helm) -> tuple[str, ...]:
    """The chart without its Deployment; the arguments with which that serves the visibility API."""
    (port,) = free_ports(1)
    objects = applied(plane, helm, port, ui={"enabled": True})
    plane.wait_for_crd(f"dispatchpauses.{GROUP}")
    return (
        f"--visibility=127.0.0.1:{port}",
        f"--visibility-certs={mounted(plane, objects, 'visibility')}",
        f"--visibility-service={NAMESPACE}/{RELEASE}-visibility",
    )


@pytest.fixture(scope="module")
def roles(plane: ControlPlane, visibility: tuple[str, ...]) -> Mapping[str, Path]:
    """A kubeconfig for each role in the namespace of a team."""
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
    return found


@pytest.fixture(scope="module")
def dispatcher(
    plane: ControlPlane, roles: Mapping[str, Path], visibility: tuple[str, ...]
) -> Iterator[Dispatcher]:
    """The dispatcher with the rights that the chart grants."""
    account = plane.kubeconfig_for_token(plane.service_account(NAMESPACE, RELEASE), RELEASE)
    with Dispatcher(plane, account, *SHORT_LEASE, *visibility, env={"POD_IP": POD_IP}) as running:
        plane.wait_for(lambda: is_available(plane), 60, "the API server reaches the dispatcher")
        yield running


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
    ("history", "-o", "json"): '"items": [',
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


def test_another_user_is_impersonated(roles: Mapping[str, Path]) -> None:
    """With the rights of that user, of its groups, and if the caller may impersonate it."""
    viewer = f"system:serviceaccount:{TEAM}:view"
    as_viewer = say(roles["admin"], "--as", viewer, "hold", "--all", "--yes", "--dry-run")
    assert as_viewer.exit_code == 0, as_viewer.output
    refused = say(roles["admin"], "pause", "--as", viewer, where=())
    assert refused.exit_code == 1
    assert f'User "{viewer}" cannot create resource "dispatchpauses"' in refused.stderr
    nobody = ("--as", "nobody", "get", "-A")
    assert say(roles["admin"], *nobody, where=()).exit_code == 1
    masters = say(roles["admin"], *nobody, "--as-group", "a", "--as-group=system:masters", where=())
    assert masters.exit_code == 0, masters.output
    denied = say(roles["edit"], "get", "--as", "nobody")
    assert denied.exit_code == 1
    assert f'User "system:serviceaccount:{TEAM}:edit" cannot impersonate' in denied.stderr


def test_logs_need_the_right_to_read_them(plane: ControlPlane, roles: Mapping[str, Path]) -> None:
    """Simulated nodes have no kubelet: the answer shows that the API server has let it through."""
    create(plane, appwrapper("talks", deployment("talks", 1), namespace=TEAM))
    for role in ROLES:
        assert say(roles[role], "wait", "talks", "--for=running", "--timeout=60s").exit_code == 0
        result = say(roles[role], "logs", "talks")
        assert "forbidden" not in result.output
        assert re.match(r"error: pod talks-\S+: .*:10250/containerLogs/team-a/", result.stderr)


def test_a_pause_outlives_the_dispatcher(
    plane: ControlPlane, roles: Mapping[str, Path], dispatcher: Dispatcher
) -> None:
    """Users see it and cannot change it; kill -9 between pause and resume changes nothing. A page
    that is open meanwhile shows it all."""
    with UiProcess(roles["admin"]) as page:
        _pause_and_resume(plane, roles, dispatcher, page.events())


def _pause_and_resume(
    plane: ControlPlane, roles: Mapping[str, Path], dispatcher: Dispatcher, page: Events
) -> None:
    create(plane, appwrapper("early", deployment("early", 1), namespace=TEAM))
    assert say(roles["edit"], "wait", "early", "--for=running", "--timeout=60s").exit_code == 0
    refused = say(roles["edit"], "pause", where=())
    assert refused.exit_code == 1
    assert 'cannot create resource "dispatchpauses"' in refused.stderr
    paused = say(roles["admin"], "pause", "--reason", "disks are moved", where=())
    assert (paused.exit_code, paused.stdout) == (0, "Dispatch is paused for the whole cluster.\n")

    create(plane, appwrapper("late", deployment("late", 1), namespace=TEAM))
    why = "Dispatch is paused for the whole cluster (DispatchPause cluster): disks are moved"
    plane.wait_for(lambda: why in say(roles["view"], "describe", "late").stdout, what=why)
    assert "DispatchPaused" in say(roles["view"], "queue").stdout
    plane.wait_for(lambda: why in page.parts["health"], what="the page says that it is paused")
    assert ANSWERS in page.parts["health"]
    assert 'mcad_dispatch_paused{scope="cluster"} 1.0' in dispatcher.get("/metrics")[1]

    dispatcher.kill()
    plane.wait_for(
        lambda: ANSWERS not in page.parts["health"], what="the page says that none answers"
    )
    assert why in page.parts["health"]
    dispatcher.start()
    create(plane, appwrapper("later", deployment("later", 1), namespace=TEAM))
    plane.wait_for(lambda: why in say(roles["view"], "describe", "later").stdout, what=why)
    asked = ("get", "late", "later", "-o", "jsonpath={.items[*].waitsFor}")
    plane.wait_for(
        lambda: say(roles["view"], *asked).stdout.split() == ["DispatchPaused"] * 2,
        what="the next leader answers",
    )
    plane.wait_for(
        lambda: ANSWERS in page.parts["health"] and page.parts["queue"].count(why) == 2,
        what="the page shows the next leader, and what waits",
    )
    assert why in page.parts["health"]
    assert "early" in say(roles["view"], "get", "--state", "running", "-o", "name").stdout
    assert say(roles["edit"], "resume", where=()).exit_code == 1
    assert say(roles["admin"], "resume", where=()).exit_code == 0
    for name in ("late", "later"):
        done = say(roles["edit"], "wait", name, "--for=running", "--timeout=60s")
        assert done.exit_code == 0, done.output
    assert 'mcad_dispatch_paused{scope="cluster"} 0.0' in dispatcher.get("/metrics")[1]
    plane.wait_for(
        lambda: "paused" not in page.parts["health"] + page.parts["queue"],
        what="the page shows that dispatch goes on",
    )
    assert not page.is_over


def test_a_tenant_sees_the_own_namespace_alone_in_the_page(
    plane: ControlPlane, roles: Mapping[str, Path]
) -> None:
    """With ``view`` in one namespace: rows, drawers, search and streams have nothing of others."""
    plane.create_namespace("team-b")
    create(plane, appwrapper("secret-1", deployment("secret-1", 1), namespace="team-b"))
    create(plane, appwrapper("mine-1", deployment("mine-1", 1), namespace=TEAM))
    drawer = f"/appwrappers/{TEAM}/mine-1"
    with UiProcess(roles["view"], "-n", TEAM) as page:
        events = page.events()
        plane.wait_for(lambda: "mine-1" in page.get()[1], what="the page shows the AppWrapper")
        create(plane, appwrapper("secret-2", deployment("secret-2", 1), namespace="team-b"))
        create(plane, appwrapper("mine-2", deployment("mine-2", 1), namespace=TEAM))
        plane.wait_for(lambda: "mine-2" in events.text, what="the open page shows the next one")
        found = {
            path: page.get(path)
            for path in (
                "/", drawer, f"{drawer}/facts", f"{drawer}/why", "/?name=secret",
                "/?namespace=team-b", "/appwrappers/team-b/secret-1",
            )
        }  # fmt: skip
    statuses = {path: status for path, (status, _) in found.items()}
    assert statuses.pop("/appwrappers/team-b/secret-1") == 404
    assert set(statuses.values()) == {200}
    assert "Your rights do not show the capacity" in found["/"][1]
    assert "No AppWrapper matches the filter" in found["/?name=secret"][1]
    assert "mine-1" in found[drawer][1]
    told = {"/?name=secret": "secret", "/?namespace=team-b": "team-b"}
    told |= {"/appwrappers/team-b/secret-1": "team-b/secret-1"}  # what the address says
    for path, (_, text) in (*found.items(), ("/events", (200, events.text))):
        left = text.replace(told.get(path, "-"), "")
        assert "secret" not in left, path
        assert "team-b" not in left, path
        assert "Not shown" not in text, path


def test_a_login_shows_what_its_token_may_see(
    plane: ControlPlane, roles: Mapping[str, Path], dispatcher: Dispatcher
) -> None:
    """The page runs with the rights of an administrator, and uses none of them."""
    plane.create_namespace("team-b")
    create(plane, appwrapper("hidden", deployment("hidden", 1), namespace="team-b"))
    create(plane, appwrapper("own", deployment("own", 1), namespace=TEAM))
    done = say(roles["edit"], "wait", "own", "--for=running", "--timeout=60s")
    assert done.exit_code == 0, done.output
    account = plane.service_account(TEAM, "view")
    about = f"/appwrappers/{TEAM}/own"
    for namespace in ("", TEAM):
        with UiProcess(roles["admin"], login=(account, namespace)) as page:
            text = page.get()[1]
            yaml, pods = page.get(f"{about}/yaml")[1], page.get(f"{about}/pods")[1]
            (pod,) = re.findall(rf'href="({about}/pods/own-[^"]+)"', pods)
            log = page.get(pod)[1]
            others = [page.get(f"/appwrappers/team-b/hidden{part}") for part in ("", "/yaml")]
        assert ANSWERS in text
        assert f"system:serviceaccount:{TEAM}:view" in text
        assert f"Namespace <b>{TEAM}</b> only" in text
        assert ">own<" in text
        assert "kind: Deployment" in yaml
        assert "Events" in log
        assert ":10250/containerLogs/" in log, "which no kubelet answers here"
        assert [status for status, _ in others] == [404, 200]
        assert "does not show namespace team-b" in others[1][1]
        assert "kind: Deployment" not in others[1][1]


def test_the_account_of_the_chart_shows_the_whole_cluster_in_the_page(
    plane: ControlPlane, roles: Mapping[str, Path]
) -> None:
    """With ``ui.enabled``: nothing is missing but wrapped Secrets and ConfigMaps."""
    plane.create_namespace("team-b")
    for space in (TEAM, "team-b"):
        create(plane, appwrapper("shown", deployment("shown", 1), namespace=space))
    account = f"{RELEASE}-ui"
    token = plane.service_account(NAMESPACE, account)
    with UiProcess(plane.kubeconfig_for_token(token, account), "-A") as page:
        plane.wait_for(lambda: page.get()[1].count(">shown<") == 2, what="all namespaces are shown")
        text = page.get()[1]
        drawer = f"/appwrappers/{TEAM}/shown"
        plane.wait_for(lambda: "Dispatched" in page.get(f"{drawer}/events")[1], what="its Events")
        plane.wait_for(lambda: "<td>yes</td>" in page.get(drawer)[1], what="its Deployment")
        status, why = page.get(f"{drawer}/why")
    assert ANSWERS in text
    assert "Your rights" not in text
    assert (status, "forbidden" in why) == (200, False), why
