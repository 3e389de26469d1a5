"""What those who run the dispatcher rely on: its port, its end, its settings, its rights."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.process import ACCOUNT, NAMESPACE, USER, Dispatcher, mcad
from tests.e2e.support import (
    GROUP,
    appwrapper,
    appwrappers_path,
    cli,
    conditions_of,
    configmap,
    create,
    delete,
    deployment,
    phases,
    pod,
    states,
    status_of,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
Start = Callable[..., Dispatcher]

UNUSED: dict[tuple[str, str, str], str] = {
    (GROUP, "appwrappers", "get"): "after a conflict, which no test here can force",
    (GROUP, "appwrappers/finalizers", "update"): "admission asks for it, no request does",
    (GROUP, "appwrappers", "patch"): "upstream's finalizer, which nothing here has",
}
"""Rights that are granted although no request of this module needs them, and why."""


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A control plane with one node of 4 cpu."""
    control_plane.add_node("node-1", cpu="4", memory="16Gi", pods=500)
    return control_plane


@pytest.fixture
def start(plane: ControlPlane, account: Path) -> Iterator[Start]:
    """Starts dispatchers, one at a time; ends what is left running and empties the namespace."""
    started: list[Dispatcher] = []

    def begin(*args: str, env: dict[str, str] | None = None, ready: bool = True) -> Dispatcher:
        started.append(Dispatcher(plane, account, *args, env=env).start(ready=ready))
        return started[-1]

    yield begin
    delete(plane)
    for one in started:
        one.__exit__(None, None, None)


def metric(dispatcher: Dispatcher, name: str, **labels: str) -> float:
    """The value of one sample, 0 if there is none."""
    code, page = dispatcher.get("/metrics")
    assert code == 200
    return sum(
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    )


def created_pods(plane: ControlPlane, since: int) -> list[str]:
    """The names of the pods that the dispatcher created, once for each time."""
    bodies = [
        one
        for one in plane.audit(since)
        if (one.user, one.verb, one.resource, one.subresource) == (USER, "create", "pods", "")
    ]
    return [one.name for one in bodies if one.code == 201]


# -- the port --------------------------------------------------------------------------------


def test_the_port_tells_health_and_metrics(plane: ControlPlane, start: Start) -> None:
    dispatcher = start()
    assert dispatcher.get("/healthz") == (200, "ok\n")
    assert dispatcher.get("/readyz") == (200, "ok\n")
    assert dispatcher.get("/nothing-here")[0] == 404
    assert metric(dispatcher, "mcad_events_total", reason="Dispatched") == 0

    for number in range(3):
        create(plane, appwrapper(f"ported-{number}", pod(f"ported-{number}")))
    create(plane, appwrapper("unported", pod("unported", cpu="3900m")))
    plane.wait_for(
        lambda: metric(dispatcher, "mcad_events_total", reason="Dispatched") == 3, what="3 Events"
    )
    assert metric(dispatcher, "mcad_queue_wait_seconds_count") == 3
    plane.wait_for(
        lambda: metric(dispatcher, "mcad_cluster_reserved", resource="cpu") == 0, what="all bound"
    )
    assert metric(dispatcher, "mcad_cluster_used", resource="cpu") == pytest.approx(0.3)
    assert metric(dispatcher, "mcad_appwrappers", state="Running") == 3
    assert metric(dispatcher, "mcad_appwrappers", state="Pending") == 1
    assert metric(dispatcher, "mcad_pending_appwrappers", reason="insufficient") == 1
    assert metric(dispatcher, "mcad_stream_synced", kind="pods") == 1


def test_an_occupied_port_is_told(plane: ControlPlane, account: Path, start: Start) -> None:
    taken = start().url.removeprefix("http://")
    done = cli("run", "--http", taken, kubeconfig=account)
    assert done.returncode == 1
    assert f"cannot listen on {taken}" in done.stderr
    assert "choose another --http" in done.stderr


# -- the end ---------------------------------------------------------------------------------


def test_sigterm_in_the_middle_of_work_loses_and_doubles_nothing(
    plane: ControlPlane, start: Start
) -> None:
    names = [f"busy-{number:02}" for number in range(60)]
    for name in names:
        create(plane, appwrapper(name, pod(f"{name}-a", cpu="10m"), pod(f"{name}-b", cpu="10m")))
    since = plane.audit_mark()
    dispatcher = start(ready=False)
    said = len(dispatcher.log())
    plane.wait_for(lambda: "msg=dispatched" in dispatcher.log()[said:], what="it works")
    assert dispatcher.stop() == 0
    assert set(states(plane).values()) != {"Running"}, "it was stopped too late to tell"

    start()
    plane.wait_for(lambda: list(states(plane).values()) == ["Running"] * 60, 60, "all run")
    wanted = sorted(f"{name}-{part}" for name in names for part in "ab")
    assert sorted(created_pods(plane, since)) == wanted
    assert sorted(phases(plane)) == wanted


def test_sigterm_ends_it_while_the_api_server_hangs(plane: ControlPlane, start: Start) -> None:
    dispatcher = start()
    for number in range(10):
        create(plane, appwrapper(f"hung-{number}", pod(f"hung-{number}", cpu="10m")))
    server = plane.process("kube-apiserver")
    server.send_signal(signal.SIGSTOP)
    try:
        assert dispatcher.stop() == 0
    finally:
        server.send_signal(signal.SIGCONT)
    start()
    plane.wait_for(lambda: list(states(plane).values()) == ["Running"] * 10, 60, "all run")
    assert len(phases(plane)) == 10


# -- settings --------------------------------------------------------------------------------


def test_set_wins_over_the_environment_and_that_over_the_file(
    plane: ControlPlane, start: Start, tmp_path: Path
) -> None:
    """With StrictFIFO the small one waits behind the large one; else it overtakes it."""
    file = tmp_path / "config.yaml"
    file.write_text("policy: StrictFIFO\nbackoffTime: 5\n")
    config = ("--config", str(file))
    environment = {"MCAD_POLICY": "BestEffortFIFO"}

    dispatcher = start(*config)
    create(plane, appwrapper("holder", pod("holder", cpu="3")))
    plane.wait_for(lambda: states(plane)["holder"] == "Running", what="it runs")
    create(plane, appwrapper("large", pod("large", cpu="3")))
    plane.wait_for(lambda: "Backoff" in conditions_of(plane, "large"), what="it waits")
    create(plane, appwrapper("small-1", pod("small-1", cpu="100m")))
    blocked = plane.wait_for(lambda: conditions_of(plane, "small-1").get("Backoff"), what="so does")
    assert "The head of the line goes first." in blocked["message"]
    assert dispatcher.stop() == 0

    dispatcher = start(*config, env=environment)
    plane.wait_for(lambda: states(plane)["small-1"] == "Running", what="the environment wins")
    assert dispatcher.stop() == 0

    start(*config, "--set", "policy=StrictFIFO", env=environment)
    create(plane, appwrapper("small-2", pod("small-2", cpu="100m")))
    blocked = plane.wait_for(lambda: conditions_of(plane, "small-2").get("Backoff"), what="--set")
    assert "The head of the line goes first." in blocked["message"]
    assert sorted(phases(plane)) == ["holder", "small-1"]


@pytest.mark.parametrize(
    ("args", "env", "told"),
    [
        (
            ("--set", "polcy=StrictFIFO"),
            {},
            "'polcy'. Did you mean ",
        ),
        ((), {"MCAD_POLICY": "LIFO"}, "MCAD_POLICY: policy: "),
        (("--config", "/nonexistent.yaml"), {}, "--config /nonexistent.yaml: cannot be read"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(
    account: Path, args: tuple[str, ...], env: dict[str, str], told: str
) -> None:
    done = cli("run", *args, kubeconfig=account, env=env)
    assert done.returncode == 1
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_only_wrapped_resources_are_wrapped(
    plane: ControlPlane, start: Start, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        yaml.safe_dump({"wrappedResources": [{"apiGroup": "", "resources": ["pods", "secrets"]}]})
    )
    roles = [
        one
        for one in yaml.safe_load_all(mcad("rbac", "--config", str(file)))
        if one["kind"] in ("ClusterRole", "Role")
    ]
    named = {name for role in roles for rule in role["rules"] for name in rule["resources"]}
    assert {"pods", "secrets"} <= named
    assert not named & {"configmaps", "deployments", "jobs", "*"}

    start("--config", str(file))
    create(plane, appwrapper("with-configmap", pod("never"), configmap("never")))
    create(plane, appwrapper("with-pod", pod("always")))
    plane.wait_for(lambda: states(plane)["with-pod"] == "Running", what="a listed kind")
    refused = plane.wait_for(
        lambda: conditions_of(plane, "with-configmap").get("Backoff"), what="an unlisted kind"
    )
    assert refused["reason"] == "KindNotWrapped"
    assert "wrappedResources" in refused["message"]
    assert "configmaps" in refused["message"]
    assert status_of(plane, "with-configmap")["state"] == "Pending"
    assert sorted(phases(plane)) == ["always"]


# -- trouble ---------------------------------------------------------------------------------

# On a busy machine an API server takes longer to come back than a lease lasts, and whoever leads
# ends then (test_leader.py). Here it is the same process that has to go on.
LONG_LEASE = ("--set", "leaderElection={leaseDuration: 120, renewDeadline: 100, retryPeriod: 2}")


def test_it_survives_a_restart_of_the_api_server(plane: ControlPlane, start: Start) -> None:
    since = plane.audit_mark()
    dispatcher = start(*LONG_LEASE)
    create(plane, appwrapper("before", pod("before", cpu="3")))
    plane.wait_for(lambda: states(plane)["before"] == "Running", what="it runs")
    create(plane, appwrapper("queued", pod("queued", cpu="2")))
    plane.wait_for(lambda: "Backoff" in conditions_of(plane, "queued"), what="it waits")

    plane.end("kube-apiserver")
    try:
        plane.wait_for(
            lambda: metric(dispatcher, "mcad_stream_events_total", kind="pods", event="errors"),
            what="the dispatcher notices",
        )
        assert dispatcher.get("/healthz")[0] == 200
    finally:
        plane.restart("kube-apiserver")
    plane.wait_for(plane.ready, 60, "the API server is back")

    create(plane, appwrapper("after", pod("after", cpu="500m")))
    plane.wait_for(lambda: states(plane)["after"] == "Running", 60, "it dispatches again")
    assert states(plane) == {"after": "Running", "before": "Running", "queued": "Pending"}
    delete(plane, "before")
    plane.wait_for(lambda: states(plane)["queued"] == "Running", 60, "its turn has come")
    assert created_pods(plane, since) == ["before", "after", "queued"]
    assert dispatcher.stop() == 0


def test_a_killed_api_server_in_the_middle_of_work_loses_and_doubles_nothing(
    plane: ControlPlane, start: Start
) -> None:
    """One that has just started refuses requests with 403, 429 and 503 for a moment."""
    names = [f"torn-{number:02}" for number in range(60)]
    for name in names:
        create(plane, appwrapper(name, pod(f"{name}-a", cpu="10m"), pod(f"{name}-b", cpu="10m")))
    since = plane.audit_mark()
    start(*LONG_LEASE)
    plane.wait_for(lambda: "Running" in states(plane).values(), what="it works")
    plane.process("kube-apiserver").kill()
    plane.restart("kube-apiserver")
    plane.wait_for(plane.ready, 60, "the API server is back")
    plane.wait_for(
        lambda: plane.request("GET", appwrappers_path())[0] == 200, 60, "so are AppWrappers"
    )
    plane.wait_for(lambda: list(states(plane).values()) == ["Running"] * 60, 60, "all run")
    assert sorted(phases(plane)) == sorted(f"{name}-{part}" for name in names for part in "ab")
    assert {status_of(plane, name)["dispatch"]["attempt"] for name in names} == {1}
    made = created_pods(plane, since)  # what it logged last may be lost with it
    assert len(made) == len(set(made))
    plane.restart("kube-controller-manager")  # its garbage collector may sulk for a minute


def test_what_was_taken_back_comes_again(plane: ControlPlane, start: Start) -> None:
    """Suspended, it gives its room away; resumed, it queues and is dispatched anew."""
    since = plane.audit_mark()
    start()
    create(plane, appwrapper("swinging", pod("swinging", cpu="3"), configmap("swinging")))
    plane.wait_for(lambda: states(plane)["swinging"] == "Running", what="it runs")
    path = f"{appwrappers_path()}/swinging"
    merge = "application/merge-patch+json"
    plane.request("PATCH", path, {"spec": {"suspend": True}}, content_type=merge)
    plane.wait_for(lambda: phases(plane) == {}, what="its pod goes")
    plane.wait_for(
        lambda: status_of(plane, "swinging")["dispatch"]["phase"] == "released", what="it is told"
    )
    assert conditions_of(plane, "swinging")["Dispatched"]["status"] == "False"
    create(plane, appwrapper("guest", pod("guest", cpu="3")))
    plane.wait_for(lambda: states(plane)["guest"] == "Running", what="the room is given away")

    plane.request("PATCH", path, {"spec": {"suspend": False}}, content_type=merge)
    plane.wait_for(
        lambda: conditions_of(plane, "swinging")["Backoff"]["reason"] == "AppWrapperNotRunnable.",
        what="it queues",
    )
    delete(plane, "guest")
    plane.wait_for(lambda: states(plane)["swinging"] == "Running", what="it runs again")
    assert status_of(plane, "swinging")["dispatch"]["attempt"] == 2
    assert created_pods(plane, since) == ["swinging", "guest", "swinging"]


def test_a_name_that_somebody_holds_is_told(plane: ControlPlane, start: Start) -> None:
    start()
    plane.apply(configmap("theirs"))
    create(plane, appwrapper("clash", pod("clash"), configmap("theirs")))
    failed = plane.wait_for(lambda: conditions_of(plane, "clash").get("Failed"), what="it fails")
    assert "ConfigMap default/theirs exists already" in failed["message"]
    assert status_of(plane, "clash")["state"] == "Failed"
    assert phases(plane) == {}
    assert plane.kubectl("get", "configmap", "theirs", "-o", "name") == "configmap/theirs\n"
    plane.kubectl("delete", "configmap", "theirs")


def test_what_a_quota_refuses_is_taken_back(plane: ControlPlane, start: Start) -> None:
    """A 403 that is not for want of rights may pass: it queues again, and nothing is left."""
    start()
    plane.create_namespace("tight")
    plane.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none", "namespace": "tight"},
            "spec": {"hard": {"pods": "0"}},
        }
    )
    quota = "/api/v1/namespaces/tight/resourcequotas/none"
    plane.wait_for(lambda: plane.request("GET", quota)[1]["status"].get("hard"), what="it counts")

    create(plane, appwrapper("greedy", configmap("greedy"), pod("greedy"), namespace="tight"))
    held = plane.wait_for(
        lambda: conditions_of(plane, "greedy", "tight").get("Backoff"), what="it is taken back"
    )
    assert held["reason"] == "CreationBackoff"
    assert "exceeded quota: none" in held["message"]
    assert status_of(plane, "greedy", "tight")["state"] == "Pending"
    assert phases(plane, "tight") == {}
    assert "greedy" not in plane.kubectl("get", "configmaps", "--namespace=tight", "-o", "name")
    delete(plane, namespace="tight")


# -- another cluster, without the CRD --------------------------------------------------------


@pytest.fixture(scope="module")
def bare() -> Iterator[ControlPlane]:
    """A control plane with a node and nothing of ours on it."""
    with controlplane_or_skip() as plane:
        plane.add_node("node-1")
        yield plane


def grant(plane: ControlPlane, *settings: str) -> Path:
    """The rights that these settings ask for; the kubeconfig of the account that has them."""
    token = plane.service_account(NAMESPACE, ACCOUNT)
    rights = ("rbac", "--namespace", NAMESPACE, "--service-account", ACCOUNT)
    plane.apply(mcad(*rights, *settings))
    return plane.kubeconfig_for_token(token, ACCOUNT)


def test_the_crd_may_come_later(bare: ControlPlane) -> None:
    """It leads, and is not ready as long as there is nothing that it could dispatch."""
    dispatcher = Dispatcher(bare, grant(bare)).start(ready=False)
    try:
        dispatcher.wait_until_it_listens()
        bare.wait_for(
            lambda: "AppWrappers are not installed" in dispatcher.get("/readyz")[1], what="it leads"
        )
        code, said = dispatcher.get("/readyz")
        assert code == 503
        assert "mcad crd | kubectl apply --server-side -f -" in said
        assert dispatcher.get("/healthz") == (200, "ok\n")
        assert "AppWrappers are not installed" in dispatcher.log()
        assert "mcad crd | kubectl apply --server-side -f -" in dispatcher.log()
        bare.apply(mcad("crd"))
        bare.wait_for_crd(f"appwrappers.{GROUP}")
        create(bare, appwrapper("patient", pod("patient")))
        bare.wait_for(lambda: states(bare)["patient"] == "Running", 120, "it is dispatched")
        assert list(phases(bare)) == ["patient"]
        assert dispatcher.get("/readyz") == (200, "ok\n")
        assert dispatcher.stop() == 0
    finally:
        dispatcher.__exit__(None, None, None)


def test_roles_in_the_watched_namespaces_suffice(bare: ControlPlane) -> None:
    setting = ("--set", "watchNamespaces=[team-a, team-b]")
    for namespace in ("team-a", "team-b", "team-c"):
        bare.create_namespace(namespace)
    since = bare.audit_mark()
    with Dispatcher(bare, grant(bare, *setting), *setting):
        for namespace in ("team-c", "team-b", "team-a"):
            wrapped = deployment(f"web-{namespace}", 2)
            create(bare, appwrapper(f"web-{namespace}", wrapped, namespace=namespace))
        for namespace in ("team-a", "team-b"):
            bare.wait_for(
                lambda namespace=namespace: (
                    list(phases(bare, namespace).values()) == ["Running"] * 2
                ),
                60,
                f"two pods in {namespace}",
            )
    assert states(bare, "team-c") == {"web-team-c": ""}
    assert phases(bare, "team-c") == {}
    assert 403 not in {one.code for one in bare.audit(since) if one.user == USER}


# -- rights ----------------------------------------------------------------------------------


def test_without_rights_it_says_which_and_how_to_get_them(plane: ControlPlane) -> None:
    token = plane.service_account("default", "powerless")
    done = cli("run", "--http", "127.0.0.1:0", kubeconfig=plane.kubeconfig_for_token(token, "none"))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert 'cannot list resource \\"nodes\\"' in last
    assert "grant the dispatcher's rights with `mcad rbac | kubectl apply -f -`" in last


def test_no_right_is_superfluous(plane: ControlPlane, account: Path) -> None:
    """Last in this module: what all tests above have used is in the API server's log."""
    granted = {
        (group, resource, verb)
        for role in json.loads(plane.kubectl("get", "clusterrole", "mcad", "-o", "json"))["rules"]
        for group in role["apiGroups"]
        for resource in role["resources"]
        for verb in role["verbs"]
    }
    asked: dict[tuple[str, str, str], set[int]] = {}
    for entry in plane.audit():
        if entry.user == USER and entry.resource:
            resource = "/".join(filter(None, (entry.resource, entry.subresource)))
            asked.setdefault((entry.api_group, resource, entry.verb), set()).add(entry.code)
    # An API server that has just started refuses everything for a moment.
    assert [right for right, codes in asked.items() if codes == {403}] == []
    used = set(asked)

    wrapped = {
        (group, resource)
        for group, resource, verb in granted
        if verb == "create" and "/" not in resource and resource != "events"
    } - {("authorization.k8s.io", "selfsubjectaccessreviews")}
    assert len(wrapped) > 20
    verbs = {(one[0], one[1]): set() for one in granted}
    for group, resource, verb in granted:
        verbs[group, resource].add(verb)
    for kind in wrapped:
        assert verbs[kind] == {"create", "delete", "get", "list", "watch"}, kind

    # One rule grants the same verbs to all wrapped kinds, and pods are one of them.
    superfluous = {
        (group, resource, verb)
        for group, resource, verb in granted - used
        if (group, resource) not in wrapped - {("", "pods")}
    }
    assert superfluous <= set(UNUSED), "grant less, or say why"
