"""Two dispatchers on one cluster, as processes: one leads, whatever is done to it.

Each has a token of its own, so that the API server's log tells which one wrote. What is asserted
are counts and order; how long a fail-over took is printed."""

from __future__ import annotations

import base64
import json
import re
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from mcad.api.config import LeaderElection
from mcad.api.labels import LEASE_NAME, LEASE_NAMESPACE
from mcad.kube.reflector import FEW
from tests.controlplane import audit
from tests.controlplane.audit import WRITES
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import ACCOUNT, NAMESPACE, Dispatcher, install
from tests.e2e.support import appwrapper, configmap, create, delete, phases, pod, pods, states

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

NODES, GANGS = 50, 60
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases/{LEASE_NAME}"
TERMS = LeaderElection()
LOOKS_MAX = TERMS.lease_duration + 2  # of a standby, which looks once a second, until it leads
LONG = 120


@dataclass(frozen=True, slots=True)
class Seen:
    """One request, in the order of its arrival."""

    at: str
    token: str  # the id of the token
    verb: str
    resource: str
    name: str
    code: int


@dataclass
class Process:
    """A dispatcher and the token that it writes with."""

    dispatcher: Dispatcher
    token: str

    @property
    def leads(self) -> bool:
        code, text = self.dispatcher.get("/readyz")
        return code == 200 and not text.startswith("standby")

    @property
    def stands_by(self) -> bool:
        code, text = self.dispatcher.get("/readyz")
        return code == 200 and text.startswith("standby; ")


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """Fifty nodes with room for one gang each, and the dispatcher's rights."""
    install(control_plane)
    for number in range(NODES):
        control_plane.add_node(f"node-{number:02}", cpu="1", wait=False)
    control_plane.wait_for_nodes(f"node-{number:02}" for number in range(NODES))
    return control_plane


@pytest.fixture
def pair(plane: ControlPlane) -> Iterator[tuple[Process, Process]]:
    """The leader and the standby. Those that still run are ended, and must end well."""
    first = begin(plane, "first")
    second = begin(plane, "second", leads=False)
    yield first, second
    delete(plane)
    for one in (first, second):
        one.dispatcher.__exit__(None, None, None)


def begin(plane: ControlPlane, name: str, *, leads: bool = True) -> Process:
    token = plane.service_account(NAMESPACE, ACCOUNT)
    kubeconfig: Path = plane.kubeconfig_for_token(token, name)
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    dispatcher = Dispatcher(plane, kubeconfig, name=name).start(leads=leads)
    return Process(dispatcher, claims["jti"])


def seen(plane: ControlPlane, since: int) -> list[Seen]:
    """Every request since a mark."""
    found = []
    for event in audit.events(plane.audit_log, since):
        extra = event["user"].get("extra", {})
        token = extra.get("authentication.kubernetes.io/credential-id", [""])[0]
        what = event.get("objectRef", {})
        found.append(
            Seen(
                event["requestReceivedTimestamp"],
                token.removeprefix("JTI="),
                event["verb"],
                "/".join(filter(None, (what.get("resource"), what.get("subresource")))),
                what.get("name", ""),
                event.get("responseStatus", {}).get("code", 0),
            )
        )
    return sorted(found, key=lambda one: one.at)


def limits(plane: ControlPlane, since: int, process: Process, plural: str) -> set[str]:
    """The limits of its lists of a kind: 500 is that of a whole one, 1 asks for the version."""
    found = set()
    for event in audit.events(plane.audit_log, since):
        extra = event["user"].get("extra", {})
        token = extra.get("authentication.kubernetes.io/credential-id", [""])[0]
        is_list = event["verb"] == "list" and event["objectRef"]["resource"] == plural
        if is_list and token == f"JTI={process.token}":
            found.update(parse_qs(urlsplit(event["requestURI"]).query).get("limit", ()))
    return found


def written(requests: list[Seen], process: Process, *aside: str) -> list[Seen]:
    """The writes of one process."""
    return [
        one
        for one in requests
        if one.token == process.token and one.verb in WRITES and one.resource not in aside
    ]


def submit(plane: ControlPlane, prefix: str, count: int, cpu: str = "900m") -> list[str]:
    names = [f"{prefix}-{number:02}" for number in range(count)]
    for name in names:
        create(plane, appwrapper(name, pod(name, cpu)))
    return names


def begin_work(plane: ControlPlane, count: int) -> int:
    """So many are submitted, and are being dispatched; returns a mark from before that."""
    since = plane.audit_mark()
    submit(plane, "early", count)
    plane.wait_for(lambda: tally(plane)["Running"] >= 5, LONG, "it is in the middle of work")
    return since


def tally(plane: ControlPlane) -> Counter[str]:
    return Counter(states(plane).values())


def wait_until_all_is_done(plane: ControlPlane) -> None:
    """Fifty run and ten wait: every pod has found a node, and there is not one too many."""
    done = {"Running": NODES, "Pending": GANGS - NODES}
    try:
        plane.wait_for(lambda: tally(plane) == done, LONG, "fifty run and ten wait")
        plane.wait_for(
            lambda: Counter(phases(plane).values()) == {"Running": NODES}, LONG, "fifty pods run"
        )
    except TimeoutError as error:
        error.add_note(f"AppWrappers {tally(plane)}, pods {Counter(phases(plane).values())}")
        raise


def overcommitted(plane: ControlPlane) -> dict[str, int]:
    """Node -> pods on it beyond the one that it has room for."""
    found = Counter(one["spec"]["nodeName"] for one in pods(plane) if "nodeName" in one["spec"])
    return {node: count - 1 for node, count in found.items() if count > 1}


def wait_until_every_node_is_used(plane: ControlPlane) -> dict[str, int]:
    """Every node has a pod, every dispatched AppWrapper's pod runs, and the others wait. Returns
    what kube-scheduler bound twice, which leaves as much room elsewhere."""

    def is_done() -> bool:
        running = NODES + sum(overcommitted(plane).values())
        return (
            tally(plane) == {"Running": running, "Pending": GANGS - running}
            and Counter(phases(plane).values()) == {"Running": running}
            and len({one["spec"]["nodeName"] for one in pods(plane)}) == NODES
        )

    plane.wait_for(is_done, LONG, "every node is used and the rest waits")
    return overcommitted(plane)


def check_that_nothing_is_doubled(plane: ControlPlane, since: int) -> None:
    """No pod was created twice."""
    requests = seen(plane, since)
    made = Counter(
        one.name
        for one in requests
        if (one.verb, one.resource, one.code) == ("create", "pods", 201)
    )
    assert made
    assert [name for name, count in made.items() if count > 1] == []


def check_the_lease_was_passed(plane: ControlPlane, since: int, old: Process, new: Process) -> None:
    """The new one looked as often as it may, and the old one wrote nothing after its grasp."""
    requests = seen(plane, since)
    grasp = next(
        number
        for number, one in enumerate(requests)
        if (one.token, one.verb, one.resource, one.code) == (new.token, "patch", "leases", 200)
    )
    looks = [
        one
        for one in requests[:grasp]
        if (one.token, one.verb, one.resource) == (new.token, "get", "leases")
    ]
    print(f"looks until the grasp: {len(looks)}, first {looks[0].at}, grasp {requests[grasp].at}")
    assert len(looks) <= LOOKS_MAX
    assert written(requests[grasp:], old) == []
    assert [one for one in requests[:grasp] if one.token == new.token and one.verb in WRITES] == []


def test_two_dispatchers_admit_what_one_would(
    plane: ControlPlane, pair: tuple[Process, Process]
) -> None:
    leader, standby = pair
    since = plane.audit_mark()
    holder = plane.request("GET", LEASE)[1]["spec"]["holderIdentity"]
    assert standby.dispatcher.get("/readyz") == (200, f"standby; {holder} leads\n")
    names = submit(plane, "gang", GANGS)
    wait_until_all_is_done(plane)
    assert sorted(name for name, state in states(plane).items() if state == "Running") == sorted(
        names[:NODES]
    )
    assert written(seen(plane, since), standby) == []
    code, said = standby.dispatcher.get("/api/v1/queue")
    assert (code, said.startswith(f"this process stands by; {holder} leads")) == (503, True)
    rows = json.loads(leader.dispatcher.get("/api/v1/queue")[1])["items"]
    assert [row["name"] for row in rows] == names[NODES:]
    assert "mcad_leader 0.0" in standby.dispatcher.get("/metrics")[1]
    assert "mcad_leader 1.0" in leader.dispatcher.get("/metrics")[1]
    check_that_nothing_is_doubled(plane, since)


def test_a_leader_that_is_killed_is_succeeded(
    plane: ControlPlane, pair: tuple[Process, Process]
) -> None:
    leader, standby = pair
    since = begin_work(plane, 30)
    mark = plane.audit_mark()
    leader.dispatcher.kill()
    submit(plane, "late", 30)
    plane.wait_for(lambda: standby.leads, LONG, "the other one leads")
    wait_until_all_is_done(plane)
    check_the_lease_was_passed(plane, mark, leader, standby)
    check_that_nothing_is_doubled(plane, since)


def test_a_standby_with_a_copy_sees_what_happened_between_kill_and_take_over(
    plane: ControlPlane, pair: tuple[Process, Process]
) -> None:
    """There are so many AppWrappers that they are followed, not listed. Every node is full; one
    AppWrapper that runs and one that waits are deleted while no process leads."""
    leader, standby = pair
    for number in range(FEW):
        create(plane, appwrapper(f"other-{number}", configmap("x"), managedBy="example.com/other"))
    running = submit(plane, "run", NODES)
    plane.wait_for(lambda: tally(plane)["Running"] == NODES, LONG, "every node is used")
    waiting = submit(plane, "wait", 2)
    plane.wait_for(lambda: "copy is complete" in standby.dispatcher.log(), LONG, "a copy")
    mark = plane.audit_mark()
    leader.dispatcher.kill()
    delete(plane, running[0], waiting[0])
    last = submit(plane, "last", 1)[0]
    plane.wait_for(lambda: standby.leads, LONG, "the other one leads")
    plane.wait_for(lambda: states(plane)[waiting[1]] == "Running", LONG, "the room is used")
    plane.wait_for(lambda: states(plane)[last] == "Pending", LONG, "the last one waits")
    check_the_lease_was_passed(plane, mark, leader, standby)
    assert overcommitted(plane) == {}
    assert limits(plane, mark, standby, "appwrappers") == {"1"}
    assert "500" in limits(plane, mark, standby, "nodes"), "there are few of them"


def test_a_leader_that_was_stopped_and_goes_on_writes_nothing_more_and_ends(
    plane: ControlPlane, pair: tuple[Process, Process]
) -> None:
    leader, standby = pair
    since = begin_work(plane, 30)
    plane.process("first").send_signal(signal.SIGSTOP)
    mark = plane.audit_mark()
    submit(plane, "late", 30)
    plane.wait_for(lambda: standby.leads, LONG, "the other one leads")
    plane.process("first").send_signal(signal.SIGCONT)
    assert leader.dispatcher.end_of_life(timeout=10) == 1
    last = leader.dispatcher.log().splitlines()[-1]
    assert "level=error" in last
    assert "the lease kube-system/mcad-dispatcher of" in last
    wait_until_all_is_done(plane)
    check_the_lease_was_passed(plane, mark, leader, standby)
    check_that_nothing_is_doubled(plane, since)


def test_a_leader_that_is_told_to_end_hands_over_at_once(
    plane: ControlPlane, pair: tuple[Process, Process]
) -> None:
    leader, standby = pair
    since = begin_work(plane, 40)
    assert leader.dispatcher.stop() == 0
    requests = seen(plane, since)
    release = written(requests, leader)[-1]
    assert release.resource == "leases", "what was under way ended before the lease was given back"
    submit(plane, "late", 20)
    plane.wait_for(lambda: standby.leads, LONG, "the other one leads")
    wait_until_all_is_done(plane)
    requests = [one for one in seen(plane, since) if one.at > release.at]
    looks = [
        one.verb for one in requests if one.token == standby.token and one.resource == "leases"
    ]
    assert looks.index("patch") <= 2, "it was seen at the next look"
    check_that_nothing_is_doubled(plane, since)


def test_one_leads_after_the_api_server_was_restarted(
    plane: ControlPlane, pair: tuple[Process, Process]
) -> None:
    """kube-scheduler loses the answers to its bindings in the kill, forgets those pods, and binds
    others to their nodes: the dispatcher reports these nodes, and admits no more than is free."""
    since = begin_work(plane, 40)
    plane.process("kube-apiserver").kill()
    plane.restart("kube-apiserver")
    plane.wait_for(plane.ready, 60, "the API server is back")
    plane.wait_for(lambda: len(states(plane)) == 40, 60, "so are AppWrappers")
    submit(plane, "late", 20)
    twice = wait_until_every_node_is_used(plane)
    leader, standby = pair
    assert (leader.leads, standby.stands_by) == (True, True), "it was away for less than 10 s"
    told = r"node is overcommitted.* node=(\S+) requested="
    assert set(re.findall(told, leader.dispatcher.log())) == set(twice)
    page = leader.dispatcher.get("/metrics")[1]
    assert f"mcad_overcommitted_nodes {float(len(twice))}" in page
    assert f"mcad_node_overcommitments_total {float(len(twice))}" in page
    print(f"bound twice: {sorted(twice)}")
    assert written(seen(plane, since), standby) == []
    check_that_nothing_is_doubled(plane, since)
    plane.restart("kube-controller-manager")  # its garbage collector may sulk for a minute
