"""What operators rely on: the port, the end, settings, what they add to pods, trouble, rights."""

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
from tests.e2e.process import USER, Dispatcher, mcad
from tests.e2e.support import (
    GROUP,
    appwrapper,
    appwrappers_path,
    cli,
    conditions_of,
    configmap,
    create,
    delete,
    patch,
    phases,
    pod,
    pods,
    states,
    status_of,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
Start = Callable[..., Dispatcher]

UNUSED: dict[tuple[str, str, str], str] = {
    (GROUP, "appwrappers", "get"): "after a conflict, which no test here can force",
    ("", "events", "list"): "of pods that are not created, or of a bare Pod that is gone",
    ("kueue.x-k8s.io", "workloadpriorityclasses", "list"): "Kueue is not installed here",
    ("kueue.x-k8s.io", "workloadpriorityclasses", "watch"): "the same",
    (GROUP, "appwrappers/finalizers", "update"): "admission asks for it, no request does",
    (GROUP, "appwrappers", "patch"): "upstream's finalizer, which nothing here has",
    (GROUP, "appwrappers/status", "patch"): "the release before writes so, which may still lead",
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
    """The sum of the samples that have these labels, 0 if there is none."""
    code, page = dispatcher.get("/metrics")
    assert code == 200
    return sum(
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
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
        (("--set", "polcy=StrictFIFO"), {}, "'polcy'. Did you mean "),
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


# -- what settings add to pods -----------------------------------------------------------------

HEALTH = "autopilot.ibm.com/gpuhealth"
GPU = "nvidia.com/gpu"


def live(plane: ControlPlane, name: str) -> Json:
    """The pod of this name that is not being deleted; {} if there is none."""
    found = (one for one in pods(plane) if one["metadata"]["name"] == name)
    return next(found, {})


def running(plane: ControlPlane, name: str) -> Json:
    """The same if it runs."""
    found = live(plane, name)
    return found if found and found["status"].get("phase") == "Running" else {}


def gpu_pod(name: str) -> Json:
    made = pod(name)
    made["spec"]["containers"][0]["resources"]["limits"] = {GPU: "1"}
    return made


def label(plane: ControlPlane, node: str, value: str) -> None:
    plane.kubectl("label", "node", node, f"{HEALTH}={value}", "--overwrite")


def test_what_runs_on_a_node_that_evicts_is_moved_and_nothing_new_comes(
    plane: ControlPlane, start: Start
) -> None:
    nodes = ("gpu-1", "gpu-2")
    for name in nodes:
        plane.add_node(name, cpu="4", extended={GPU: "8"})
    start("--set", "faultTolerance.retryPausePeriod=0")
    create(plane, appwrapper("mover", gpu_pod("mover")))
    first = plane.wait_for(lambda: running(plane, "mover"), 60, "mover runs")
    (term,) = first["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    avoided = {"key": HEALTH, "operator": "NotIn", "values": ["TESTING", "EVICT"]}
    assert term == {"matchExpressions": [avoided]}

    left = first["spec"]["nodeName"]
    label(plane, left, "EVICT")

    def moved() -> Json | None:
        found = running(plane, "mover")
        return found if found and found["metadata"]["uid"] != first["metadata"]["uid"] else None

    second = plane.wait_for(moved, 60, "mover runs elsewhere")
    assert second["spec"]["nodeName"] != left
    assert second["metadata"]["labels"][f"{GROUP}/attempt"] == "2"
    status = plane.wait_for(
        lambda: (one := status_of(plane, "mover")).get("phase") == "Running" and one, what="Running"
    )
    assert "resettingCount" not in status, "an evacuation is not counted"
    (told,) = status["componentStatus"]
    assert (told["name"], told["kind"], told["apiVersion"]) == ("mover", "Pod", "v1")
    assert told["podSets"] == [{"path": "template", "replicas": 1}]
    (condition,) = told["conditions"]
    assert (condition["type"], condition["status"]) == ("ResourcesDeployed", "True")

    label(plane, second["spec"]["nodeName"], "TESTING")
    create(plane, appwrapper("newcomer", gpu_pod("newcomer")))
    plane.wait_for(
        lambda: status_of(plane, "newcomer").get("queuejobstate") == "Backoff",
        what="the fit test sees that no node admits it",
    )
    stays = running(plane, "mover")
    assert stays["metadata"]["uid"] == second["metadata"]["uid"], "TESTING moves no pod"
    for node in nodes:
        label(plane, node, "PASS")
    plane.wait_for(lambda: running(plane, "newcomer"), 60, "newcomer runs")
    delete(plane)
    for node in nodes:
        plane.remove_node(node)


def test_a_new_configuration_counts_for_what_is_dispatched_from_then_on(
    plane: ControlPlane, start: Start
) -> None:
    plane.add_node("node-2", cpu="4")
    dispatcher = start()
    create(plane, appwrapper("before", pod("before")))
    before = plane.wait_for(lambda: running(plane, "before"), 60, "before runs")
    assert dispatcher.stop() == 0
    start(
        "--set",
        "inject={labels: {team: research}, annotations: {example.com/a: b}, nodeSelector: "
        "{kubernetes.io/hostname: node-2}, tolerations: [{key: d, operator: Exists}]}",
    )
    create(plane, appwrapper("after", pod("after")))
    after = plane.wait_for(lambda: running(plane, "after"), 60, "after runs")
    assert after["metadata"]["labels"]["team"] == "research"
    assert after["metadata"]["annotations"]["example.com/a"] == "b"
    assert after["spec"]["nodeName"] == "node-2"
    assert {"key": "d", "operator": "Exists"} in after["spec"]["tolerations"]
    stays = running(plane, "before")["metadata"]
    assert (stays["uid"], "team" in stays["labels"]) == (before["metadata"]["uid"], False)
    assert status_of(plane, "before")["dispatch"]["attempt"] == 1
    delete(plane)
    plane.remove_node("node-2")


def test_a_contradiction_is_told_on_the_appwrapper(plane: ControlPlane, start: Start) -> None:
    start("--set", "inject.labels={team: research}")
    other = pod("other")
    other["metadata"]["labels"] = {"team": "sales"}
    create(plane, appwrapper("other", other))
    told = "spec.components[0].template.metadata.labels.team: is 'sales'"
    plane.wait_for(lambda: told in str(conditions_of(plane, "other")), what="the refusal")


def test_a_scheduler_that_is_not_there(plane: ControlPlane, start: Start) -> None:
    start("--set", "schedulerName=another", "--set", "placementTimeout=0")
    create(plane, appwrapper("unplaced", pod("unplaced")))
    made = plane.wait_for(lambda: live(plane, "unplaced"), what="the pod")
    assert made["spec"]["schedulerName"] == "another"
    assert "nodeName" not in made["spec"]


# -- trouble ---------------------------------------------------------------------------------

# On a busy machine an API server takes longer to come back than a lease lasts, and the leader ends
# then (test_leader.py). Here it is the same process that has to go on.
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
    patch(plane, "swinging", {"spec": {"suspend": True}})
    plane.wait_for(lambda: phases(plane) == {}, what="its pod goes")
    plane.wait_for(
        lambda: status_of(plane, "swinging")["dispatch"]["phase"] == "released", what="it is told"
    )
    assert conditions_of(plane, "swinging")["Dispatched"]["status"] == "False"
    create(plane, appwrapper("guest", pod("guest", cpu="3")))
    plane.wait_for(lambda: states(plane)["guest"] == "Running", what="the room is given away")

    patch(plane, "swinging", {"spec": {"suspend": False}})
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
    # An API server that has just started refuses for a moment even what is granted: it may be all
    # that it answered to a request that is rare.
    refused = {right for right, codes in asked.items() if codes == {403}}
    assert refused - granted == set(), "grant more"
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
