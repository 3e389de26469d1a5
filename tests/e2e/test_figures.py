"""The CLI's figures, counted anew from live lists, are those of the running dispatcher.

One cluster with every state side by side; the caller of the CLI may only read, and only what the
figures need.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from mcad.api.labels import VISIBILITY_GROUP
from mcad.cli.main import main
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher
from tests.e2e.support import (
    GROUP,
    appwrapper,
    cli,
    conditions_of,
    configmap,
    create,
    delete,
    deployment,
    phases,
    pod,
    states,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

WRAPPED = {
    "": ["pods", "services", "configmaps", "secrets", "persistentvolumeclaims"],
    "apps": ["deployments", "replicasets", "statefulsets", "daemonsets"],
    "batch": ["jobs", "cronjobs"],
}
"""The wrapped kinds that this cluster serves."""

READER = [
    {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]},
    {"apiGroups": [GROUP], "resources": ["appwrappers"], "verbs": ["get", "list"]},
    {"apiGroups": [GROUP], "resources": ["dispatchpauses"], "verbs": ["list"]},
    *(
        {"apiGroups": [group], "resources": plurals, "verbs": ["list"]}
        for group, plurals in WRAPPED.items()
    ),
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["limitranges"], "verbs": ["list"]},
    {"apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"], "verbs": ["list"]},
    {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list"]},
    {"apiGroups": ["quota.codeflare.dev"], "resources": ["quotasubtrees"], "verbs": ["list"]},
]
"""All rights that `mcad queue`, `get` and `capacity` need; three of the last four for what is added
at admission, and the last for shares."""

EVENTS = {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]}
"""`mcad describe` shows Events, too."""


@dataclass(frozen=True)
class Scene:
    """The cluster, the dispatcher on it, and a reader's kubeconfig."""

    plane: ControlPlane
    dispatcher: Dispatcher
    reader: Path

    def live(self, *args: str) -> Any:
        """What a command counts from live lists, as JSON."""
        return invoke(*args, "-o", "json", "--kubeconfig", str(self.reader))

    def served(self, *args: str) -> Any:
        """What the dispatcher answers to the same command."""
        where = ("--server", self.dispatcher.url, "--kubeconfig", str(self.reader))
        return invoke(*args, "-o", "json", *where)


def invoke(*args: str) -> Any:
    """A command in this process, because there are many; exit codes are told by others."""
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    assert result.stderr in ("", "No AppWrappers wait in namespace default.\n"), result.stderr
    return json.loads(result.stdout)


def reader_of(plane: ControlPlane, name: str, rules: list[Json]) -> Path:
    """The kubeconfig of a ServiceAccount with these rights in the whole cluster."""
    token = plane.service_account("default", name)
    plane.apply(
        [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": name},
                "rules": rules,
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": name,
                },
                "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
            },
        ]
    )
    return plane.kubeconfig_for_token(token, name)


def populate(plane: ControlPlane) -> None:
    """Four nodes and pods of others: `small` is nearly full of them, `large` takes what runs,
    `cordoned` and `tainted` have room for none. One pod of others fits nowhere."""
    plane.add_node("small", cpu="2", memory="4Gi", labels={"size": "small"})
    plane.add_node("large", cpu="8", memory="16Gi", labels={"size": "large"})
    plane.add_node("cordoned", cpu="16", memory="32Gi")
    taint = {"key": "team", "value": "others", "effect": "NoSchedule"}
    plane.add_node("tainted", cpu="16", memory="32Gi", taints=[taint])
    plane.kubectl("cordon", "cordoned")
    plane.create_namespace("team-a")
    theirs = [
        pod("theirs-1", "1500m", nodeName="small"),
        pod("theirs-2", "2", nodeName="cordoned"),
        pod("theirs-3", "12"),
    ]
    plane.apply(theirs, namespace="team-a")


def foreign_kind(api_version: str, kind: str) -> Json:
    """An object of a kind that may not be wrapped, or that is not installed."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}


LARGE: Json = {"nodeSelector": {"size": "large"}}

DONE = appwrapper("done", pod("done", "1", ("sleep", "1")))
RUNNING = [
    appwrapper("web", deployment("web", 3, "500m", **LARGE)),
    appwrapper("pair", pod("pair-a", "1", **LARGE), pod("pair-b", "500m", **LARGE)),
    appwrapper("elsewhere", pod("elsewhere", "250m", **LARGE), namespace="team-a"),
]
# From here on, 4750m are free on `large` and 500m on `small`.
WAITING = [
    appwrapper("big-1", deployment("big-1", 4, "2")),
    appwrapper("big-2", deployment("big-2", 4, "2"), namespace="team-a"),
    appwrapper("urgent", deployment("urgent", 5, "2"), priority=10),
    appwrapper("humble", deployment("humble", 3, "1800m"), priority=-1),
    appwrapper("split", deployment("split", 2, "2500m")),
    appwrapper("giant", pod("giant", "20"), namespace="team-a"),
    appwrapper("nowhere", pod("nowhere", "1", nodeSelector={"size": "huge"})),
    appwrapper("mixed", pod("mixed-a", "3"), pod("mixed-b", "2500m"), configmap("mixed")),
    appwrapper("held", pod("held", "100m"), suspend=True),
    appwrapper("unlisted", foreign_kind("v1", "ServiceAccount")),
    appwrapper("unknown", foreign_kind("ray.io/v1", "RayCluster")),
    appwrapper("invalid", deployment("invalid", -1)),
]
LAST = appwrapper("last", pod("last", "250m", **LARGE))  # takes room after all those refusals
OTHERS = appwrapper("other", pod("other", "100m"), managedBy="example.com/another")

QUEUE = """\
NAMESPACE NAME POSITION STATE PRIORITY DEMAND WAITS-FOR AGE
default urgent 1 Pending 10 cpu=10,pods=5 cpu <age>
default big-1 2 Pending 0 cpu=8,pods=4 cpu <age>
team-a big-2 3 Pending 0 cpu=8,pods=4 cpu <age>
default split 4 Pending 0 cpu=5,pods=2 cpu <age>
team-a giant 5 Pending 0 cpu=20,pods=1 cpu <age>
default nowhere 6 Pending 0 cpu=1,pods=1 no-node <age>
default mixed 7 Pending 0 cpu=5500m,pods=2 cpu <age>
default humble 8 Pending -1 cpu=5400m,pods=3 cpu <age>
default held <none> Pending 0 cpu=100m,pods=1 Suspended <age>
default unlisted <none> Pending 0 <none> KindNotWrapped <age>
default unknown <none> Pending 0 <none> KindNotInstalled <age>
default invalid <none> Pending 0 cpu=100m,pods=1 InvalidAppWrapper <age>
"""

GET = """\
NAME POSITION STATE PRIORITY DEMAND WAITS-FOR AGE
big-2 3 Pending 0 cpu=8,pods=4 cpu <age>
giant 5 Pending 0 cpu=20,pods=1 cpu <age>
elsewhere <none> Running 0 cpu=250m,pods=1 <none> <age>
"""

CAPACITY = """\
NODE RESOURCE ALLOCATABLE USED RESERVED FREE
cordoned cpu 16 2 0 14
cordoned memory 32Gi 0 0 32Gi
cordoned pods 110 1 0 109
large cpu 8 3500m 0 4500m
large memory 16Gi 0 0 16Gi
large pods 110 7 0 103
small cpu 2 1500m 0 500m
small memory 4Gi 0 0 4Gi
small pods 110 1 0 109
tainted cpu 16 0 0 16
tainted memory 32Gi 0 0 32Gi
tainted pods 110 0 0 110
<total> cpu 42 7 0 35
<total> memory 84Gi 0 0 84Gi
<total> pods 440 9 0 431
"""


@pytest.fixture(scope="module")
def scene(control_plane: ControlPlane, account: Path) -> Iterator[Scene]:
    """The scene at rest: every AppWrapper has a verdict, and every pod of what runs is bound."""
    plane = control_plane
    populate(plane)
    reader = reader_of(plane, "reader", [*READER, EVENTS])
    with Dispatcher(plane, account) as dispatcher:
        create(plane, DONE)
        plane.wait_for(lambda: states(plane)["done"] == "Completed", 60, "a pod ends")
        for one in [*RUNNING, OTHERS]:
            create(plane, one)
        plane.wait_for(lambda: running(plane) == {"web", "pair", "elsewhere"}, 60, "some run")
        for one in WAITING:
            create(plane, one)
        plane.wait_for(lambda: pending(plane) == set(map(name_of, WAITING)), 60, "some wait")
        create(plane, LAST)
        plane.wait_for(lambda: "last" in running(plane), 60, "one more runs")
        plane.wait_for(
            lambda: json.loads(dispatcher.get("/api/v1/capacity")[1])["total"]["reserved"] == {},
            60,
            "all pods are bound",
        )
        plane.wait_for(lambda: set(phases(plane).values()) == {"Running", "Succeeded"}, 60, "rest")
        yield Scene(plane, dispatcher, reader)


def name_of(appwrapper: Json) -> str:
    """The name of a manifest."""
    name: str = appwrapper["metadata"]["name"]
    return name


def running(plane: ControlPlane) -> set[str]:
    """The names of the AppWrappers that run."""
    return in_state(plane, "Running")


def pending(plane: ControlPlane) -> set[str]:
    """The names of the AppWrappers that have been told to wait."""
    return in_state(plane, "Pending")


def in_state(plane: ControlPlane, state: str) -> set[str]:
    found = states(plane) | states(plane, "team-a")
    return {name for name, actual in found.items() if actual == state}


# -- agreement -------------------------------------------------------------------------------

NAMES = [
    pytest.param(one["metadata"]["namespace"], name_of(one), id=name_of(one))
    for one in [DONE, *RUNNING, *WAITING, LAST, OTHERS]
]


@pytest.mark.parametrize("command", ["queue -A", "get -A", "get -n team-a", "capacity"])
def test_what_is_counted_anew_is_what_the_dispatcher_says(scene: Scene, command: str) -> None:
    assert scene.live(*command.split()) == scene.served(*command.split())


@pytest.mark.parametrize(("namespace", "name"), NAMES)
def test_so_it_is_for_a_single_one(scene: Scene, namespace: str, name: str) -> None:
    args = ("describe", name, "-n", namespace)
    live = scene.live(*args)
    if name == "other":
        assert live["appwrapper"] is None
    else:
        assert scene.served(*args) == {"appwrapper": live["appwrapper"]}


def test_reasons_have_the_figures_of_this_moment(scene: Scene) -> None:
    """Not those of the refusal, which the condition keeps."""
    rows = {row["name"]: row for row in scene.served("queue", "-A")["items"]}
    big = "cpu: 8 requested, {} available, {} missing."
    assert rows["big-1"]["why"] == big.format("5", "3")
    told = conditions_of(scene.plane, "big-1")["Backoff"]["message"]
    assert told.endswith(big.format("5250m", "2750m"))
    assert "no placement on nodes does" in rows["split"]["why"]
    assert "larger than any node" in rows["giant"]["why"]
    # `urgent` would not fit even if all AppWrappers left, so it holds none up (core R6).
    assert [name for name, row in rows.items() if row["headOfLine"]] == ["big-1"]


# -- tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"), [("queue -A", QUEUE), ("get -n team-a", GET), ("capacity", CAPACITY)]
)
def test_the_tables(scene: Scene, command: str, expected: str) -> None:
    done = cli(*command.split(), kubeconfig=scene.reader)
    assert (done.returncode, done.stderr) == (0, "")
    folded = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert [re.sub(r" (\d+m)?\d+s$", " <age>", line) for line in folded] == expected.splitlines()
    starts = {tuple(column_starts(line)) for line in done.stdout.splitlines()}
    assert len(starts) == 1, "columns are not aligned"


def column_starts(line: str) -> Iterator[int]:
    """Where the columns of a line begin; no cell of these tables has a blank in it."""
    return (found.start() for found in re.finditer(r"\S+", line))


# -- rights and exit codes -------------------------------------------------------------------


def test_no_more_than_these_rights_are_needed(scene: Scene) -> None:
    """The API server's log has every right that the commands above made use of."""
    user = "system:serviceaccount:default:reader"
    scene.live("queue", "-A")
    scene.live("describe", "web")
    used = {
        (entry.api_group, entry.resource, entry.verb)
        for entry in scene.plane.audit()
        if entry.user == user and entry.resource and entry.api_group != VISIBILITY_GROUP
    }  # that API is asked first, which takes no right here: it is not served
    rights = {
        (group, resource, verb)
        for rule in [*READER, EVENTS]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    # The dispatcher has published that quota trees do not count here, so none is asked for.
    assert rights - used == {("quota.codeflare.dev", "quotasubtrees", "list")}
    assert used <= rights


def test_without_the_right_to_list_pods_there_are_no_figures(scene: Scene) -> None:
    rules = [
        rule | {"resources": [one for one in rule["resources"] if one != "pods"]} for rule in READER
    ]
    blind = reader_of(scene.plane, "blind", rules)
    for command in ("queue -A", "capacity"):
        done = cli(*command.split(), kubeconfig=blind)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: you may not list pods in the whole cluster")
        assert "ask an administrator for this right" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    served = cli("capacity", "--server", scene.dispatcher.url, kubeconfig=blind)
    assert served.returncode == 0


def test_without_the_right_to_list_wrapped_kinds_figures_come_with_warnings(scene: Scene) -> None:
    short = reader_of(scene.plane, "short-sighted", READER[:2])
    done = cli("queue", "-A", "-o", "json", kubeconfig=short)
    assert done.returncode == 0
    assert re.match(r"warning: you may not list .*\bdeployments\.apps\b", done.stderr)
    assert len(done.stderr.splitlines()) == 1
    names = [row["name"] for row in json.loads(done.stdout)["items"]]
    assert names == [row["name"] for row in scene.live("queue", "-A")["items"]]


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("describe nothing", 4, 'no AppWrapper "nothing" in namespace default'),
        ("get nothing", 4, 'no AppWrapper "nothing"'),
        ("capacity nothing", 4, 'no node "nothing"'),
        ("queue --server http://127.0.0.1:1", 1, "cannot be reached"),
        ("get web -A", 2, "names need one namespace"),
    ],
)
def test_exit_codes(scene: Scene, command: str, code: int, told: str) -> None:
    done = cli(*command.split(), kubeconfig=scene.reader)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


# -- submit ----------------------------------------------------------------------------------


def test_submit_creates_and_refuses(scene: Scene) -> None:
    plane = scene.plane
    admin = plane.admin_kubeconfig

    def submit(*manifests: Json, kubeconfig: Path = admin, more: str = "") -> tuple[int, str, str]:
        text = yaml.safe_dump_all(manifests)
        done = cli("submit", "-f", "-", *more.split(), kubeconfig=kubeconfig, stdin=text)
        return done.returncode, done.stdout, done.stderr

    good = appwrapper("submitted", pod("submitted", "100m"), suspend=True)
    bad = appwrapper("unsubmitted", deployment("unsubmitted", -1))
    title = f"appwrapper.{GROUP}/submitted"

    code, out, err = submit(good, bad)
    assert (code, out) == (1, "")
    assert "spec.components[0].template.spec.replicas: must not be negative" in err
    assert "nothing was sent: 1 fault to correct first" in err
    assert submit(good, more="--dry-run=server") == (0, f"{title} created (server dry run)\n", "")
    assert "submitted" not in states(plane)

    assert submit(good) == (0, f"{title} created\n", "")
    plane.wait_for(lambda: conditions_of(plane, "submitted"), what="it is taken up")
    code, out, err = submit(good)
    assert (code, out) == (1, "")
    assert "default/submitted exists already" in err
    code, out, err = submit(appwrapper("mine", pod("mine")), kubeconfig=scene.reader)
    assert (code, out) == (1, "")
    assert 'cannot create resource "appwrappers"' in err
    delete(plane, "submitted")
