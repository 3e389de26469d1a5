"""The right to create AppWrappers gives no further rights: the chart on a real control plane."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from mcad.api.appwrapper import MAX_POD_SETS_ALL
from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import Config
from tests.chart.cluster import APPWRAPPERS, PULLED_NOWHERE, Release, User, generic, rule, yaml_of
from tests.chart.helm import CHART, NAMESPACE, Helm
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher
from tests.e2e.support import (
    GROUP,
    appwrapper,
    appwrappers_path,
    configmap,
    delete,
    phases,
    pod,
    states,
    status_of,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

TEAM = "team"
KINDS = sorted(
    (one.group, one.version, one.resource, one.kind)
    for one in {(one.group, one.resource): one for one in WELL_KNOWN}.values()
    if (one.group, one.resource) in Config().allowed
)
REFUSED = (
    "this AppWrapper wraps a Pod, and system:serviceaccount:team:alice may not create pods"
    " in the namespace team; ask for that right or remove it."
)


def obj(api_version: str, kind: str, name: str = "x", **meta: str) -> Json:
    """An object that is nothing but a kind with a name."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **meta}}


NIGHTLY = obj("batch/v1", "CronJob")
"""Without it nothing would have pods, which is refused in the later dialect."""


@pytest.fixture(scope="module")
def release(helm: Helm, control_plane: ControlPlane) -> Release:
    """The chart on a cluster with a node, once its policy is in force; rights are what it asks for
    here, so the other policy takes as many pod sets as the dispatcher."""
    control_plane.add_node("node-1")
    one = Release(helm, control_plane)
    one.install(maxPodSets=MAX_POD_SETS_ALL, **PULLED_NOWHERE)
    alice = User(control_plane, TEAM, "prober", APPWRAPPERS)
    wait_for_answer(control_plane, alice, 403)
    return one


@pytest.fixture(scope="module")
def alice(control_plane: ControlPlane, release: Release) -> User:
    """She may create AppWrappers, ConfigMaps and CronJobs, and no Pods."""
    hers = (rule("", "configmaps", "create"), rule("batch", "cronjobs", "create"))
    return User(control_plane, TEAM, "alice", APPWRAPPERS, *hers)


@pytest.fixture(scope="module")
def bob(control_plane: ControlPlane, release: Release) -> User:
    """He may create whatever may be wrapped."""
    groups: dict[str, list[str]] = {}
    for group, plural in sorted(Config().allowed):
        groups.setdefault(group, []).append(plural)
    rules = [rule(group, ",".join(plurals), "create") for group, plurals in groups.items()]
    return User(control_plane, TEAM, "bob", APPWRAPPERS, *rules)


@pytest.fixture
def administrator(control_plane: ControlPlane, release: Release) -> Iterator[Any]:
    """A user with all rights in RBAC."""

    def create(one: Json, *, dry_run: bool = True) -> tuple[int, Json]:
        version = one["apiVersion"].rpartition("/")[2]
        path = appwrappers_path(TEAM, version) + ("?dryRun=All" if dry_run else "")
        return control_plane.request("POST", path, one)

    return create


def wait_for_answer(plane: ControlPlane, user: User, code: int) -> None:
    """Policies and rights come into force a moment after they are written."""
    probe = generic("probe", pod("probe"), namespace=user.namespace)
    plane.wait_for(lambda: user.create(probe, dry_run=True)[0] == code, 30, f"the answer {code}")


def both(name: str, *templates: Json) -> list[Json]:
    """The same in both dialects."""
    return [generic(name, *templates), appwrapper(name, *templates, namespace=TEAM)]


# -- on creation ------------------------------------------------------------------------------


def test_without_the_right_to_create_pods_none_can_be_wrapped(alice: User) -> None:
    assert alice.may("create", f"appwrappers.{GROUP}")
    assert not alice.may("create", "pods")
    for wrapped in both("a-pod", pod("a-pod")) + both("mix", configmap("c"), pod("a-pod")):
        code, answer = alice.create(wrapped)
        assert (code, answer["reason"]) == (403, "Forbidden")
        assert REFUSED in answer["message"]


def test_nothing_is_wrapped_where_the_cluster_lives(
    control_plane: ControlPlane, release: Release
) -> None:
    """Not even by an administrator: the dispatcher would act there with its own rights."""
    for namespace in ("kube-system", NAMESPACE):
        wrapped = generic("c", configmap("c"), namespace=namespace)
        path = appwrappers_path(namespace, "v1beta1")
        code, answer = control_plane.request("POST", path, wrapped)
        assert (code, answer["reason"]) == (403, "Forbidden")
        assert f"nothing may be wrapped in the namespace {namespace};" in answer["message"]


def test_kubectl_says_why(control_plane: ControlPlane, alice: User) -> None:
    text = yaml_of(generic("a-pod", pod("a-pod")))
    said = control_plane.kubectl(
        "create", "-f", "-", stdin=text, kubeconfig=alice.kubeconfig, check=False
    )
    assert "is forbidden: ValidatingAdmissionPolicy 'mcad' with binding 'mcad' denied" in said
    assert REFUSED in said


def test_server_side_apply_is_no_way_around(alice: User) -> None:
    for wrapped in both("applied", pod("a-pod")):
        path = {"metadata": {"name": "applied?fieldManager=x"}}
        code, answer = alice.patch(wrapped | path, wrapped, "apply-patch+yaml")
        assert code == 403
        assert REFUSED in answer["message"]


def test_what_one_may_create_one_may_wrap(alice: User, bob: User) -> None:
    for wrapped in both("config", configmap("config"), NIGHTLY):
        assert alice.create(wrapped, dry_run=True)[0] == 201
    for wrapped in both("mix", configmap("c"), pod("p")):
        assert bob.create(wrapped, dry_run=True)[0] == 201


@pytest.mark.parametrize("what", KINDS, ids=[one[3] for one in KINDS])
def test_each_kind_asks_for_its_own_right(
    alice: User, bob: User, what: tuple[str, str, str, str]
) -> None:
    group, version, plural, kind = what
    one = obj(f"{group}/{version}" if group else version, kind)
    assert bob.create(generic("x", one), dry_run=True)[0] == 201
    code, answer = alice.create(generic("x", one), dry_run=True)
    if (group, plural) in (("", "configmaps"), ("batch", "cronjobs")):
        assert code == 201
    else:
        assert code == 403
        resource = f"{plural}.{group}" if group else plural
        assert f"wraps a {kind}, and" in answer["message"]
        assert f"may not create {resource} in the namespace team" in answer["message"]


def test_a_right_elsewhere_does_not_count(control_plane: ControlPlane, release: Release) -> None:
    User(control_plane, "elsewhere", "carol", rule("", "pods", "create"))
    carol = User(control_plane, TEAM, "carol", APPWRAPPERS)
    assert carol.create(generic("a-pod", pod("p")), dry_run=True)[0] == 403


# -- on updates -------------------------------------------------------------------------------


@pytest.fixture
def config(control_plane: ControlPlane, alice: User) -> Iterator[Json]:
    """Alice's AppWrapper with a ConfigMap."""
    code, created = alice.create(generic("config", configmap("config")))
    assert code == 201, created
    yield created
    delete(control_plane, "config", namespace=TEAM)


def test_a_configmap_is_not_edited_into_a_pod(alice: User, config: Json) -> None:
    config["spec"]["resources"]["GenericItems"] = [{"generictemplate": pod("config")}]
    code, answer = alice.replace(config)
    assert code == 403
    assert REFUSED in answer["message"]
    code, answer = alice.patch(config, {"spec": config["spec"]})
    assert code == 403
    assert REFUSED in answer["message"]


def test_only_the_kind_is_edited(alice: User, config: Json) -> None:
    path = "/spec/resources/GenericItems/0/generictemplate/kind"
    code, answer = alice.patch(
        config, [{"op": "replace", "path": path, "value": "Pod"}], "json-patch+json"
    )
    assert code == 403
    assert REFUSED in answer["message"]


def test_a_pod_is_not_added_later(alice: User, config: Json) -> None:
    more = {"generictemplate": pod("more")}
    path = "/spec/resources/GenericItems/-"
    for version in ("v1beta1", "v1beta2"):
        code, answer = alice.patch(
            config | {"apiVersion": f"{GROUP}/{version}"},
            [{"op": "add", "path": path, "value": more}],
            "json-patch+json",
        )
        assert code == 403
        assert REFUSED in answer["message"]


def test_the_later_dialect_does_not_change_its_kinds(
    control_plane: ControlPlane, alice: User
) -> None:
    code, created = alice.create(appwrapper("later", configmap("later"), NIGHTLY, namespace=TEAM))
    assert code == 201, created
    created["spec"]["components"] = [{"template": pod("later")}]
    code, answer = alice.replace(created)
    assert code in (403, 422)  # the CRD freezes templates of this dialect for all users
    assert "may not create pods" in answer["message"] or "cannot be changed" in answer["message"]
    delete(control_plane, "later", namespace=TEAM)


def test_a_configmap_is_edited_into_another(alice: User, config: Json) -> None:
    item = {"generictemplate": configmap("other")}
    code, answer = alice.patch(config, {"spec": {"resources": {"GenericItems": [item]}}})
    assert code == 200, answer


def test_an_appwrapper_of_another_user(control_plane: ControlPlane, alice: User, bob: User) -> None:
    code, created = bob.create(generic("bobs", pod("bobs")))
    assert code == 201, created
    assert alice.patch(created, {"metadata": {"labels": {"seen-by": "alice"}}})[0] == 200
    code, answer = alice.patch(created, {"spec": {"priority": 7}})
    assert code == 403
    assert REFUSED in answer["message"]
    assert bob.patch(created, {"spec": {"priority": 7}})[0] == 200
    delete(control_plane, "bobs", namespace=TEAM)


# -- whatever one's rights are ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (obj("v1", "ServiceAccount"), "v1 ServiceAccount may not be wrapped"),
        (obj("v1", "List"), "v1 List may not be wrapped"),
        (obj("v1", "pod"), "v1 pod may not be wrapped"),
        (obj("v1", "Deployment"), "v1 Deployment may not be wrapped"),
        (
            obj("rbac.authorization.k8s.io/v1", "RoleBinding"),
            "rbac.authorization.k8s.io/RoleBinding may not be wrapped",
        ),
    ],
)
def test_unlisted_kinds_are_denied(administrator: Any, one: Json, said: str) -> None:
    for wrapped in both("x", pod("p"), one):
        code, answer = administrator(wrapped)
        assert code == 403
        assert f"{said}; an administrator can add it to wrappedResources." in answer["message"]


def test_the_largest_appwrapper_is_not_too_much(bob: User) -> None:
    """256 items of 25 kinds: as many questions of the policy as its budget allows (the README of
    the chart says so)."""
    kinds = KINDS[-25:]
    assert len(kinds) == 25
    many = [
        obj(f"{group}/{version}" if group else version, kind, f"x-{i}")
        for i in range(256)
        for group, version, _, kind in [kinds[i % len(kinds)]]
    ]
    for wrapped in both("large", *many):
        code, answer = bob.create(wrapped, dry_run=True)
        assert code == 201, answer["message"]


def test_the_api_server_finds_no_fault_with_the_expressions(
    control_plane: ControlPlane, release: Release
) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/mcad"

    def checked() -> Json | None:
        found = control_plane.request("GET", path)[1]
        status: Json = found.get("status", {})
        return (
            status if status.get("observedGeneration") == found["metadata"]["generation"] else None
        )

    status = control_plane.wait_for(checked, 60, "the policy is type-checked")
    assert status.get("typeChecking", {}).get("expressionWarnings", []) == []


# -- with the dispatcher ----------------------------------------------------------------------


def test_a_user_with_all_rights_is_served(
    control_plane: ControlPlane, release: Release, bob: User
) -> None:
    plane = control_plane
    with Dispatcher(plane, release.account(), "--config", str(release.config())):
        code, created = bob.create(generic("served", configmap("served"), pod("served")))
        assert code == 201, created
        plane.wait_for(lambda: phases(plane, TEAM) == {"served": "Running"}, 30, "the pod runs")
        delete(plane, "served", namespace=TEAM)


# -- other modes; each brings back the default -------------------------------------------------


@pytest.fixture
def back_to_policy(control_plane: ControlPlane, release: Release, alice: User) -> Iterator[None]:
    yield
    release.upgrade(**PULLED_NOWHERE)
    wait_for_answer(control_plane, alice, 403)


@pytest.mark.usefixtures("back_to_policy")
def test_too_many_kinds_are_denied(
    control_plane: ControlPlane, release: Release, alice: User, administrator: Any
) -> None:
    """Each question costs; where the budget ends, the answer is no."""
    kinds = {f"kind{i}s": f"Kind{i}" for i in range(40)}
    release.upgrade(
        wrappedResources=[{"apiGroup": "example.com", "resources": kinds}], **PULLED_NOWHERE
    )
    many = [obj("example.com/v1", kind) for kind in kinds.values()]
    control_plane.wait_for(
        lambda: administrator(generic("few", *many[:2]))[0] == 201, 30, "the new policy"
    )
    assert administrator(generic("some", *many[:25]))[0] == 201
    code, answer = administrator(generic("many", *many))
    assert code >= 400
    assert "cost" in answer["message"]
    assert alice.create(generic("many", *many), dry_run=True)[0] >= 400


@pytest.mark.usefixtures("back_to_policy")
def test_authorization_none_checks_nothing(
    control_plane: ControlPlane, release: Release, alice: User
) -> None:
    release.upgrade(authorization="none", **PULLED_NOWHERE)
    wait_for_answer(control_plane, alice, 201)
    assert not alice.may("create", "pods")
    service_account = obj("v1", "ServiceAccount")
    assert alice.create(generic("x", service_account), dry_run=True)[0] == 201
    with Dispatcher(control_plane, release.account(), "--config", str(release.config())):
        assert alice.create(generic("gift", pod("gift")))[0] == 201
        assert alice.create(generic("account", service_account))[0] == 201
        control_plane.wait_for(
            lambda: phases(control_plane, TEAM) == {"gift": "Running"}, 30, "the pod runs"
        )
        # What is not listed is still not created, as the dispatcher refuses it and has no right.
        control_plane.wait_for(
            lambda: status_of(control_plane, "account", TEAM).get("state"), 30, "a verdict"
        )
        said = str(status_of(control_plane, "account", TEAM))
        assert "serviceaccounts may not be wrapped" in said
        delete(control_plane, namespace=TEAM)


def as_the_readme_says(plane: ControlPlane) -> None:
    """Makes the account ``runner`` in team-a by the commands of the chart's README."""
    plane.create_namespace("team-a")
    text = (CHART / "README.md").read_text().replace("\\\n", " ")
    commands = re.findall(r"^ +kubectl (--namespace team-a .*)$", text, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        plane.kubectl(*shlex.split(command))


def created_as(plane: ControlPlane, resource: str, namespace: str) -> set[str]:
    """The accounts as which the dispatcher created objects: the audit log has both users."""
    lines = map(json.loads, plane.audit_log.read_text().splitlines())
    return {
        one.get("impersonatedUser", {}).get("username", "")
        for one in lines
        if one["verb"] == "create"
        and one["user"]["username"].endswith(":mcad")
        and (one["objectRef"]["resource"], one["objectRef"].get("namespace"))
        == (resource, namespace)
    }


@pytest.mark.usefixtures("back_to_policy")
def test_impersonate_creates_as_an_account_of_the_namespace(
    control_plane: ControlPlane, release: Release
) -> None:
    plane = control_plane
    as_the_readme_says(plane)
    finalizers = rule(GROUP, "appwrappers/finalizers", "update")
    User(plane, "team-b", "runner", rule("", "configmaps", "create"), finalizers)
    release.upgrade(
        authorization="impersonate",
        impersonate={"serviceAccount": "runner"},
        watchNamespaces=["team-a", "team-b"],
        **PULLED_NOWHERE,
    )
    rich, poor = (User(plane, team, "dora", APPWRAPPERS) for team in ("team-a", "team-b"))
    wait_for_answer(plane, rich, 201)
    with Dispatcher(plane, release.account(), "--config", str(release.config())):
        for user in (rich, poor):
            code, answer = user.create(generic("a-pod", pod("a-pod"), namespace=user.namespace))
            assert code == 201, answer
            assert not user.may("create", "pods")
        kept = generic("config", configmap("config"), namespace="team-b")
        assert poor.create(kept)[0] == 201
        plane.wait_for(lambda: phases(plane, "team-a") == {"a-pod": "Running"}, 30, "it runs")
        states_b = {"a-pod": "Pending", "config": "Running"}
        plane.wait_for(lambda: states(plane, "team-b") == states_b, 30, "the account decides")
        missing = "system:serviceaccount:team-b:runner has no right to create pods"
        plane.wait_for(lambda: missing in str(status_of(plane, "a-pod", "team-b")), 30, missing)
        assert phases(plane, "team-b") == {}
        delete(plane, namespace="team-a")
        delete(plane, namespace="team-b")
    assert created_as(plane, "pods", "team-a") == {"system:serviceaccount:team-a:runner"}
    assert created_as(plane, "configmaps", "team-b") == {"system:serviceaccount:team-b:runner"}


@pytest.mark.usefixtures("back_to_policy")
def test_impersonation_reaches_one_account_in_named_namespaces(
    control_plane: ControlPlane, release: Release
) -> None:
    plane = control_plane
    release.upgrade(
        authorization="impersonate",
        impersonate={"serviceAccount": "runner"},
        watchNamespaces=[TEAM],
        **PULLED_NOWHERE,
    )
    account = release.account()

    def may(verb: str, what: str, namespace: str) -> bool:
        args = ("auth", "can-i", verb, what, "--namespace", namespace)
        return plane.kubectl(*args, kubeconfig=account, check=False).strip().endswith("yes")

    plane.wait_for(lambda: may("impersonate", "serviceaccounts/runner", TEAM), 30, "the role")
    assert not may("impersonate", "serviceaccounts/default", TEAM)
    assert not may("impersonate", "serviceaccounts/runner", "kube-system")
    assert not may("impersonate", "users/admin", TEAM)
    assert not may("create", "pods", TEAM)
