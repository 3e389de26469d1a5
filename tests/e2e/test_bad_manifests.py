"""Bad manifests: users are told which field is wrong and what to do, and no other AppWrapper waits.

A bad manifest ends in one of three ways. The API server refuses it by the schema, naming the field.
Or the dispatcher holds it, with a condition and a Warning Event. Or the API server refuses one of
its items; then it has failed, with the server's words, and nothing of it is left.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcad.api.labels import APPWRAPPER_UID, GROUP
from mcad.api.models import MAX_ITEMS
from tests.chart.cluster import APPWRAPPERS, User
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import LONG, events, wait_until_quiet, writes
from tests.e2e.process import Dispatcher
from tests.e2e.support import cli, condition, create, get, in_state, patch, post, state
from tests.manifests import components, config_map, deployment, generic, job, pod, wrapper

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

NAMESPACE = "default"
ITEM = "spec.resources.GenericItems[0]"
TEMPLATE = f"{ITEM}.generictemplate"
COMPONENT = "spec.components[0]"
MEBIBYTE = 1 << 20
KINDS = (
    "/api/v1/pods",
    "/api/v1/configmaps",
    "/api/v1/serviceaccounts",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/batch/v1/jobs",
)


def changed(base: Json, path: str, value: Any) -> Json:
    """The object with another value at a path like ``spec.containers.0.image``; None takes out."""
    *way, last = path.split(".")
    owner: Any = base
    for step in way:
        owner = owner[int(step)] if isinstance(owner, list) else owner.setdefault(step, {})
    if value is None:
        del owner[last]
    else:
        owner[int(last) if isinstance(owner, list) else last] = value
    return base


def bad_pod(path: str, value: Any, name: str = "x") -> Json:
    return changed(pod(name), path, value)


def item_with(template: Json, **more: Any) -> Json:
    """The spec of one generic item that has more than a template."""
    return {"resources": {"GenericItems": [{"generictemplate": template, **more}]}}


def component_with(template: Json, **more: Any) -> Json:
    """The same in the other dialect."""
    return {"components": [{"template": template, **more}]}


def thing(api_version: str, kind: str, name: str = "x", **more: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


# -- the bench -----------------------------------------------------------------------------------


class Bench:
    """A cluster with room, a dispatcher that outlives every bad manifest, and what to look at."""

    def __init__(self, plane: ControlPlane, dispatcher: Dispatcher) -> None:
        self.plane = plane
        self.dispatcher = dispatcher
        self._good = 0

    def named(self, name: str) -> str:
        """The name of a case as that of an object."""
        return "bad-" + "-".join(name.lower().split())

    def check_held(self, name: str, field: str, advice: str, reason: str) -> None:
        """It waits; condition and Warning Event name the field and give the advice."""
        self.plane.wait_for(
            lambda: condition(get(self.plane, name), "Backoff"), LONG, f"the condition of {name}"
        )
        found = get(self.plane, name)
        told = condition(found, "Backoff")
        assert state(found) == "Pending"
        assert (told["status"], told["reason"]) == ("True", reason)
        assert told["message"].startswith(f"{field}: ")
        assert advice in told["message"]
        assert "dispatch" not in found["status"]
        self.check_warning(found, "Refused", f"{field}: ")
        self.check_that_nothing_is_left(found)

    def check_warning(self, appwrapper: Json, reason: str, words: str) -> None:
        """A Warning Event says so, too."""
        uid = appwrapper["metadata"]["uid"]

        def warned() -> bool:
            path = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
            found = self.plane.request("GET", path)[1]["items"]
            mine = [one for one in found if one["regarding"].get("uid") == uid]
            return any(
                (one["type"], one["reason"]) == ("Warning", reason) and words in one["note"]
                for one in mine
            )

        self.plane.wait_for(warned, LONG, f"a Warning {reason} with {words!r}")

    def check_that_nothing_is_left(self, appwrapper: Json) -> None:
        """No object was made for it, or none is there any more."""
        uid = appwrapper["metadata"]["uid"]
        for path in KINDS:
            found = self.plane.request("GET", f"{path}?labelSelector={APPWRAPPER_UID}%3D{uid}")[1]
            assert found["items"] == []

    def check_that_the_queue_goes_on(self) -> None:
        """A good AppWrapper behind the bad one is dispatched, and no process has died."""
        self._good += 1
        name = f"good-{self._good}"
        create(self.plane, generic(name, pod(name, "1m")))
        self.plane.wait_for(lambda: state(get(self.plane, name)) == "Running", LONG, f"{name} runs")
        assert self.dispatcher.get("/readyz")[0] == 200
        assert "trace" not in self.dispatcher.log().lower()


@pytest.fixture(scope="module")
def bench(control_plane: ControlPlane, account: Path) -> Iterator[Bench]:
    control_plane.add_node("node", cpu="32", memory="64Gi", pods=500)
    with Dispatcher(control_plane, account) as running:
        yield Bench(control_plane, running)


# -- refused by the schema -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refused:
    """What the API server does not let in, and what its answer has to contain."""

    spec: Any
    words: tuple[str, ...]
    version: str = "v1beta1"
    code: int = 422


REQUESTS = f"{ITEM}.custompodresources[0].requests.cpu"

REFUSED = {
    "no spec": Refused(None, ("spec: Required value",)),
    "a list for a map": Refused(
        {"resources": [pod("x")]}, ("spec.resources", "must be of type object")
    ),
    "a map for a list": Refused(
        {"components": {"template": pod("x")}}, ("spec.components", "must be of type array")
    ),
    "a text for a number": Refused(
        item_with(pod("x")) | {"priority": "high"}, ("spec.priority", "must be of type integer")
    ),
    "a number for a text": Refused(
        item_with(pod("x"), completionstatus=1),
        (f"{ITEM}.completionstatus", "must be of type string"),
    ),
    "too many items": Refused(
        {"components": [{"template": config_map(f"x-{i}")} for i in range(MAX_ITEMS + 1)]},
        ("spec.components: Too many", f"at most {MAX_ITEMS} items"),
        "v1beta2",
    ),
    "a component without a template": Refused(
        {"components": [{"podSets": []}]}, (f"{COMPONENT}.template: Required value",), "v1beta2"
    ),
    "a template without apiVersion": Refused(
        component_with(changed(pod("x"), "apiVersion", None)),
        (f"{COMPONENT}.template.apiVersion: Required value",),
        "v1beta2",
    ),
    "a template that is a text": Refused(
        item_with("kind: Pod"),  # type: ignore[arg-type]
        (TEMPLATE, "must be of type object"),
    ),
    "a pod set without a path": Refused(
        component_with(pod("x"), podSets=[{"replicas": 1}]),
        (f"{COMPONENT}.podSets[0].path: Required value",),
        "v1beta2",
    ),
    "a huge priority": Refused(
        item_with(pod("x")) | {"priority": 2**40}, ("spec.priority", "format int32")
    ),
    "labels as a list": Refused(
        item_with(bad_pod("metadata.labels", ["a"])), (f"{TEMPLATE}.metadata",), code=400
    ),
    "a number for a name": Refused(
        item_with(bad_pod("metadata.name", 7)), (f"{TEMPLATE}.metadata",), code=400
    ),
    "a label with blanks": Refused(
        item_with(bad_pod("metadata.labels", {"team": "a b"})),
        (f"{TEMPLATE}.metadata.labels", "a valid label must be"),
    ),
    "more than etcd takes": Refused(
        item_with(config_map("x", {"k": "x" * (4 * MEBIBYTE)})), ("too large",), code=413
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_the_schema(bench: Bench, name: str) -> None:
    bad = REFUSED[name]
    manifest = wrapper(bench.named(name), bad.spec, bad.version)
    if bad.spec is None:
        del manifest["spec"]
    code, answer = post(bench.plane, manifest)
    assert code == bad.code, answer
    for words in bad.words:
        assert words in answer["message"]


# -- held by the dispatcher ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Held:
    """What the dispatcher does not dispatch: the field that its message names, and its advice."""

    spec: Json
    field: str
    advice: str
    reason: str = "InvalidAppWrapper"
    version: str = "v1beta1"


CPU = "spec.containers.0.resources.requests.cpu"
WHERE = "spec.containers[0].resources.requests.cpu"
V2 = "v1beta2"

HELD = {
    "no items": Held({"resources": {"GenericItems": []}}, ITEM[:-3], "list the objects to wrap"),
    "no components": Held(
        {"components": []}, COMPONENT[:-3], "list the objects to wrap", version=V2
    ),
    "unknown kind": Held(
        item_with(thing("example.com/v1", "Widget")),
        f"{TEMPLATE}.kind",
        "install its CRD",
        "KindNotInstalled",
    ),
    "unknown version": Held(
        item_with(thing("apps/v9", "Deployment")),
        f"{TEMPLATE}.kind",
        "correct apiVersion",
        "KindNotInstalled",
    ),
    "a ServiceAccount": Held(
        item_with(thing("v1", "ServiceAccount")),
        f"{TEMPLATE}.kind",
        "serviceaccounts: ServiceAccount}, dangerous: true}. It carries rights: apply it before",
        "KindNotWrapped",
    ),
    "a RoleBinding": Held(
        component_with(thing("rbac.authorization.k8s.io/v1", "RoleBinding")),
        f"{COMPONENT}.template.kind",
        "rolebindings.rbac.authorization.k8s.io may not be wrapped",
        "KindNotWrapped",
        V2,
    ),
    "a ClusterRole": Held(
        item_with(thing("rbac.authorization.k8s.io/v1", "ClusterRole")),
        f"{TEMPLATE}.kind",
        "only namespaced kinds can be wrapped",
    ),
    "a Namespace": Held(
        component_with(thing("v1", "Namespace")),
        f"{COMPONENT}.template.kind",
        "only namespaced kinds can be wrapped",
        version=V2,
    ),
    "an AppWrapper": Held(
        item_with(generic("inner", pod("x"))), f"{TEMPLATE}.kind", "wrap its items"
    ),
    "no template": Held(
        {"resources": {"GenericItems": [{"replicas": 1}]}},
        TEMPLATE,
        "put the object to create here",
    ),
    "no name": Held(
        item_with(bad_pod("metadata.name", None)),
        f"{TEMPLATE}.metadata.name",
        "give the object a name",
    ),
    "an invalid name": Held(
        item_with(pod("Not_A_Name")), f"{TEMPLATE}.metadata.name", "use lower case letters"
    ),
    "the same name twice": Held(
        components("", pod("x"), config_map("x"), pod("x"))["spec"],
        "spec.components[2].template",
        "is wrapped twice, first in spec.components[0].template",
        version=V2,
    ),
    "another namespace": Held(
        item_with(bad_pod("metadata.namespace", "kube-system")),
        f"{TEMPLATE}.metadata.namespace",
        "items are created in the namespace of their AppWrapper",
    ),
    "owner references": Held(
        item_with(
            bad_pod(
                "metadata.ownerReferences",
                [{"apiVersion": "v1", "kind": "Pod", "name": "y", "uid": "z"}],
            )
        ),
        f"{TEMPLATE}.metadata.ownerReferences",
        "must be absent",
    ),
    "finalizers": Held(
        component_with(bad_pod("metadata.finalizers", ["example.com/stay"])),
        f"{COMPONENT}.template.metadata.finalizers",
        "must be absent",
        version=V2,
    ),
    "a label of ours": Held(
        item_with(bad_pod("metadata.labels", {APPWRAPPER_UID: "mine"})),
        f"{TEMPLATE}.metadata.labels.{APPWRAPPER_UID}",
        "remove it",
    ),
    "a malformed quantity": Held(
        item_with(bad_pod(CPU, "1 core")), f"{TEMPLATE}.{WHERE}", "write a number such as"
    ),
    "a quantity without a number": Held(
        component_with(bad_pod(CPU, "Gi")),
        f"{COMPONENT}.template.{WHERE}",
        "write a number such as",
        version=V2,
    ),
    "a quantity without end": Held(
        item_with(bad_pod(CPU, "1e99999999999")), f"{TEMPLATE}.{WHERE}", "no amount needs it"
    ),
    "a truth for a quantity": Held(
        item_with(bad_pod(CPU, True)), f"{TEMPLATE}.{WHERE}", 'write it like "500m"'
    ),
    "a negative quantity": Held(
        item_with(bad_pod(CPU, "-1")), f"{TEMPLATE}.{WHERE}", "is negative"
    ),
    "a declared negative quantity": Held(
        item_with(pod("x"), custompodresources=[{"replicas": 1, "requests": {"cpu": "-1"}}]),
        REQUESTS,
        "is negative",
    ),
    "negative replicas": Held(
        item_with(deployment("x", -1)), f"{TEMPLATE}.spec.replicas", "must not be negative"
    ),
    "declared negative replicas": Held(
        item_with(pod("x"), custompodresources=[{"replicas": -1, "requests": {}}]),
        f"{ITEM}.custompodresources[0].replicas",
        "must not be negative",
    ),
    "a million millions of replicas": Held(
        component_with(deployment("x", 10**12)),
        f"{COMPONENT}.template.spec.replicas",
        "at most 1000000 is allowed",
        version=V2,
    ),
    "a text as parallelism": Held(
        item_with(changed(job("x", 2, "100m", 1), "spec.parallelism", "2")),
        f"{TEMPLATE}.spec.parallelism",
        "must be a whole number",
    ),
    "a path into nothing": Held(
        component_with(deployment("x"), podSets=[{"path": "template.spec.temple", "replicas": 1}]),
        f"{COMPONENT}.podSets[0].path",
        "there is nothing at 'template.spec.temple' in the template",
        version=V2,
    ),
    "a path to no pod template": Held(
        component_with(deployment("x"), podSets=[{"path": "template.metadata"}]),
        f"{COMPONENT}.podSets[0].path",
        "does not lead to a pod template",
        version=V2,
    ),
    "two pod sets at one path": Held(
        component_with(deployment("x"), podSets=[{"path": "template.spec.template"}] * 2),
        f"{COMPONENT}.podSets[1].path",
        "each pod set needs its own path",
        version=V2,
    ),
    "more infos than pod sets": Held(
        component_with(pod("x"), podSetInfos=[{}, {}]),
        f"{COMPONENT}.podSetInfos",
        "has 2 entries, but there are 1 pod sets",
        version=V2,
    ),
    "an invalid generated name": Held(
        item_with(changed(bad_pod("metadata.generateName", "No_"), "metadata.name", None)),
        f"{TEMPLATE}.metadata.generateName",
        "use lower case letters",
    ),
    "containers as a map": Held(
        item_with(bad_pod("spec.containers", {"name": "main"})),
        f"{TEMPLATE}.spec.containers",
        "must be a list",
    ),
    "a number in a node selector": Held(
        item_with(bad_pod("spec.nodeSelector", {"zone": 7})),
        f"{TEMPLATE}.spec.nodeSelector.zone",
        "quote it",
    ),
    "a huge slope": Held(
        item_with(pod("x")) | {"priorityslope": 1e30},
        "spec.priorityslope",
        "must be a number within",
    ),
    "more than a mebibyte": Held(
        {
            "components": [
                {"template": config_map(f"x-{i}", {"k": "x" * (MEBIBYTE // 3)})} for i in range(4)
            ]
        },
        "spec",
        "Split the AppWrapper",
        version=V2,
    ),
}


@pytest.fixture(scope="module")
def submitted(bench: Bench) -> None:
    """All bad manifests that the API server lets in at once, and a good one behind them."""
    for name, bad in (HELD | FAILED).items():
        create(bench.plane, wrapper(bench.named(name), bad.spec, bad.version))
    bench.check_that_the_queue_goes_on()


@pytest.mark.usefixtures("submitted")
@pytest.mark.parametrize("name", HELD)
def test_held_by_the_dispatcher(bench: Bench, name: str) -> None:
    bad = HELD[name]
    bench.check_held(bench.named(name), bad.field, bad.advice, bad.reason)


def test_nested_without_end(bench: Bench) -> None:
    """Deeper than a JSON decoder likes to go, and yet the API server takes it."""
    for levels in (300, 980, 5000):
        aw = bench.named(f"nested {levels}")
        inner = '{"a":' * levels + "{}" + "}" * levels
        text = json.dumps(wrapper(aw, item_with(config_map("x") | {"data": "@"})))
        text = text.replace('"@"', inner)
        bench.plane.kubectl("create", "--validate=false", "-f", "-", stdin=text)
        read = ("get", "appwrapper", aw, "-o", "jsonpath={.status}")
        bench.plane.wait_for(lambda read=read: bench.plane.kubectl(*read), LONG, f"status of {aw}")
        status = json.loads(bench.plane.kubectl(*read))
        told = condition({"status": status}, "Backoff")
        assert told["reason"] == "InvalidAppWrapper"
        assert "GenericItems[0].generictemplate: is nested too deeply" in told["message"]
        assert "flatten it" in told["message"]
        bench.plane.kubectl("delete", "appwrapper", aw)
        bench.check_that_the_queue_goes_on()


def test_a_held_one_is_dispatched_once_it_is_mended(bench: Bench) -> None:
    aw = bench.named("mended")
    create(bench.plane, generic(aw, bad_pod(CPU, "a lot", aw)))
    bench.check_held(aw, f"{TEMPLATE}.{WHERE}", "write a number such as", "InvalidAppWrapper")
    patch(bench.plane, aw, {"spec": item_with(pod(aw))})
    bench.plane.wait_for(lambda: state(get(bench.plane, aw)) == "Running", LONG, f"{aw} runs")
    assert condition(get(bench.plane, aw), "Backoff")["status"] == "False"


# -- an item that the API server refuses ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failed:
    """What the API server says to the item at ``place``, of which the condition has every word."""

    spec: Json
    words: tuple[str, ...]
    version: str = "v1beta1"


FAILED = {
    "no containers": Failed(
        item_with(bad_pod("spec.containers", [])), ("spec.containers: Required value",)
    ),
    "an unknown pull policy": Failed(
        component_with(bad_pod("spec.containers.0.imagePullPolicy", "Sometimes")),
        ("spec.containers[0].imagePullPolicy: Unsupported value", '"Always"'),
        V2,
    ),
    "a container without a name": Failed(
        item_with(bad_pod("spec.containers.0.name", None)),
        ("spec.containers[0].name: Required value",),
    ),
    "a selector that does not match": Failed(
        component_with(changed(deployment("x"), "spec.selector.matchLabels", {"app": "y"})),
        ("spec.template.metadata.labels: Invalid value", "does not match template"),
        V2,
    ),
    "a restart policy that Jobs do not know": Failed(
        item_with(changed(job("x", 1, "100m", 1), "spec.template.spec.restartPolicy", "Always")),
        ("spec.template.spec.restartPolicy: Required value",),
    ),
    "a number for a text in a pod": Failed(
        item_with(bad_pod("spec.containers.0.image", 7)), ("image of type string",)
    ),
    "a name that pods may not have": Failed(
        item_with(changed(thing("v1", "Service", "1.2"), "spec", {"ports": [{"port": 80}]})),
        ("metadata.name: Invalid value",),
    ),
    "a label with blanks in a pod template": Failed(
        item_with(changed(deployment("x"), "spec.template.metadata.labels.team", "a b")),
        ("spec.template.labels: Invalid value",),
    ),
    "a pod that tolerates nonsense": Failed(
        component_with(bad_pod("spec.tolerations", [{"key": "k", "operator": "Perhaps"}])),
        ("spec.tolerations[0].operator: Unsupported value",),
        V2,
    ),
    "a limit below the request": Failed(
        component_with(bad_pod("spec.containers.0.resources.limits", {"cpu": "1m"})),
        ("spec.containers[0].resources.requests", "must be less than or equal to cpu limit"),
        V2,
    ),
    "the last of three items": Failed(
        generic("", config_map("x"), pod("x"), bad_pod("spec.containers", [], "y"))["spec"],
        ("default/y creation failure", "spec.containers: Required value"),
    ),
}


@pytest.mark.usefixtures("submitted")
@pytest.mark.parametrize("name", FAILED)
def test_failed_by_the_words_of_the_api_server(bench: Bench, name: str) -> None:
    bad, aw = FAILED[name], bench.named(name)
    bench.plane.wait_for(lambda: state(get(bench.plane, aw)) == "Failed", LONG, f"{aw} has failed")
    found = get(bench.plane, aw)
    told = condition(found, "Failed")
    assert (told["status"], told["reason"]) == ("True", "ItemCreationFailure.")
    assert f"{NAMESPACE}/" in told["message"]
    for words in bad.words:
        assert words in told["message"]
    assert condition(found, "Dispatched").get("status", "False") == "False"
    bench.check_warning(found, "Failed", bad.words[0])
    bench.check_that_nothing_is_left(found)


def test_a_manifest_of_almost_a_mebibyte_is_fine(bench: Bench) -> None:
    aw = bench.named("almost a mebibyte")
    create(bench.plane, generic(aw, config_map(aw, {"k": "x" * (MEBIBYTE - 1024)})))
    bench.plane.wait_for(lambda: state(get(bench.plane, aw)) == "Running", LONG, f"{aw} runs")


def test_the_longest_name_is_fine(bench: Bench) -> None:
    """It does not fit into a label, and Events have to leave room for more."""
    aw = "long-" + "o" * 240 + ".example"
    create(bench.plane, generic(aw, config_map("of-a-long-one")))
    bench.plane.wait_for(lambda: state(get(bench.plane, aw)) == "Running", LONG, "it runs")


# -- fields that the API server does not know ----------------------------------------------------


def misspelt(name: str) -> Json:
    """A Job whose pods ask for nothing, and of which only one runs at a time."""
    made = changed(job(name, 2, "100m", 60), "spec.paralelism", 2)
    return changed(made, "spec.template.spec.containers.0.resource", {"requests": {"cpu": 8}})


UNKNOWN = (
    'unknown field "spec.paralelism"',
    'unknown field "spec.template.spec.containers[0].resource"',
)


def test_an_unknown_field_runs_with_a_warning(bench: Bench) -> None:
    aw = bench.named("misspelt")
    create(bench.plane, generic(aw, misspelt(aw)))
    bench.plane.wait_for(lambda: state(get(bench.plane, aw)) == "Running", LONG, f"{aw} runs")
    for words in UNKNOWN:
        bench.check_warning(get(bench.plane, aw), "ManifestWarning", words)


def submit(obj: Json, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    return cli("submit", "-", kubeconfig=kubeconfig, stdin=json.dumps(obj))


def test_an_unknown_field_is_a_fault_before_anything_is_sent(bench: Bench) -> None:
    aw = bench.named("not sent")
    done = submit(generic(aw, misspelt(aw)), bench.plane.admin_kubeconfig)
    assert (done.returncode, done.stdout) == (1, "")
    told, end = done.stderr.splitlines()
    assert told.startswith(
        f"error: standard input: Job {NAMESPACE}/{aw}: {UNKNOWN[0]}, {UNKNOWN[1]}"
    )
    assert end == "error: nothing was sent: 1 fault to correct first"
    assert (
        bench.plane.request(
            "GET", f"/apis/{GROUP}/v1beta1/namespaces/{NAMESPACE}/appwrappers/{aw}"
        )[0]
        == 404
    )


def test_what_the_submitter_may_not_create_is_not_checked(bench: Bench) -> None:
    user = User(bench.plane, NAMESPACE, "submitter", APPWRAPPERS)
    aw = bench.named("not checked")
    done = submit(generic(aw, pod(aw)), user.kubeconfig)
    assert (done.returncode, done.stdout) == (0, f"appwrapper.{GROUP}/{aw} created\n")
    words = f'pods is forbidden: User "{user.name}" cannot create resource "pods"'
    told = f"Pod {NAMESPACE}/{aw} is not checked: you may not create it yourself ({words}"
    assert done.stderr.startswith(f"warning: standard input: {told}")


# -- pods that find no node ----------------------------------------------------------------------


def test_pods_without_a_node_are_told_with_the_words_of_kube_scheduler(bench: Bench) -> None:
    """It has room, but its pods want to be near others that do not exist."""
    aw, plane = bench.named("lonely"), bench.plane
    term = {"labelSelector": {"matchLabels": {"app": "none"}}, "topologyKey": "zone"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    create(plane, generic(aw, *(bad_pod("spec.affinity", near, f"{aw}-{i}") for i in range(3))))

    def told() -> str:
        return str(condition(get(plane, aw), "Stalled").get("message", ""))

    plane.wait_for(told, LONG, "the condition tells")
    why = "(0/1 nodes are available: 1 node(s) didn't match pod affinity rules); the attempt ends"
    assert told().startswith("3 pods without a node since ")
    assert f"{why} at " in told()
    bench.check_warning(get(plane, aw), "PodsUnschedulable", "3 pods without a node for 1")
    for source, words in (((), f"{why} at "), (("--server", bench.dispatcher.url), f"{why} in ")):
        page = cli("describe", aw, *source, kubeconfig=plane.admin_kubeconfig).stdout
        (line,) = [one for one in page.splitlines() if one.startswith("Why:")]
        assert words in line
        assert "Waits for:" not in page
    plane.kubectl("delete", "appwrapper", aw)


# -- after all of them ---------------------------------------------------------------------------


def test_nothing_is_left_and_nothing_is_repeated(bench: Bench) -> None:
    """At rest it is silent, and a restart among all these writes nothing about them."""
    plane = bench.plane
    assert bench.dispatcher.get("/healthz")[0] == 200
    for name in in_state(plane, "Pending") | in_state(plane, "Failed"):
        bench.check_that_nothing_is_left(get(plane, name))
    wait_until_quiet(plane)
    told = Counter(one.name for one in writes(plane.audit()) if one.subresource == "status")
    assert {told[name] for name in in_state(plane, "Pending")} == {1}

    mark = plane.audit_mark()
    bench.dispatcher.kill()
    bench.dispatcher.start()
    wait_until_quiet(plane)
    restarted = plane.audit(mark)
    assert writes(restarted) == []
    assert events(restarted) == []
    bench.check_that_the_queue_goes_on()
    assert "trace" not in bench.dispatcher.log().lower()
