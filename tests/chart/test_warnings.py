"""What is legal but likely wrong is let in with a warning that says what to do.

On a real control plane, with the header Warning of its answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from mcad.api.appwrapper import MAX_PAYLOAD, MAX_POD_SETS_ALL
from mcad.api.kinds import KINDS
from mcad.api.labels import GROUP, QUEUE_NAME
from mcad.api.live import _TABLE as LIVE
from mcad.api.live.switches import Switch
from mcad.api.models import MAX_ITEMS, MAX_POD_SETS
from mcad.api.podsets import infer
from tests import budget
from tests.chart.cluster import PULLED_NOWHERE, Release, expression_warnings
from tests.chart.helm import ROOT, Helm
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.support import cli
from tests.manifests import components, config_map, deployment, generic, job, pod, wrapper

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

SAMPLES = sorted((ROOT / "samples").rglob("aw-*.yaml"))
CHARTS = sorted((ROOT / "tests" / "e2e" / "charts").rglob("*.yaml"))
SIZES = [{"cpu": 64, "memory": "250Gi", "nvidia.com/gpu": 8}, {"cpu": "96", "memory": "370Gi"}]
LEAVES = {"teams": ["research", "product", "ops", "default"], "strict": ["only"]}
VALUES: Json = {
    "submissionWarnings": {"nodeSizes": SIZES, "quotaLeaves": LEAVES},
    "config": {"quotaEnabled": True, "queueNameTree": "teams"},
    "authorization": "none",
    "maxPodSets": MAX_POD_SETS_ALL,
}

SUSPENDED = (
    ", so it makes no pods until another client resumes it. To hold the AppWrapper back, remove "
    "that and set spec.suspend of the AppWrapper."
)
NOTHING = (
    " requests any resources, so its pods count as nothing when room is given away; set "
    "resources.requests of its containers."
)
TOO_LARGE = (
    " is larger than every node (nodeSizes of the chart), so the AppWrapper would wait for ever; "
    "lower the requests of its containers, or divide the work among more pods."
)
BOTH: tuple[Callable[..., Json], ...] = (generic, components)


@pytest.fixture(scope="module")
def plane(helm: Helm, control_plane: ControlPlane) -> ControlPlane:
    """With the chart, and all that its policy can know."""
    Release(helm, control_plane).install(**VALUES, **PULLED_NOWHERE)
    in_force(control_plane)
    return control_plane


def in_force(plane: ControlPlane) -> None:
    """A policy comes into force a moment after it is written."""
    probe = components("probe", suspended(job("j", 1, "1", 1)))
    plane.wait_for(lambda: post(plane, probe), 30, "the policy")


def post(plane: ControlPlane, one: Json) -> list[str]:
    """What the policy says of an AppWrapper, which is let in. It has a leaf of the tree strict."""
    labels = {"strict": "only", **one["metadata"].get("labels", {})}
    one = {**one, "metadata": {**one["metadata"], "labels": labels}}
    path = f"/apis/{one['apiVersion']}/namespaces/default/appwrappers?dryRun=All"
    status, told = plane.warned(path, one)
    assert status == 201, told
    policy = "ValidatingAdmissionPolicy 'mcad-warnings' with binding 'mcad-warnings'"
    mark = f"Validation failed for {policy}: "
    return [text.removeprefix(mark) for text in told if text.startswith(mark)]


def suspended(obj: Json) -> Json:
    return obj | {"spec": obj["spec"] | {"suspend": True}}


def of_kind(group: str, kind: str, spec: Json, name: str = "x") -> Json:
    version = f"{group}/v1" if group else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def asking(name: str, *containers: Json, **spec: Any) -> Json:
    """A pod whose containers have these resources."""
    made = [{"name": f"c{i}", "image": "i", "resources": one} for i, one in enumerate(containers)]
    return of_kind("", "Pod", {"containers": made, **spec}, name)


# -- suspended -----------------------------------------------------------------------------------

SWITCHES = [(group, kind, switch) for (group, kind), row in LIVE.items() for switch in row.switches]
ON = {"is true": True, "is 0": 0, "is set": "yes"}


def switched(group: str, kind: str, switch: Switch) -> tuple[Json, str]:
    """An object with this switch on, and the words for it."""
    obj = of_kind(
        group, kind, {"template": {"spec": asking("x", {"requests": {"cpu": 1}})["spec"]}}
    )
    is_note = "annotations" in switch.keys
    value = "true" if is_note and switch.says == "is true" else ON[switch.says]
    *way, last = switch.keys
    place = obj
    for key in way:
        place = place.setdefault(key, {})
    place[last] = value
    assert switch.holds(obj)
    if is_note:
        return obj, f"has the annotation {last}" + (": true" if value == "true" else "")
    return obj, f"has {'.'.join(switch.keys)}: {'true' if value is True else value}"


@pytest.mark.parametrize(
    ("group", "kind", "switch"), SWITCHES, ids=[f"{kind}-{one.field}" for _, kind, one in SWITCHES]
)
def test_a_suspended_item_is_warned_of(
    group: str, kind: str, switch: Switch, plane: ControlPlane
) -> None:
    """Every field by which the dispatcher sees that an object is suspended."""
    obj, words = switched(group, kind, switch)
    for made in BOTH:
        assert f"{kind} x {words}{SUSPENDED}" in post(plane, made("aw", pod("p"), obj))


# -- minAvailable --------------------------------------------------------------------------------

TEMPLATE = {"spec": asking("x", {"requests": {"cpu": "1"}})["spec"]}
COUNTS = (None, 0, 1, 3)


def random_object(group: str, kind: str, rng: Random) -> Json:
    """An object of a kind, with counts that are there or not."""

    def counts(*names: str) -> Json:
        chosen = {name: rng.choice(COUNTS) for name in names}
        return {name: n for name, n in chosen.items() if n is not None}

    def some(*, least: int = 0) -> range:
        return range(rng.randint(least, 3))

    def the_job() -> Json:
        return counts("parallelism", "completions") | {"template": TEMPLATE}

    def ray() -> Json:
        bounds = ("replicas", "minReplicas", "maxReplicas", "numOfHosts")
        groups = [counts(*bounds) | {"groupName": f"g{i}", "template": TEMPLATE} for i in some()]
        for one in groups:
            if rng.random() < 0.2:
                one["suspend"] = True
        return {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": groups}

    scaled = counts("replicas") | {"template": TEMPLATE}
    if kind == "Pod":
        return of_kind(group, kind, TEMPLATE["spec"])
    if kind == "Job":
        return of_kind(group, kind, the_job())
    if kind == "CronJob":
        return of_kind(group, kind, {"jobTemplate": {"spec": the_job()}})
    if kind == "JobSet":
        jobs = [
            counts("replicas") | {"name": f"j{i}", "template": {"spec": the_job()}}
            for i in some(least=1)
        ]
        return of_kind(group, kind, {"replicatedJobs": jobs})
    if kind == "LeaderWorkerSet":
        leader = {"leaderTemplate": TEMPLATE} if rng.random() < 0.5 else {}
        inner = counts("size") | {"workerTemplate": TEMPLATE} | leader
        return of_kind(group, kind, counts("replicas") | {"leaderWorkerTemplate": inner})
    if kind in RAY:
        where = RAY[kind]
        modes = (
            {}
            if kind != "RayJob"
            else rng.choice([{}, *({"submissionMode": one} for one in MODES)])
        )
        return of_kind(group, kind, ({where: ray()} | modes) if where else ray())
    if group == "kubeflow.org" and kind != "Notebook":
        word = KUBEFLOW[kind]
        roles = rng.sample(["Master", "Launcher", "Chief", "PS", "Worker"], rng.randint(1, 3))
        specs = {role: counts("replicas") | {"template": TEMPLATE} for role in roles}
        return of_kind(group, kind, {f"{word}ReplicaSpecs": specs})
    return of_kind(group, kind, scaled)


RAY = {"RayCluster": "", "RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}
MODES = ("K8sJobMode", "HTTPMode", "InteractiveMode")
KUBEFLOW = {"PyTorchJob": "pytorch", "TFJob": "tf", "MPIJob": "mpi", "XGBoostJob": "xgb"}
KUBEFLOW |= {"PaddleJob": "paddle", "JAXJob": "jax"}
NOT_COUNTED = {"PodTemplate", "TrainJob", "SparkApplication", "InferenceService"}
"""Kinds of which the policy knows no pods; a PodTemplate has none."""
COUNTED = [(group, kind) for group, kind in KINDS if kind not in NOT_COUNTED]


@pytest.mark.parametrize(("group", "kind"), COUNTED, ids=[kind for _, kind in COUNTED])
def test_pods_are_counted_as_the_dispatcher_counts_them(
    group: str, kind: str, plane: ControlPlane
) -> None:
    """Random objects of each kind: the warning names one pod less than is asked for."""
    rng = budget.rng("warnings", kind)
    for _ in range(budget.examples(12)):
        obj = random_object(group, kind, rng)
        found = infer(obj, group, kind).found
        pods = sum(one.replicas for one in found) + 1  # beside it
        for made in BOTH:
            said = post(plane, made("aw", obj, pod("p"), schedulingSpec={"minAvailable": pods + 1}))
            few = [text for text in said if "minAvailable" in text]
            if any(one.per_node for one in found):
                assert few == [], obj
            else:
                assert few == [too_few(pods + 1, pods)], obj
            enough = post(plane, made("aw", obj, pod("p"), schedulingSpec={"minAvailable": pods}))
            assert not [text for text in enough if "minAvailable" in text], obj


def too_few(least: int, pods: int) -> str:
    return (
        f"spec.schedulingSpec.minAvailable is {least}, but the AppWrapper has {pods} pods, so it "
        "would be requeued again and again; lower it, or add pods."
    )


def test_declared_pods_count_before_those_of_the_template(plane: ControlPlane) -> None:
    least = {"schedulingSpec": {"minAvailable": 5}}
    sizes = [{"replicas": n, "requests": {"cpu": "1"}} for n in (1, 3)]
    item = {"generictemplate": deployment("d", 9), "custompodresources": sizes}
    one = wrapper("aw", {"resources": {"GenericItems": [item]}, **least})
    assert post(plane, one) == [too_few(5, 4)]
    sets = [{"path": "template.spec.template", "replicas": 4}]
    component = {"template": deployment("d", 9), "podSets": sets}
    assert post(plane, wrapper("aw", {"components": [component], **least}, "v1beta2")) == [
        too_few(5, 4)
    ]


def test_pods_of_a_kind_that_is_not_known_are_not_counted(plane: ControlPlane) -> None:
    gang = of_kind("example.com", "Gang", {})
    one = components("aw", pod("p"), gang, config_map("c"), schedulingSpec={"minAvailable": 9})
    assert post(plane, one) == []
    known = components("aw", pod("p"), config_map("c"), schedulingSpec={"minAvailable": 9})
    assert post(plane, known) == [too_few(9, 1)]


# -- no requests ---------------------------------------------------------------------------------


def without_requests(obj: Any) -> Any:
    """A copy without any ``resources``."""
    if isinstance(obj, dict):
        return {key: without_requests(one) for key, one in obj.items() if key != "resources"}
    return [without_requests(one) for one in obj] if isinstance(obj, list) else obj


@pytest.mark.parametrize(("group", "kind"), COUNTED, ids=[kind for _, kind in COUNTED])
def test_pods_without_requests_are_warned_of(group: str, kind: str, plane: ControlPlane) -> None:
    obj = random_object(group, kind, Random(3))
    for made in BOTH:
        assert f"no container of {kind} x{NOTHING}" in post(
            plane, made("aw", without_requests(obj))
        )
        assert not [text for text in post(plane, made("aw", obj)) if NOTHING in text]


def test_any_request_or_limit_of_a_container_counts(plane: ControlPlane) -> None:
    asked = [
        asking("p", {}, {"requests": {"cpu": 1}}),
        asking("p", {}, {"limits": {"nvidia.com/gpu": "1"}}),
        asking("p", {}, initContainers=[{"name": "i", "resources": {"requests": {"cpu": "1"}}}]),
        asking("p", {}, resources={"requests": {"cpu": 1}}),
    ]
    for one in asked:
        for made in BOTH:
            assert post(plane, made("aw", one)) == []
    for made in BOTH:
        said = [f"no container of Pod p{NOTHING}"]
        assert post(plane, made("aw", asking("p", {}, {"requests": {}, "claims": []}))) == said


def test_declared_requests_count(plane: ControlPlane) -> None:
    for requests, said in ({"cpu": 1}, []), ({}, [f"no container of Pod p{NOTHING}"]):
        item = {
            "generictemplate": asking("p", {}),
            "custompodresources": [{"replicas": 1, "requests": requests}],
        }
        assert post(plane, wrapper("aw", {"resources": {"GenericItems": [item]}})) == said


# -- larger than every node ----------------------------------------------------------------------


def first(cpu: int) -> Json:
    """An init container."""
    return {"name": "first", "resources": {"requests": {"cpu": cpu}}}


FITS = [
    asking("p", {"requests": {"cpu": 64, "nvidia.com/gpu": 8}}),
    asking("p", {"requests": {"cpu": 96, "memory": "370Gi"}}),
    asking("p", *[{"requests": {"cpu": "9.6"}}] * 10),
    asking("p", {"requests": {"cpu": 1, "ephemeral-storage": "99Ti", "example.com/x": 9}}),
    asking("p", {"requests": {"cpu": 1}, "limits": {"cpu": 200}}),
    asking(
        "p",
        {"requests": {"cpu": 60}},
        initContainers=[first(50)],
    ),
    asking("p", {"requests": {"cpu": 200}}, resources={"requests": {"cpu": 2}}),
]
LARGER = [
    asking("p", {"requests": {"cpu": 97}}),
    asking("p", {"requests": {"cpu": "96001m"}}),
    asking("p", {"requests": {"cpu": 65, "nvidia.com/gpu": 1}}),
    asking("p", *[{"requests": {"memory": "185.1Gi"}}] * 2),
    asking("p", {"limits": {"nvidia.com/gpu": "9"}}),
    asking("p", {"requests": {"cpu": 1}}, initContainers=[first(97)]),
    asking("p", {"requests": {"cpu": 1}}, resources={"requests": {"cpu": 97}}),
]  # fmt: skip


@pytest.mark.parametrize("one", FITS)
def test_a_pod_that_fits_a_size_is_let_in_silently(one: Json, plane: ControlPlane) -> None:
    for made in BOTH:
        assert post(plane, made("aw", one)) == []


@pytest.mark.parametrize("one", LARGER)
def test_a_pod_that_fits_no_size_is_warned_of(one: Json, plane: ControlPlane) -> None:
    for made in BOTH:
        assert post(plane, made("aw", pod("small"), one)) == [f"a pod of Pod p{TOO_LARGE}"]


def test_declared_pods_are_measured(plane: ControlPlane) -> None:
    for cpu, said in (96, []), (97, [f"a pod of Deployment d{TOO_LARGE}"]):
        sizes = [{"replicas": 1, "requests": {"cpu": cpu}}]
        item = {"generictemplate": deployment("d", 1), "custompodresources": sizes}
        assert post(plane, wrapper("aw", {"resources": {"GenericItems": [item]}})) == said


# -- quota leaves --------------------------------------------------------------------------------


def labelled(**labels: str) -> Json:
    one = components("aw", pod("p"))
    one["metadata"]["labels"] = labels
    return one


def unknown(tree: str, leaf: str) -> str:
    return (
        f"the quota tree {tree} has no leaf {leaf}, so the AppWrapper would wait; set the label "
        f"{tree} to one of {', '.join(LEAVES[tree])}."
    )


def test_an_unknown_leaf_is_warned_of(plane: ControlPlane) -> None:
    assert post(plane, labelled(teams="research")) == []
    assert post(plane, labelled()) == [], "without a label it is the leaf default"
    assert post(plane, labelled(teams="reserch")) == [unknown("teams", "reserch")]
    assert post(plane, labelled(strict="other")) == [unknown("strict", "other")]
    assert post(plane, labelled(other="any")) == []


def test_a_queue_name_is_a_leaf_of_its_tree(plane: ControlPlane) -> None:
    assert post(plane, labelled(**{QUEUE_NAME: "product"})) == []
    assert post(plane, labelled(**{QUEUE_NAME: "user-queue"})) == [unknown("teams", "user-queue")]
    assert post(plane, labelled(**{QUEUE_NAME: "user-queue", "teams": "product"})) == []


# -- as a whole ----------------------------------------------------------------------------------


def documents(path: Path) -> list[Json]:
    return list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("sample", SAMPLES, ids=[one.stem for one in SAMPLES])
def test_samples_are_let_in_silently(sample: Path, plane: ControlPlane) -> None:
    """But for the one whose leaf is unknown on purpose, and queue names of another cluster."""
    for one in documents(sample):
        labels = one["metadata"].get("labels", {})
        labels.pop(QUEUE_NAME, None)
        leaf = labels.get("teams", "default")
        said = [] if leaf in LEAVES["teams"] else [unknown("teams", leaf)]
        assert (said == []) is (sample.stem != "aw-unknown-leaf")
        assert post(plane, one) == said


@pytest.mark.parametrize("chart", CHARTS, ids=[one.stem for one in CHARTS])
def test_wrapped_charts_are_let_in_silently(chart: Path, plane: ControlPlane) -> None:
    wrap = cli("wrap", str(chart), "--name", "chart", "-n", "default", "--without-rights")
    assert post(plane, yaml.safe_load(wrap.stdout)) == []


def faulty(most: Json) -> Json:
    """An AppWrapper with every fault in its last object."""
    most["spec"]["schedulingSpec"] = {"minAvailable": 1_000_000}
    most["metadata"]["labels"] = {"teams": "reserch"}
    return most


def all_faults(said: list[str], last: str) -> bool:
    wanted = (
        SUSPENDED,
        "minAvailable is 1000000,",
        f"no container of {last}",
        TOO_LARGE,
        "reserch,",
    )
    return len(said) == len(wanted) and all(
        part in text for part, text in zip(wanted, said, strict=True)
    )


LAST = [
    asking("large", {"requests": {"cpu": 97}}),
    suspended(without_requests(job("last", 2, "1", 1))),
]


def test_the_largest_appwrapper_is_not_too_much(plane: ControlPlane) -> None:
    """As many objects as the CRD takes, and nearly as many bytes as the dispatcher takes; all
    faults in the last ones."""
    sidecars = [{"requests": {"cpu": "10m", "memory": "16Mi"}}] * 40
    objects = [asking(f"p{i}", *sidecars) for i in range(MAX_ITEMS - len(LAST))]
    for made in BOTH:
        one = made("aw", *objects, *LAST)
        assert MAX_PAYLOAD * 0.9 < len(json.dumps(one)) < MAX_PAYLOAD
        assert all_faults(post(plane, faulty(one)), "Job last")


def test_as_many_pod_sets_as_are_dispatched_are_not_too_much(plane: ControlPlane) -> None:
    roles = {f"r{i}": {"replicas": 1, "template": TEMPLATE} for i in range(MAX_POD_SETS)}
    one = of_kind("kubeflow.org", "TFJob", {"tfReplicaSpecs": roles})
    rays = random_object("ray.io", "RayCluster", Random(1))
    groups = [{"groupName": f"g{i}", "template": TEMPLATE} for i in range(MAX_POD_SETS - 1)]
    rays["spec"]["workerGroupSpecs"] = groups
    half = (MAX_POD_SETS_ALL - 2) // MAX_POD_SETS // 2
    for made in BOTH:
        said = post(plane, faulty(made("aw", *[one] * half, *[rays] * half, *LAST)))
        assert all_faults(said, "Job last")


def test_one_object_may_have_many_containers(plane: ControlPlane) -> None:
    """Nearly all the bytes in the containers of one pod."""
    one = asking("p", *[{"requests": {"cpu": "1m"}}] * 12_000)
    assert MAX_PAYLOAD * 0.8 < len(json.dumps(one)) < MAX_PAYLOAD
    for made in BOTH:
        assert all_faults(post(plane, faulty(made("aw", one, *LAST))), "Job last")


def test_a_change_is_warned_of_but_no_label_that_does_not_count(plane: ControlPlane) -> None:
    path = f"/apis/{GROUP}/v1beta2/namespaces/default/appwrappers"
    one = components("edited", suspended(job("edited", 1, "1", 1)))
    one["metadata"]["labels"] = {"strict": "only"}
    assert plane.request("POST", path, one)[0] == 201

    def patch(change: Json) -> str:
        text = json.dumps(change)
        how = ("--type=merge", "--dry-run=server", "-p", text)
        return plane.kubectl("patch", "appwrapper", "edited", *how, check=False)

    assert "Warning" not in patch({"metadata": {"annotations": {"a": "b"}}})
    assert "Warning" not in patch({"spec": {"suspend": True, "priority": 4}})
    assert f"Job edited has spec.suspend: true{SUSPENDED}" in patch(
        {"metadata": {"labels": {"teams": "default"}}}
    )
    assert too_few(7, 1) in patch({"spec": {"schedulingSpec": {"minAvailable": 7}}})
    plane.request("DELETE", f"{path}/edited")


def test_what_cannot_be_read_is_let_in(plane: ControlPlane) -> None:
    """The dispatcher reports it."""
    for spec in (
        {"template": 7},
        {"template": {"spec": {"containers": "x"}}},
        {"replicas": "two"},
        "x",
        None,
    ):
        for made in BOTH:
            said = post(plane, made("aw", of_kind("apps", "Deployment", spec)))
            assert not [text for text in said if "error" in text], spec


def test_the_api_server_finds_no_fault_with_the_expressions(plane: ControlPlane) -> None:
    assert expression_warnings(plane, "mcad-warnings") == []


def test_kubectl_and_mcad_show_all_of_it(plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "aw.yaml"
    one = components("aw", suspended(job("j", 1, "1", 1)))
    one["metadata"]["labels"] = {"teams": "reserch", "strict": "only"}
    file.write_text(yaml.safe_dump(one))
    expected = (f"Job j has spec.suspend: true{SUSPENDED}", unknown("teams", "reserch"))
    said = plane.kubectl("create", "--dry-run=server", "-f", str(file), check=False)
    assert [text in said for text in expected] == [True, True]
    sent = cli("submit", str(file), "--dry-run=server", kubeconfig=plane.admin_kubeconfig)
    assert sent.returncode == 0, sent.stderr
    told = [line for line in sent.stderr.splitlines() if "default/aw" in line]  # by the server
    assert told == [f"warning: default/aw: {text}" for text in expected]
