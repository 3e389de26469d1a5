"""The visibility API behind a real kube-apiserver: what each caller is told.

The chart's objects are used as they are but for the Service: a test server listens on loopback
only, which an EndpointSlice may not name, so the Service is an alias of ``localhost``.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import pki
from tests.chart.conftest import helm
from tests.chart.helm import NAMESPACE, RELEASE, Helm, of_kind, only
from tests.controlplane.controlplane import ControlPlane, free_ports
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.process import Dispatcher
from tests.e2e.support import appwrapper, cli, create, pod, states

pytestmark = pytest.mark.controlplane
__all__ = ["helm"]

Json = dict[str, Any]

ROOT = "/apis/visibility.workload.codeflare.dev/v1beta1"
APISERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.visibility.workload.codeflare.dev"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
TEAMS = ("team-a", "team-b")
POD_IP = "10.130.7.9"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Two teams on one node that has room for two pods: each runs one, and two of each wait."""
    with controlplane_or_skip() as running:
        running.add_node("only", cpu="2")
        for team in TEAMS:
            running.create_namespace(team)
        yield running


@pytest.fixture(scope="module")
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, helm: Helm, port: int) -> list[Json]:
    """The chart's objects without its pods."""
    return applied(plane, helm, port, metrics={"secure": {"enabled": True}})


def applied(plane: ControlPlane, helm: Helm, port: int, **values: Any) -> list[Json]:
    """The chart's objects without its pods; the visibility API is at this port."""
    plane.create_namespace(NAMESPACE)
    objects = helm.template(visibility={"enabled": True}, **values)
    absent = ("Deployment", "NetworkPolicy", "PodDisruptionBudget")
    kept = [one for one in objects if one["kind"] not in absent]
    service = only(
        [one for one in kept if one["metadata"]["name"] == f"{RELEASE}-visibility"], "Service"
    )
    service["spec"] = {
        "type": "ExternalName",
        "externalName": "localhost",
        "ports": [{"name": "https", "port": port}],
    }
    only(kept, "APIService")["spec"]["service"]["port"] = port
    plane.apply(of_kind(kept, "CustomResourceDefinition"))
    plane.wait_for_crd("appwrappers.workload.codeflare.dev")
    plane.apply([one for one in kept if one["kind"] != "CustomResourceDefinition"])
    return kept


@pytest.fixture(scope="module")
def certificates(plane: ControlPlane, installed: list[Json]) -> Path:
    """The Secret as the pod would have it."""
    return mounted(plane, installed, "visibility")


def mounted(plane: ControlPlane, installed: list[Json], name: str) -> Path:
    """A folder with the content of one of the chart's Secrets."""
    folder = plane.folder / name
    folder.mkdir()
    (secret,) = [
        one
        for one in of_kind(installed, "Secret")
        if one["metadata"]["name"] == f"{RELEASE}-{name}"
    ]
    for key, text in secret["data"].items():
        (folder / key).write_bytes(base64.b64decode(text))
    return folder


Begin = Callable[[str], Dispatcher]


@pytest.fixture(scope="module")
def begin(plane: ControlPlane, installed: list[Json], certificates: Path, port: int) -> Begin:
    """Makes a process of the chart's Deployment, by its name."""
    account = plane.kubeconfig_for_token(plane.service_account(NAMESPACE, RELEASE), RELEASE)
    args = (
        f"--visibility=127.0.0.1:{port}",
        f"--visibility-certs={certificates}",
        f"--visibility-service={NAMESPACE}/{RELEASE}-visibility",
        "--metrics=127.0.0.1:0",
        f"--metrics-certs={mounted(plane, installed, 'metrics')}",
    )
    env = {"POD_IP": POD_IP}
    return lambda name: Dispatcher(plane, account, *args, env=env, name=name)


@pytest.fixture(scope="module")
def dispatcher(plane: ControlPlane, begin: Begin) -> Iterator[Dispatcher]:
    with begin("leader") as running:
        for number in range(3):
            for team in TEAMS:
                create(plane, appwrapper(f"job-{number}", pod(f"p{number}", "1"), namespace=team))
        plane.wait_for(lambda: is_available(plane), 60, "the API server reaches the dispatcher")
        plane.wait_for(lambda: waiting(plane) == 4, 30, "two run, four wait")
        yield running


def is_available(plane: ControlPlane) -> bool:
    conditions = plane.request("GET", APISERVICE)[1].get("status", {}).get("conditions", [])
    return any(one["type"] == "Available" and one["status"] == "True" for one in conditions)


def waiting(plane: ControlPlane) -> int:
    found = [state for team in TEAMS for state in states(plane, team).values()]
    return found.count("Pending") if found.count("Running") == 2 else 0


@pytest.fixture(scope="module")
def tenant(plane: ControlPlane) -> Path:
    """A user with the role ``edit`` in team-a and no right elsewhere."""
    token = plane.service_account("team-a", "tenant")
    plane.kubectl(
        "create", "rolebinding", "tenant", "--clusterrole=edit", "--serviceaccount=team-a:tenant",
        "--namespace=team-a",
    )  # fmt: skip
    path = plane.kubeconfig_for_token(token, "tenant")
    plane.wait_for(
        lambda: plane.kubectl("get", "appwrappers", "-n", "team-a", kubeconfig=path, check=False),
        what="the binding counts",
    )
    return path


def raw(plane: ControlPlane, path: str, kubeconfig: Path) -> Json:
    answer: Json = json.loads(plane.kubectl("get", "--raw", path, kubeconfig=kubeconfig))
    return answer


def test_a_tenant_sees_positions_of_its_namespace(
    plane: ControlPlane, dispatcher: Dispatcher, tenant: Path
) -> None:
    path = f"{ROOT}/namespaces/team-a/appwrapperreports?waiting=true"
    rows = [one["status"] for one in raw(plane, path, tenant)["items"]]
    assert [(row["namespace"], row["name"]) for row in rows] == [
        ("team-a", "job-1"),
        ("team-a", "job-2"),
    ]
    assert [row["position"] for row in rows] == [1, 3], "team-b's are between"
    assert all(row["why"].startswith("cpu: 1 requested, 0 available") for row in rows)


def test_kubectl_prints_them_as_a_table(
    plane: ControlPlane, dispatcher: Dispatcher, tenant: Path
) -> None:
    text = plane.kubectl("get", "appwrapperreports", "-n", "team-a", kubeconfig=tenant)
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["NAME", "POSITION", "STATE", "PRIORITY", "WAITS-FOR", "FIRST-SEEN"]
    assert [line[:5] for line in lines[1:3]] == [
        ["job-1", "1", "Pending", "0", "cpu"],
        ["job-2", "3", "Pending", "0", "cpu"],
    ]
    assert lines[3][:3] == ["job-0", "0", "Running"]


def test_a_tenant_sees_nothing_of_others(
    plane: ControlPlane, dispatcher: Dispatcher, tenant: Path
) -> None:
    view = raw(plane, f"{ROOT}/namespaces/team-a/appwrapperreports/job-2", tenant)["status"]
    assert (view["position"], view["inLine"]) == (3, 4)
    assert [row["name"] for row in view["ahead"]] == ["job-1"], "of its own namespace"
    everything = raw(
        plane, f"{ROOT}/namespaces/team-a/appwrapperreports/job-2", plane.admin_kubeconfig
    )
    assert [row["namespace"] for row in everything["status"]["ahead"]] == ["team-a", "team-b"]
    for path in (
        "appwrapperreports",
        "namespaces/team-b/appwrapperreports",
        "namespaces/team-b/appwrapperreports/job-1",
        "capacityreports/cluster",
        "quotareports/cluster",
        "quotareports/cluster/node?tree=a&node=b",
        "namespaces/team-a%2Fappwrapperreports%2F..%2F..%2Fteam-b/appwrapperreports",
    ):
        said = plane.kubectl("get", "--raw", f"{ROOT}/{path}", kubeconfig=tenant, check=False)
        assert "orbidden" in said or "not found" in said or "NotFound" in said, (path, said)


def test_what_is_not_there(plane: ControlPlane, dispatcher: Dispatcher, tenant: Path) -> None:
    said = plane.kubectl("get", "appwrapperreport", "x", "-n", "team-a", check=False)
    assert 'appwrapperreports.visibility.workload.codeflare.dev "x" not found' in said
    status, answer = plane.request("GET", f"{ROOT}/appwrapperreports?watch=true")
    assert (status, answer["reason"]) == (405, "MethodNotAllowed")
    assert plane.request("POST", f"{ROOT}/namespaces/team-a/appwrapperreports", {})[0] == 405


def test_the_cluster_is_told_to_those_who_may_see_it(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    view = plane.request("GET", f"{ROOT}/capacityreports/cluster")[1]["status"]
    assert view == json.loads(dispatcher.get("/api/v1/capacity")[1])
    assert plane.request("GET", f"{ROOT}/quotareports/cluster")[1]["status"] == {
        "enabled": False,
        "trees": [],
    }
    rows = plane.request("GET", f"{ROOT}/appwrapperreports?starts=true")[1]["items"]
    told = json.loads(dispatcher.get("/api/v1/appwrappers?starts=true")[1])["items"]
    assert [row["status"] for row in rows] == told


def test_only_the_front_proxy_is_answered(
    plane: ControlPlane, dispatcher: Dispatcher, port: int, certificates: Path
) -> None:
    """The headers alone are not believed, nor is a certificate of another name."""
    url = f"https://localhost:{port}{ROOT}/appwrapperreports"
    asked = urllib.request.Request(
        url, headers={"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    )
    context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    context.check_hostname = False
    with pytest.raises(OSError, match=r"(?i)certificate|alert|reset|closed|EOF"):
        urllib.request.urlopen(asked, timeout=5, context=context).read()
    folder = plane.layout.front_proxy
    pki.issue(folder, "ca", "impostor")
    context.load_cert_chain(folder / "impostor.crt", folder / "impostor.key")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(asked, timeout=5, context=context)
    with refused.value as answer:
        assert (answer.code, json.loads(answer.read())["reason"]) == (401, "Unauthorized")


def test_the_slice_of_the_service_names_the_leader(
    plane: ControlPlane, dispatcher: Dispatcher, port: int
) -> None:
    found = plane.request("GET", f"{SLICES}/{RELEASE}-visibility-ipv4")[1]
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == f"{RELEASE}-visibility"
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Service"
    assert [one["addresses"] for one in found["endpoints"]] == [[POD_IP]]
    assert found["ports"] == [{"name": "https", "port": port, "protocol": "TCP"}]


def test_namespaces_can_be_deleted_while_it_is_served(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    plane.create_namespace("short-lived")
    plane.kubectl("delete", "namespace", "short-lived", "--timeout=60s")


def test_discovery_names_the_kinds(plane: ControlPlane, dispatcher: Dispatcher) -> None:
    text = plane.kubectl(
        "api-resources", "--api-group=visibility.workload.codeflare.dev", "--no-headers"
    )
    group = "visibility.workload.codeflare.dev/v1beta1"
    assert [line.split() for line in text.splitlines()] == [
        ["appwrapperreports", group, "true", "AppWrapperReport"],
        ["capacityreports", group, "false", "CapacityReport"],
        ["quotareports", group, "false", "QuotaReport"],
        ["whatifs", group, "true", "WhatIf"],
    ]


# -- the CLI -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args", [("queue",), ("get",), ("queue", "-l", "team!=x"), ("describe", "job-2")], ids=" ".join
)
def test_the_cli_tells_a_tenant_what_the_dispatcher_knows(
    args: tuple[str, ...], plane: ControlPlane, dispatcher: Dispatcher, tenant: Path
) -> None:
    """The port has the same figures, but for the names of what is ahead in other namespaces."""
    since = plane.audit_mark()
    done = cli(*args, "-n", "team-a", "-o", "json", kubeconfig=tenant)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    port_args = args[:1] if "-l" in args else args
    asked = cli(*port_args, "-n", "team-a", "-o", "json", "--server", dispatcher.url)
    expected = json.loads(asked.stdout)
    if args[0] == "describe":
        told, expected = told["appwrapper"], expected["appwrapper"]
        assert [row["namespace"] for row in expected["ahead"]] == ["team-a", "team-b"]
        expected["ahead"] = [row for row in expected["ahead"] if row["namespace"] == "team-a"]
    assert told == expected
    listed = {one.resource for one in plane.audit(since) if one.user.endswith(":tenant")}
    assert not listed & {"nodes", "pods", "leases"}


def test_without_the_right_the_cli_says_so(
    plane: ControlPlane, dispatcher: Dispatcher, tenant: Path
) -> None:
    done = cli("capacity", kubeconfig=tenant)
    assert (done.returncode, done.stdout) == (3, "")
    assert "you may not list capacityreports of this cluster; ask an administrator" in done.stderr


# -- metrics over TLS ----------------------------------------------------------------------------


def test_metrics_are_for_those_that_may_get_their_path(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    """The certificate is for the Service's name; the role is that of the chart."""
    found = plane.wait_for(
        lambda: re.search(r"msg=\"metrics listening\" address=127.0.0.1:(\d+)", dispatcher.log()),
        what="the port of metrics",
    )
    prometheus = plane.service_account("monitoring", "prometheus")
    ask = lambda token: scrape(plane, int(found[1]), token)  # noqa: E731
    assert ask("") == (401, "give a bearer token of this cluster\n")
    assert ask("of another cluster")[0] == 401
    code, text = ask(prometheus)
    assert (code, 'cannot get path "/metrics"' in text) == (403, True)
    plane.kubectl(
        "create", "clusterrolebinding", "prometheus", f"--clusterrole={RELEASE}-metrics-reader",
        "--serviceaccount=monitoring:prometheus",
    )  # fmt: skip
    code, text = plane.wait_for(
        lambda: found if (found := ask(prometheus))[0] == 200 else None, what="the binding counts"
    )
    assert "mcad_leader 1.0" in text


def scrape(plane: ControlPlane, port: int, token: str) -> tuple[int, str]:
    """As Prometheus does, which reaches the pod by its address and expects the Service's name."""
    trusting = ssl.create_default_context(cafile=str(plane.folder / "metrics" / "ca.crt"))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    line = http.client.HTTPSConnection("127.0.0.1", port, timeout=10)
    line.sock = trusting.wrap_socket(
        socket.create_connection(("127.0.0.1", port)),
        server_hostname=f"{RELEASE}.{NAMESPACE}.svc",
    )
    line.request("GET", "/metrics", headers=headers)
    answer = line.getresponse()
    text = answer.read().decode()
    line.close()
    return answer.status, text


# -- helm test -----------------------------------------------------------------------------------


def test_what_helm_test_runs_passes_with_its_rights(
    plane: ControlPlane, helm: Helm, dispatcher: Dispatcher, installed: list[Json]
) -> None:
    hooks = helm.tests()
    plane.apply([one for one in hooks if one["kind"] != "Pod"])
    account = only(hooks, "ServiceAccount")["metadata"]["name"]
    kubeconfig = plane.kubeconfig_for_token(plane.service_account(NAMESPACE, account), account)
    config = plane.folder / "check.yaml"
    config.write_text(only(installed, "ConfigMap")["data"]["config.yaml"])
    (container,) = only(hooks, "Pod")["spec"]["containers"]
    args = [one.replace("/etc/mcad/config.yaml", str(config)) for one in container["args"]]

    def passed() -> str | None:
        """Its rights and the policy count a moment after they are written."""
        done = cli(*args, kubeconfig=kubeconfig)
        return None if done.returncode else done.stdout

    said = plane.wait_for(passed, what="all checks have passed")
    assert [line.split()[0] for line in said.splitlines()] == ["ok"] * 4
    assert "an AppWrapper can be created in default (dry run)" in said
    assert states(plane, "default") == {}, "nothing is stored"


# -- one process after another: last in this file ------------------------------------------------


def test_the_next_leader_answers_and_without_one_the_cli_shows_what_is_stored(
    plane: ControlPlane, dispatcher: Dispatcher, begin: Begin, tenant: Path
) -> None:
    path = f"{ROOT}/namespaces/team-a/appwrapperreports/job-2"
    standby = begin("standby").start(leads=False)
    try:
        told = plane.request("GET", path)[1]["status"]
        assert dispatcher.stop() == 0
        plane.wait_for(lambda: plane.request("GET", path)[0] == 200, 30, "the standby answers")
        assert plane.request("GET", path)[1]["status"] == told
        assert standby.stop() == 0
        plane.wait_for(lambda: not is_available(plane), 60, "it is seen to be gone")
        done = cli("queue", "-n", "team-a", kubeconfig=tenant)
        assert done.returncode == 0
        (line,) = done.stderr.splitlines()
        assert line.startswith(
            "warning: the dispatcher does not answer at its visibility API (503 Service "
            "Unavailable); see `"
        )
        assert "what is stored is shown" in line
        assert "<unknown>" in done.stdout
    finally:
        standby.__exit__(None)
