"""Quota trees on a real API server: changes, restarts at every step, silence at rest, samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcad.api.config import Config
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import Bystander, ours, wait_until_quiet, writes
from tests.e2e.process import ACCOUNT, NAMESPACE, SHORT_LEASE, Dispatcher, mcad, printed
from tests.e2e.support import (
    SAMPLES,
    appwrapper,
    appwrappers_path,
    conditions_of,
    create,
    delete,
    items,
    pod,
    pods,
    states,
    status_of,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

FORESTS = Path(__file__).with_name("forests")
ON = ("--set", "quotaEnabled=true")
# Each life begins when the lease of the one before is given back, or has run out.
PATIENCE_S = 60.0
GROUP = "quota.codeflare.dev"
BASE = f"/apis/{GROUP}/v1alpha1"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, account: Path) -> ControlPlane:
    """A node with more room than any tree; the dispatcher's rights are those for quota."""
    assert account
    control_plane.wait_for_crd(f"quotasubtrees.{GROUP}")
    control_plane.add_node("node-1", cpu="64", memory="64Gi")
    control_plane.apply(printed("rbac", "-n", NAMESPACE, "--service-account", ACCOUNT, *ON))
    return control_plane


@pytest.fixture
def grace_s() -> float:
    """``quotaGracePeriod``, short because some tests wait for its end."""
    return 5.0


@pytest.fixture
def dispatcher(plane: ControlPlane, account: Path, grace_s: float) -> Iterator[Dispatcher]:
    """A dispatcher that counts shares; nothing is left of what a test has made."""
    grace = ("--set", f"quotaGracePeriod={grace_s}")
    with Dispatcher(plane, account, *ON, *grace, *SHORT_LEASE) as running:
        yield running
        delete(plane)
        plane.kubectl("delete", "quotasubtrees", "--all", "--all-namespaces")


# -- what is there -------------------------------------------------------------------------------


def subtree(name: str, parent: str = "", **shares: str) -> Json:
    """A QuotaSubtree of the tree ``teams``."""
    children = [{"name": one, "quotas": {"requests": {"cpu": n}}} for one, n in shares.items()]
    spec = {"children": children} | ({"parent": parent} if parent else {})
    metadata = {"name": name, "namespace": "default", "labels": {"tree": "teams"}}
    kind = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "QuotaSubtree"}
    return {**kind, "metadata": metadata, "spec": spec}


def put(plane: ControlPlane, *subtrees: Json) -> None:
    plane.kubectl("apply", "--validate=strict", "-f", "-", stdin=_list(*subtrees))


def _list(*objects: Json) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def submit(plane: ControlPlane, name: str, team: str, cpu: str) -> None:
    made = appwrapper(name, pod(name, cpu))
    made["metadata"]["labels"] = {"teams": team}
    create(plane, made)


def quota_status(plane: ControlPlane, name: str, namespace: str = "default") -> Json:
    """The status of a QuotaSubtree."""
    path = f"{BASE}/namespaces/{namespace}/quotasubtrees/{name}"
    status: Json = plane.request("GET", path)[1].get("status", {})
    return status


def reason(plane: ControlPlane, name: str, namespace: str = "default") -> str:
    """Of its condition Ready."""
    found = quota_status(plane, name, namespace).get("conditions", [])
    return next((str(one["reason"]) for one in found if one["type"] == "Ready"), "")


def figures(plane: ControlPlane) -> Json:
    """Of every node of every QuotaSubtree that is shown, without its share."""
    return {
        node["name"]: {word: node[word] for word in node if word not in ("name", "nominal")}
        for one in items(plane, f"{BASE}/quotasubtrees")
        for node in one.get("status", {}).get("children", [])
    }


def why(plane: ControlPlane, name: str) -> str:
    """What a refused AppWrapper is told."""
    return str(conditions_of(plane, name).get("Backoff", {}).get("message", ""))


def until(
    plane: ControlPlane,
    value: Callable[[], object],
    expected: object,
    patience_s: float = PATIENCE_S,
) -> None:
    """Wait until it is so."""
    plane.wait_for(lambda: value() == expected, patience_s, f"{expected}, not {value()}")


def quota_writes(plane: ControlPlane, since: int) -> int:
    """Writes to QuotaSubtrees by the dispatcher, of whatever outcome."""
    return len([one for one in writes(plane.audit(since)) if one.resource == "quotasubtrees"])


# -- MCAD's forests ------------------------------------------------------------------------------


def test_mcads_forests_load_unmodified_and_are_in_force(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    assert dispatcher.url
    for file in sorted(FORESTS.iterdir()):
        plane.kubectl("apply", "--validate=strict", "-f", str(file))
    expected = {
        ("kube-system", "context-root"): "InForce",
        ("kube-system", "service-root"): "InForce",
        ("default", "context-root-children"): "Overcommitted",
        ("kube-system", "service-root-children"): "InForce",
        ("kube-system", "actinides-root"): "InForce",
        ("kube-system", "actinides-children"): "Overcommitted",
    }
    for (namespace, name), told in expected.items():
        until(plane, lambda n=name, ns=namespace: reason(plane, n, ns), told)
    children = quota_status(plane, "context-root-children")["children"]
    assert [one["name"] for one in children] == ["gold", "silver", "bronze", "default"]
    assert children[0]["nominal"] == {"cpu": "1075m", "memory": "450Mi", "nvidia.com/gpu": "8"}
    assert children[2]["nominal"] == {"cpu": "900m", "memory": "300Mi", "nvidia.com/gpu": "0"}
    shown = plane.kubectl("get", "qst", "-n", "kube-system").splitlines()
    assert shown[0].split() == ["NAME", "TREE", "PARENT", "READY", "REASON", "AGE"]
    assert shown[1].split()[:-1] == [
        *("actinides-children", "quota_actinides", "actinides-root", "True", "Overcommitted")
    ]

    submit(plane, "leafless", "x", "100m")  # a tree has no leaf "default"
    until(plane, lambda: "set the label quota_actinides" in why(plane, "leafless"), True)


def test_the_old_group_is_not_served(plane: ControlPlane) -> None:
    assert plane.request("GET", "/apis/ibm.com/v1/quotasubtrees")[0] == 404


# -- the life of a tree --------------------------------------------------------------------------


class Story:
    """Steps with a restart after each: what was true stays true, and is not written again."""

    def __init__(self, plane: ControlPlane, dispatcher: Dispatcher) -> None:
        self.plane = plane
        self.dispatcher = dispatcher
        self.kills = False

    def expect(self, shown: Json, *running: str, waiting: tuple[str, ...] = ()) -> None:
        """So it is soon, and after a restart: by a kill every other time."""
        wanted = dict.fromkeys(running, "Running") | dict.fromkeys(waiting, "Pending")
        until(self.plane, lambda: states(self.plane), wanted)
        until(self.plane, lambda: figures(self.plane), shown)
        wait_until_quiet(self.plane)
        mark = self.plane.audit_mark()
        self.kills = not self.kills
        if self.kills:
            self.dispatcher.kill()
        else:
            self.dispatcher.stop()
        self.dispatcher.start()
        wait_until_quiet(self.plane)
        assert states(self.plane) == wanted
        assert figures(self.plane) == shown
        assert quota_writes(self.plane, mark) == 0


def test_a_tree_lives_while_appwrappers_run(plane: ControlPlane, dispatcher: Dispatcher) -> None:
    story = Story(plane, dispatcher)
    put(plane, subtree("root", root="4"), subtree("teams", "root", red="3", blue="1"))
    until(plane, lambda: (reason(plane, "root"), reason(plane, "teams")), ("InForce", "InForce"))

    # Red borrows what blue leaves idle; blue is told which leaf has it.
    submit(plane, "red-1", "red", "2500m")
    submit(plane, "red-2", "red", "1")
    until(plane, lambda: states(plane), {"red-1": "Running", "red-2": "Running"})
    submit(plane, "blue-1", "blue", "1")
    told = (
        'Insufficient quota to dispatch AppWrapper. Quota tree "teams", node "root": cpu: 1 '
        "requested, 3500m of 4 used. Borrowing there: red (500m)."
    )
    until(plane, lambda: why(plane, "blue-1"), told)
    assert status_of(plane, "blue-1")["quota"] == [{"tree": "teams", "leaf": "blue"}]
    one_waits = {
        "root": {"allocated": {"cpu": "3500m"}, "waiting": {"cpu": "1"}},
        "red": {"allocated": {"cpu": "3500m"}, "borrowed": {"cpu": "500m"}},
        "blue": {"lent": {"cpu": "500m"}, "waiting": {"cpu": "1"}},
    }
    story.expect(one_waits, "red-1", "red-2", waiting=("blue-1",))

    # The root grows, and shrinks again: what runs is not evicted for that.
    put(plane, subtree("root", root="5"))
    all_run = {
        "root": {"allocated": {"cpu": "4500m"}},
        "red": {"allocated": {"cpu": "3500m"}, "borrowed": {"cpu": "500m"}},
        "blue": {"allocated": {"cpu": "1"}},
    }
    story.expect(all_run, "red-1", "red-2", "blue-1")
    put(plane, subtree("root", root="2"))
    in_debt = all_run | {"root": {"allocated": {"cpu": "4500m"}, "borrowed": {"cpu": "2500m"}}}
    until(plane, lambda: reason(plane, "teams"), "Overcommitted")
    story.expect(in_debt, "red-1", "red-2", "blue-1")

    # The teams are deleted while they run: what they hold counts at the root until they are back.
    plane.kubectl("delete", "quotasubtree", "teams")
    submit(plane, "red-3", "red", "500m")
    until(plane, lambda: 'has no leaf "red"' in why(plane, "red-3"), True, 2 * PATIENCE_S)
    story.expect(
        {"root": in_debt["root"] | {"waiting": {"cpu": "500m"}}},
        *("red-1", "red-2", "blue-1"),
        waiting=("red-3",),
    )
    put(plane, subtree("root", root="8"), subtree("teams", "root", red="6", blue="2"))
    back = {
        "root": {"allocated": {"cpu": "5"}},
        "red": {"allocated": {"cpu": "4"}},
        "blue": {"allocated": {"cpu": "1"}},
    }
    story.expect(back, "red-1", "red-2", "red-3", "blue-1")

    # Without a root there is no tree, and nothing is limited; with one, all is charged again.
    plane.kubectl("delete", "quotasubtree", "root")
    until(plane, lambda: reason(plane, "teams"), "NoRoot")
    submit(plane, "blue-2", "blue", "5")
    story.expect({}, "red-1", "red-2", "red-3", "blue-1", "blue-2")
    put(plane, subtree("root", root="8"))
    again = {
        "root": {"allocated": {"cpu": "10"}, "borrowed": {"cpu": "2"}},
        "red": {"allocated": {"cpu": "4"}, "lent": {"cpu": "2"}},
        "blue": {"allocated": {"cpu": "6"}, "borrowed": {"cpu": "4"}},
    }
    story.expect(again, "red-1", "red-2", "red-3", "blue-1", "blue-2")

    # Nothing is left of what is deleted.
    delete(plane)
    until(plane, lambda: figures(plane), {"root": {}, "red": {}, "blue": {}})


@pytest.mark.parametrize("grace_s", [Config().quota_grace_period])
def test_a_root_that_is_replaced_limits_all_the_time(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    """``kubectl replace --force`` deletes it before it makes its successor, and so does a CRD that
    is created anew, with everything of its kind."""
    assert dispatcher.url
    root, teams = subtree("root", root="2"), subtree("teams", "root", red="1", blue="1")
    put(plane, root, teams)
    until(plane, lambda: (reason(plane, "root"), reason(plane, "teams")), ("InForce", "InForce"))
    submit(plane, "red-0", "red", "1")
    submit(plane, "blue-0", "blue", "1")
    until(plane, lambda: states(plane), {"red-0": "Running", "blue-0": "Running"})
    watching = Bystander(plane, appwrappers_path())
    for number in range(1, 5):
        submit(plane, f"red-{number}", "red", "1")
    for _ in range(3):
        plane.kubectl("replace", "--force", "--validate=false", "-f", "-", stdin=_list(root))

    def is_absent() -> bool:
        page = dispatcher.get("/metrics")[1].splitlines()
        lines = [line for line in page if line.startswith("mcad_absent_quota_subtrees{")]
        return any(not line.endswith(" 0.0") for line in lines)

    until(plane, is_absent, False)
    crd = f"quotasubtrees.{GROUP}"
    plane.kubectl("delete", "crd", crd)
    plane.apply(printed("crd", "quotasubtrees"))
    plane.wait_for_crd(crd)
    put(plane, root, teams)
    until(plane, lambda: (reason(plane, "root"), reason(plane, "teams")), ("InForce", "InForce"))
    until(plane, is_absent, False)
    begun = {one.name for one in watching.sights() if "dispatch" in one.object.get("status", {})}
    assert begun == {"red-0", "blue-0"}, "nothing was dispatched past the root"
    delete(plane, "red-0", "blue-0")
    until(plane, lambda: sorted(states(plane).values()).count("Running"), 2)


def test_nothing_is_written_at_rest_and_never_twice_a_second(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    assert dispatcher.url
    put(plane, subtree("root", root="2"), subtree("teams", "root", red="1", blue="1"))
    until(plane, lambda: (reason(plane, "root"), reason(plane, "teams")), ("InForce", "InForce"))
    wait_until_quiet(plane)
    mark = plane.audit_mark()
    for number in range(20):
        submit(plane, f"a-{number}", "red", "500m")
    until(plane, lambda: figures(plane).get("root", {}).get("waiting"), {"cpu": "8"})
    wait_until_quiet(plane)
    written = [one for one in writes(plane.audit(mark)) if one.resource == "quotasubtrees"]
    assert {one.subresource for one in written} == {"status"}
    for name in ("root", "teams"):
        times = [one.time.timestamp() for one in written if one.name == name]
        assert len(times) <= times[-1] - times[0] + 2
    mark = plane.audit_mark()
    plane.wait_for(lambda: len(ours(plane.audit(mark))) >= 5, what="its lease was renewed often")
    assert writes(plane.audit(mark)) == []


def test_its_rights_suffice_and_go_no_further(
    plane: ControlPlane, dispatcher: Dispatcher, account: Path
) -> None:
    """The dispatcher may change a tree by its status only."""
    assert dispatcher.url
    put(plane, subtree("root", root="2"))
    until(plane, lambda: reason(plane, "root"), "InForce")
    used = [one for one in ours(plane.audit()) if one.resource == "quotasubtrees"]
    assert {(one.verb, one.subresource) for one in used} == {
        ("list", ""),
        ("watch", ""),
        ("update", "status"),
    }
    assert not [one for one in used if one.code in (401, 403)]
    patch = ("--type=merge", "-p", '{"spec": {"parent": "x"}}')
    for verb in (["patch", "quotasubtree", "root", *patch], ["delete", "quotasubtree", "root"]):
        said = plane.kubectl(*verb, kubeconfig=account, check=False)
        assert "forbidden" in said.lower()


# -- samples/quota does what its comments say, unmodified ----------------------------------------

TOLD = {"teams", "aw-research", "aw-borrower", "aw-ops", "aw-product", "aw-unknown-leaf"}


def sample(plane: ControlPlane, name: str) -> None:
    """Create it."""
    plane.kubectl("create", "--validate=strict", "-f", str(SAMPLES / f"quota/{name}.yaml"))


def test_every_sample_is_in_the_story() -> None:
    assert {path.name for path in (SAMPLES / "quota").iterdir()} == {f"{one}.yaml" for one in TOLD}


def test_three_teams_a_borrower_and_an_unknown_leaf(
    plane: ControlPlane, dispatcher: Dispatcher
) -> None:
    sample(plane, "teams")
    until(plane, lambda: reason(plane, "teams"), "InForce")
    for name, leaf in (("aw-research", "research"), ("aw-borrower", "research"), ("aw-ops", "ops")):
        sample(plane, name)
        until(plane, lambda name=name: states(plane).get(name), "Running")
        quota = status_of(plane, name)["dispatch"]["quota"]
        assert quota == [{"tree": "teams", "leaf": leaf}]

    sample(plane, "aw-product")
    full = 'Quota tree "teams", node "cluster": cpu: 3 requested, 7 of 8 used. '
    borrowing = f"{full}Borrowing there: research (2)."
    until(plane, lambda: borrowing in why(plane, "aw-product"), True)
    sample(plane, "aw-unknown-leaf")
    spelling = 'it waits until there is one. Did you mean "research"?'
    until(plane, lambda: spelling in why(plane, "aw-unknown-leaf"), True)
    assert len(pods(plane)) == 7
    told = json.loads(mcad("quota", "research", "-o", "json", "--server", dispatcher.url))
    assert told["borrowed"] == {"cpu": "2"}
    assert [one["name"] for one in told["holders"]] == ["aw-borrower", "aw-research"]

    def stored() -> Json:
        """As the dispatcher writes it, at most once a second."""
        view = json.loads(mcad("quota", "-o", "json", kubeconfig=plane.admin_kubeconfig))
        return {one["node"]: one["borrowed"] for one in view["trees"][0]["nodes"]}

    until(plane, lambda: stored()["research"], {"cpu": "2"})

    delete(plane, "aw-borrower")
    until(plane, lambda: states(plane)["aw-product"], "Running")
    assert states(plane)["aw-unknown-leaf"] == "Pending"
