"""``mcad tree``, ``events`` and ``logs``: what belongs to an AppWrapper, and what it says."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from mcad.cli.main import main
from mcad.kube.port import Response
from tests.cli.conftest import FakeEnvironment, Type
from tests.cli.embedded import Embedded, wait_for
from tests.e2e.support import appwrapper, configmap, deployment, pod
from tests.fakeapi import GROUP, FakeApi, answer

Json = dict[str, Any]

SILENCE = "(simulated pods run nothing, so there is nothing they could have written)"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """``app`` runs: two pods of a Deployment, a pod with two containers, a ConfigMap."""
    with Embedded(tmp_path_factory.mktemp("tree")).running() as running:
        two = pod("two")
        two["spec"]["containers"].append(two["spec"]["containers"][0] | {"name": "other"})
        running.create(appwrapper("app", deployment("web", 2), two, configmap("settings")))
        running.create(appwrapper("waits", deployment("big", 1, "100"), configmap("unborn")))
        running.create(pod("stranger"))
        assert running.mcad("wait", "app", "--for=running", "--timeout=20s").exit_code == 0
        wait_for(lambda: "Available" in running.mcad("tree", "app").stdout, "its condition")
        yield running


def folded(text: str) -> list[str]:
    """Lines without ages, names of the server's choice and padding."""
    text = re.sub(r"web-[a-z0-9]+(-[a-z0-9]{5})?", "web-<hash>", text)
    text = re.sub(r"\b\d+(m\d+)?s\b", "<age>", text)
    return [re.sub(r"  +", " ", line).strip() for line in text.splitlines()]


def test_the_tree_of_what_runs(cluster: Embedded) -> None:
    result = cluster.mcad("tree", "aw/app")
    assert (result.exit_code, result.stderr) == (0, "")
    assert folded(result.stdout) == [
        "NAME STATE NODE AGE",
        "AppWrapper/app Running <none> <age>",
        "├─Deployment/web Available,Progressing <none> <age>",
        "│ └─ReplicaSet/web-<hash> <none> <none> <age>",
        "│ ├─Pod/web-<hash> Running node-1 <age>",
        "│ └─Pod/web-<hash> Running node-1 <age>",
        "├─Pod/two Running node-1 <age>",
        "└─ConfigMap/settings <none> <none> <age>",
    ]


def test_the_tree_of_what_waits(cluster: Embedded) -> None:
    assert folded(cluster.mcad("tree", "default/waits", "--no-headers").stdout) == [
        "AppWrapper/waits Pending <none> <age>",
        "├─Deployment/big not created <none> <none>",
        "└─ConfigMap/unborn not created <none> <none>",
    ]


def test_the_tree_for_scripts(cluster: Embedded) -> None:
    root = json.loads(cluster.mcad("tree", "app", "-o", "json").stdout)
    assert (root["kind"], root["name"], root["state"]) == ("AppWrapper", "app", "Running")
    web, two, settings = root["children"]
    assert [len(one["children"]) for one in (web, two, settings)] == [1, 0, 0]
    pods = web["children"][0]["children"]
    assert [(one["kind"], one["node"]) for one in pods] == [("Pod", "node-1")] * 2


@pytest.mark.parametrize("command", ["tree", "events", "logs"])
def test_one_that_is_missing(cluster: Embedded, command: str) -> None:
    result = cluster.mcad(command, "nothing")
    assert (result.exit_code, result.stdout) == (4, "")
    told = 'error: no AppWrapper "nothing" in namespace default; see `mcad get -A`\n'
    assert result.stderr == told


# -- pods without labels, and objects that may not be read -----------------------------------


def test_pods_of_an_operator_are_found_by_their_owners(cluster: Embedded) -> None:
    """The kind is unknown to the dispatcher's rules, and its pods have no labels of ours."""
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1", "served": True, "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object", "x-kubernetes-preserve-unknown-fields": True
                        }
                    },
                }
            ],
        },
    }  # fmt: skip
    cluster.create(crd)
    cluster.create(appwrapper("op", configmap("x"), managedBy="example.com/of-this-test"))

    def build(one: Any) -> None:
        wrapper = one.registry.kind(f"{GROUP}/v1beta2", "AppWrapper")
        obj = one.registry.get(wrapper, ("default", "op"))
        labels = {f"{GROUP}/appwrapper-uid": obj["metadata"]["uid"], f"{GROUP}/item": "0"}
        gadget = {"apiVersion": "example.com/v1", "kind": "Gadget"}
        metadata = {"name": "g", "namespace": "default", "labels": labels}
        made = one.registry.create(
            one.registry.kind("example.com/v1", "Gadget"),
            "default",
            gadget | {"metadata": metadata},
        )
        uid = made["metadata"]["uid"]
        below = pod("below")
        below["metadata"]["ownerReferences"] = [
            gadget | {"name": "g", "uid": uid, "controller": True}
        ]
        one.registry.create(one.registry.kind("v1", "Pod"), "default", below)
        ref = {"group": "example.com", "version": "v1", "resource": "gadgets", "kind": "Gadget"}
        record = {"attempt": 1, "epoch": 1, "phase": "dispatched"}
        inventory = [ref | {"namespace": "default", "name": "g"}]
        status = {"state": "Running", "dispatch": record | {"inventory": inventory}}
        one.registry.update_status(wrapper, obj | {"status": status})

    cluster.on_loop(build)
    lines = folded(cluster.mcad("tree", "op", "--no-headers").stdout)
    assert [line.split()[0] for line in lines] == ["AppWrapper/op", "└─Gadget/g", "└─Pod/below"]
    wait_for(lambda: "Running" in cluster.mcad("tree", "op").stdout.splitlines()[-1], "it runs")
    for args in (("--item", "0"), ("-f",)):  # the embedded cluster ends a log at once
        result = cluster.mcad("logs", "op", *args)
        assert (result.exit_code, result.output) == (0, f"{SILENCE}\n")


def test_what_may_not_be_read_is_said(api: FakeApi, mcad: Type) -> None:
    api.deny("deployments", "replicasets")
    api.fail_always("GET", "/(deployments|replicasets)/", _forbidden())
    lines = folded(mcad("tree", "0001-aw-generic-deployment-1", "--no-headers").stdout)
    assert lines[1].startswith("└─Deployment/0001-aw-generic-deployment-1 forbidden")
    assert [line.split("/")[0] for line in lines[2:]] == ["├─Pod", "└─Pod"]


def _forbidden() -> Any:
    return answer({"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}, 403)


# -- events ----------------------------------------------------------------------------------


def test_events_of_all_of_it_and_of_nothing_else(cluster: Embedded) -> None:
    result = cluster.mcad("events", "app")
    assert (result.exit_code, result.stderr) == (0, "")
    head, *lines = folded(result.stdout)
    assert head == "LAST-SEEN TYPE REASON OBJECT MESSAGE"
    said = {tuple(line.split()[2:4]) for line in lines}
    assert {
        ("Dispatched", "AppWrapper/app"),
        ("ScalingReplicaSet", "Deployment/web"),
        ("SuccessfulCreate", "ReplicaSet/web-<hash>"),
        ("Scheduled", "Pod/web-<hash>"),
        ("Started", "Pod/two"),
    } <= said
    assert not {one for one in said if "stranger" in one[1] or "waits" in one[1]}
    items = _items(cluster)
    times = [(one["lastTimestamp"] or one["eventTime"])[:19] for one in items]
    assert times == sorted(times)
    reasons = [one["reason"] for one in items if one["involvedObject"]["name"] == "two"]
    assert reasons == ["Scheduled", *["Pulled", "Created", "Started"] * 2]


def _items(cluster: Embedded) -> list[Json]:
    found: list[Json] = json.loads(cluster.mcad("events", "app", "-o", "json").stdout)["items"]
    return found


def test_events_are_followed(cluster: Embedded) -> None:
    cluster.create(appwrapper("later", deployment("later", 1)))
    assert cluster.mcad("wait", "later", "--for=running", "--timeout=20s").exit_code == 0
    command = [sys.executable, "-m", "mcad", "events", "later", "-w", "--no-headers"]
    env = {"KUBECONFIG": str(cluster.kubeconfig)}
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=env) as process:
        guard = threading.Timer(30, process.kill)
        guard.start()
        assert process.stdout is not None
        assert process.stdout.readline()
        assert cluster.mcad("requeue", "later").exit_code == 0
        seen = ""
        while not re.search(r"TakenBack(.|\n)* Started ", seen):  # of a pod that did not exist
            line = process.stdout.readline()
            assert line, seen
            seen += line
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        guard.cancel()
    assert " Pod/later-" in seen.splitlines()[-1]
    cluster.mcad("cancel", "later")


def test_no_events(api: FakeApi, mcad: Type) -> None:
    result = mcad("events", "0002-aw-generic-deployment-2")
    assert result.exit_code == 0
    api.objects["events"].clear()
    result = mcad("events", "0002-aw-generic-deployment-2")
    told = "No Events about 0002-aw-generic-deployment-2 are kept.\n"
    assert (result.exit_code, result.output) == (0, told)
    assert mcad("events", "x", "-w", "-o", "json").exit_code == 2


# -- logs ------------------------------------------------------------------------------------


def test_logs_of_all_pods(cluster: Embedded) -> None:
    result = cluster.mcad("logs", "app")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = re.sub(r"web-[a-z0-9]+-[a-z0-9]+", "web", result.stdout).splitlines()
    assert lines == [f"[{name}/main] {SILENCE}" for name in ("web", "web", "two")]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("--item", "1"), 0, f"{SILENCE}\n"),
        (("--item", "1", "-c", "other"), 0, f"{SILENCE}\n"),
        (("--item", "1", "--tail", "0"), 0, ""),
        (
            ("--item", "1", "-c", "x"),
            1,
            "error: pod two has no container x; choose main or other\n",
        ),
        (("--item", "7"), 1, "error: item 7 of default/app has no pods; see `mcad describe`\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_of_logs(cluster: Embedded, args: tuple[str, ...], code: int, said: str) -> None:
    result = cluster.mcad("logs", "app", *args)
    assert (result.exit_code, result.output) == (code, said)


def test_a_log_is_followed_until_its_pods_have_ended(cluster: Embedded) -> None:
    brief = pod("brief", command=("sleep", "1"))
    brief["metadata"]["annotations"] = {"sim.mcad.dev/start-delay": "1s"}
    cluster.create(appwrapper("brief", brief, pod("other", command=("sleep", "1"))))
    wait_for(lambda: "Pod/brief" in cluster.mcad("tree", "brief").stdout, "it is drawn")
    cluster.until("brief", "Running")
    result = cluster.mcad("logs", "brief", "-f")
    assert result.exit_code == 0
    assert set(result.stdout.splitlines()) == {
        f"[{name}/main] {SILENCE}" for name in ("brief", "other")
    }
    assert "warning: pod brief has not started (ContainerCreating)" in result.stderr


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", ""),
        (b"one\ntwo\n", "one\ntwo\n"),
        (b"one\n\ntwo", "one\n\ntwo\n"),
        (b"\xff\x1b[31mred\r\n", "\ufffd\x1b[31mred\r\n"),
    ],
)
def test_a_log_is_printed_as_it_is(api: FakeApi, body: bytes, said: str) -> None:
    uid = api.named("appwrappers", "0002-aw-generic-deployment-2")["metadata"]["uid"]
    labels = {f"{GROUP}/appwrapper-uid": uid}
    one = pod("p") | {"status": {"phase": "Succeeded"}}
    one["metadata"] |= {"labels": labels, "namespace": "default"}
    api.put("pods", one)
    api.fail("GET", "/pods/p/log", Response(200, body))
    args = ["logs", "0002-aw-generic-deployment-2"]
    result = CliRunner().invoke(main, args, obj=FakeEnvironment(api))
    assert (result.exit_code, result.stdout_bytes, result.stderr) == (0, said.encode(), "")


def test_pods_that_have_not_started_are_named(cluster: Embedded) -> None:
    slow = pod("slow")
    slow["metadata"]["annotations"] = {"sim.mcad.dev/start-delay": "1h"}
    cluster.create(appwrapper("slow", slow))
    cluster.until("slow", "Running")
    wait_for(lambda: "Creating" in cluster.mcad("tree", "slow").stdout, "it has a node")
    result = cluster.mcad("logs", "slow")
    told = "warning: pod slow has not started (ContainerCreating)\n"
    assert (result.exit_code, result.output) == (0, told)
    cluster.mcad("cancel", "slow")


def test_a_pod_that_failed_without_a_node_wrote_nothing(cluster: Embedded) -> None:
    cluster.create(appwrapper("lost", pod("lost"), pod("kept")))
    assert cluster.mcad("wait", "lost", "--for=running", "--timeout=20s").exit_code == 0

    def fail(one: Any) -> None:
        kind = one.registry.kind("v1", "Pod")
        made = pod("orphan")
        live = one.registry.get(kind, ("default", "kept"))
        labels = live["metadata"]["labels"]
        made["metadata"] |= {"labels": labels}
        made["spec"]["nodeSelector"] = {"is": "nowhere"}
        obj = one.registry.create(kind, "default", made)
        one.registry.update_status(kind, obj | {"status": {"phase": "Failed"}})

    cluster.on_loop(fail)
    result = cluster.mcad("logs", "lost", "--item", "1")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"[kept/main] {SILENCE}\n", "")
    cluster.mcad("cancel", "lost")
