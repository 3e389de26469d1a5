"""``mcad wrap``: an AppWrapper around any manifests, and its way through ``mcad submit``."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcad.api.wrapped_kinds import is_dangerous
from mcad.client.manifests.wrapping import WITH_RIGHTS
from tests.cli.conftest import Type
from tests.fakeapi import GROUP, FakeApi

Json = dict[str, Any]

JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "busybox"}]}}},
}
SERVICE: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}
WIDGET: Json = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
ROLE: Json = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "r"},
}
BAD_POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "one"}}}]},
}
HOOK: Json = {**JOB, "metadata": {"name": "h", "annotations": {"helm.sh/hook": "test"}}}


def text(*objects: Json) -> str:
    return yaml.safe_dump_all(objects)


def at(namespace: str, obj: Json = JOB) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def test_items_keep_their_order_and_every_option_is_written(mcad: Type) -> None:
    options = ("--name", "x", "-n", "team", "--priority", "5", "--leaf", "gold=red")
    result = mcad("wrap", "-f", "-", *options, stdin=text(SERVICE, at("team"), WIDGET))
    assert (result.exit_code, result.stderr) == (0, "")
    assert yaml.safe_load(result.stdout) == {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "x", "namespace": "team", "labels": {"gold": "red"}},
        "spec": {
            "priority": 5,
            "components": [{"template": one} for one in (SERVICE, at("team"), WIDGET)],
        },
    }


def test_the_other_dialect_as_json_without_options(mcad: Type, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text(JOB))
    result = mcad("wrap", str(path), "--name", "x", "--dialect", "v1beta1", "-o", "json")
    assert json.loads(result.stdout) == {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": "x"},
        "spec": {"resources": {"GenericItems": [{"generictemplate": JOB}]}},
    }


def test_the_namespace_of_an_item_is_that_of_its_appwrapper(mcad: Type) -> None:
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=text(SERVICE, at("team")))
    assert yaml.safe_load(result.stdout)["metadata"]["namespace"] == "team"


def test_hooks_and_cluster_scoped_objects_are_named_and_left_out(mcad: Type) -> None:
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=text(ROLE, HOOK, JOB))
    assert [one["template"] for one in yaml.safe_load(result.stdout)["spec"]["components"]] == [JOB]
    first, second = result.stderr.splitlines()
    assert "document 1: ClusterRole r is left out: it is cluster-scoped" in first
    assert "document 2: Job h is left out: Helm runs it as a hook" in second


ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "app"}}
OWN_ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "r"},
    "rules": [],
}


def test_kinds_that_carry_rights_are_named_and_left_out_on_request(mcad: Type) -> None:
    documents = text(ACCOUNT, OWN_ROLE, JOB)
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=documents)
    made = yaml.safe_load(result.stdout)["spec"]["components"]
    assert [one["template"]["kind"] for one in made] == ["ServiceAccount", "Role", "Job"]
    first, second = result.stderr.splitlines()
    assert "document 1: ServiceAccount app carries rights" in first
    assert "--without-rights leaves it out" in first
    assert "document 2: Role r carries rights" in second
    result = mcad("wrap", "-f", "-", "--name", "x", "--without-rights", stdin=documents)
    made = yaml.safe_load(result.stdout)["spec"]["components"]
    assert [one["template"] for one in made] == [JOB]
    first, second = result.stderr.splitlines()
    assert "document 1: ServiceAccount app is left out: apply it before, with kubectl" in first
    assert "document 2: Role r is left out" in second


def test_kinds_that_carry_rights_are_those_that_are_not_wrapped_by_default() -> None:
    for group, kinds in WITH_RIGHTS.items():
        assert all(is_dangerous(group, f"{kind.lower()}s") for kind in kinds)


def test_what_it_prints_can_be_submitted(api: FakeApi, mcad: Type) -> None:
    made = mcad("wrap", "-f", "-", "--name", "x", stdin=text(JOB)).stdout
    result = mcad("submit", "-f", "-", stdin=made)
    assert result.stdout == f"appwrapper.{GROUP}/x created\n"


# -- what kubectl exports -------------------------------------------------------------------------

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def exported(kind: str, name: str, *owners: Json, version: str = "apps/v1", **spec: Any) -> Json:
    """An object as ``kubectl get -o yaml`` prints it."""
    references = [
        {
            "apiVersion": one["apiVersion"],
            "kind": one["kind"],
            "name": one["metadata"]["name"],
            "uid": one["metadata"].get("uid", "uid-of-no-object"),
            "controller": number == 0,
        }
        for number, one in enumerate(owners)
    ]
    metadata = {
        "name": name,
        "namespace": "team",
        "uid": f"uid-{kind}-{name}",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 2,
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {LAST_APPLIED: "{}"},
    }
    if references:
        metadata["ownerReferences"] = references
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata,
        "spec": spec or {"template": JOB["spec"]["template"]},
        "status": {"replicas": 1},
    }


def pod(name: str, *owners: Json) -> Json:
    inner = JOB["spec"]["template"]["spec"]
    return exported("Pod", name, *owners, version="v1", **inner, nodeName="n1", priority=0)


WEB = exported("Deployment", "web")
REPLICAS = exported("ReplicaSet", "web-6d4b", WEB)
PODS = [pod(f"web-6d4b-{name}", REPLICAS) for name in ("a", "b")]
ALL = [*PODS, REPLICAS, WEB]


def listed(*objects: Json) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def without_uid(obj: Json) -> Json:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "uid"}
    return {**obj, "metadata": metadata}


def wrapped_objects(stdout: str) -> list[Json]:
    return [one["template"] for one in yaml.safe_load(stdout)["spec"]["components"]]


@pytest.mark.parametrize(
    "given",
    [listed(*ALL), text(*ALL), text(*map(without_uid, ALL)), listed(json.loads(listed(*ALL)))],
)
def test_what_another_object_of_the_list_owns_is_named_and_left_out(mcad: Type, given: str) -> None:
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=given)
    assert [one["metadata"]["name"] for one in wrapped_objects(result.stdout)] == ["web"]
    assert result.stderr.splitlines() == [
        "warning: left out: Pod web-6d4b-a, owned by ReplicaSet web-6d4b",
        "warning: left out: Pod web-6d4b-b, owned by ReplicaSet web-6d4b",
        "warning: left out: ReplicaSet web-6d4b, owned by Deployment web",
    ]


def test_objects_of_several_files_are_one_list(mcad: Type, tmp_path: Path) -> None:
    for number, one in enumerate((REPLICAS, WEB)):
        (tmp_path / f"{number}.yaml").write_text(text(one))
    result = mcad("wrap", str(tmp_path / "0.yaml"), str(tmp_path / "1.yaml"), "--name", "x")
    assert [one["kind"] for one in wrapped_objects(result.stdout)] == ["Deployment"]
    assert "left out: ReplicaSet web-6d4b, owned by Deployment web" in result.stderr


def test_an_owner_that_is_no_controller_counts_as_well(mcad: Type) -> None:
    service = exported("Service", "s", JOB, WEB, version="v1", ports=[{"port": 80}])
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=listed(service, WEB))
    assert [one["kind"] for one in wrapped_objects(result.stdout)] == ["Deployment"]
    assert result.stderr == "warning: left out: Service s, owned by Deployment web\n"


def test_many_objects_are_told_by_kind(mcad: Type) -> None:
    pods = [pod(f"p{number:02}", REPLICAS) for number in range(30)]
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=listed(*pods, REPLICAS, WEB))
    assert result.stderr.splitlines() == [
        "warning: left out: 30 of kind Pod, owned by other objects: p00, p01, p02, p03, p04 and 25 "
        "more",
        "warning: left out: 1 of kind ReplicaSet, owned by other objects: web-6d4b",
    ]


OTHER = without_uid(WEB) | {"metadata": {**WEB["metadata"], "uid": "uid-of-a-former-one"}}
STRANGERS: dict[str, tuple[list[Json], int]] = {
    "the owner is not listed": ([*PODS, WEB], 2),
    "an owner of the same name": ([REPLICAS, OTHER], 1),
    "an owner in another namespace": (
        [REPLICAS, without_uid(WEB) | {"metadata": {"name": "web", "namespace": "b"}}],
        1,
    ),
    "itself": ([exported("ReplicaSet", "web-6d4b", REPLICAS)], 1),
}


@pytest.mark.parametrize(("objects", "count"), STRANGERS.values(), ids=STRANGERS.keys())
def test_what_an_object_outside_of_the_list_owns_is_refused_by_name(
    mcad: Type, objects: list[Json], count: int
) -> None:
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=listed(*objects))
    assert (result.exit_code, result.stdout) == (1, "")
    *faults, last = result.stderr.splitlines()
    assert f"nothing was wrapped: {count} fault" in last
    assert len(faults) == count
    for fault, one in zip(faults, objects, strict=False):
        (owner,) = one["metadata"]["ownerReferences"]
        name = f"{one['kind']} {one['metadata']['name']}"
        assert f"{name} is owned by {owner['kind']} {owner['name']}, which is not among" in fault


def test_what_the_cluster_has_added_is_taken_out(mcad: Type) -> None:
    revision = {"deployment.kubernetes.io/revision": "3", "team": "red"}
    deployment = exported("Deployment", "web")
    deployment["metadata"]["annotations"] |= revision
    deployment["metadata"]["finalizers"] = ["example.com/guard"]
    service = exported(
        "Service", "s", version="v1", clusterIP="10.0.0.1", clusterIPs=["10.0.0.1"], ports=[]
    )
    headless = exported("Service", "h", version="v1", clusterIP="None", clusterIPs=["None"])
    given = listed(deployment, pod("p"), service, headless)
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=given)
    assert (result.exit_code, result.stderr) == (0, "")
    assert wrapped_objects(result.stdout) == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "team", "annotations": {"team": "red"}},
            "spec": {"template": JOB["spec"]["template"]},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "team"},
            "spec": JOB["spec"]["template"]["spec"],
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s", "namespace": "team"},
            "spec": {"ports": []},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "h", "namespace": "team"},
            "spec": {"clusterIP": "None", "clusterIPs": ["None"]},
        },
    ]


def generated(prefix: str = "batch.kubernetes.io/") -> Json:
    return {f"{prefix}controller-uid": "u", f"{prefix}job-name": "train"}


def exported_job(**spec: Any) -> Json:
    job = exported("Job", "train", version="batch/v1")
    job["metadata"]["labels"] = {**generated(), "app": "t"}
    job["spec"] = {
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
        "template": {
            "metadata": {"creationTimestamp": None, "labels": {**generated(), **generated("")}},
            "spec": JOB["spec"]["template"]["spec"],
        },
        **spec,
    }
    return job


def test_a_job_loses_the_selector_of_its_former_pods(mcad: Type) -> None:
    stdin = listed(exported_job(manualSelector=False))
    (made,) = wrapped_objects(mcad("wrap", "-f", "-", "--name", "x", stdin=stdin).stdout)
    assert made["metadata"] == {"name": "train", "namespace": "team", "labels": {"app": "t"}}
    assert made["spec"] == {
        "manualSelector": False,
        "template": {
            "metadata": {"creationTimestamp": None},
            "spec": JOB["spec"]["template"]["spec"],
        },
    }


def test_a_selector_of_a_users_own_stays(mcad: Type) -> None:
    job = exported_job(manualSelector=True)
    (made,) = wrapped_objects(mcad("wrap", "-f", "-", "--name", "x", stdin=text(job)).stdout)
    assert made["spec"] == job["spec"]


def test_a_manifest_that_was_not_exported_keeps_what_it_says(mcad: Type) -> None:
    """A node, finalizers that are refused, a label ``job-name``: all of it was meant."""
    job = {**JOB, "metadata": {"generateName": "train-", "labels": {"job-name": "other"}}}
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod("p")["spec"]}
    made = wrapped_objects(mcad("wrap", "-f", "-", "--name", "x", stdin=text(job, bare)).stdout)
    assert made == [job, bare]
    guarded = {**bare, "metadata": {"name": "p", "finalizers": ["example.com/guard"]}}
    result = mcad("wrap", "-f", "-", "--name", "x", stdin=text(guarded))
    assert "metadata.finalizers: must be absent" in result.stderr


@pytest.mark.parametrize(
    ("objects", "options", "code", "said"),
    [
        ([HOOK], (), 1, "nothing is left to wrap"),
        ([at("a"), at("b", SERVICE)], (), 1, "document 2: is for namespace b, not a"),
        ([at("a")], ("-n", "b"), 1, "is for namespace a, not b"),
        ([{"kind": "AppWrapper"}], (), 1, "is an AppWrapper already"),
        ([{"kind": "Job", "metadata": {"name": "x"}}], (), 1, "apiVersion"),
        ([BAD_POD], (), 1, "'one' is not a quantity"),
        ([JOB], ("--leaf", "gold"), 2, "write TREE=LEAF"),
    ],
)
def test_what_cannot_be_wrapped_says_why(
    mcad: Type, objects: list[Json], options: tuple[str, ...], code: int, said: str
) -> None:
    result = mcad("wrap", "-f", "-", "--name", "x", *options, stdin=text(*objects))
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
