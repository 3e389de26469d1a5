"""What the dispatcher checks before it serves, and with whose rights it creates what is wrapped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcad.api.crd import crds
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.process import ACCOUNT, NAMESPACE, USER, Dispatcher, mcad, printed
from tests.e2e.support import (
    GROUP,
    appwrapper,
    appwrappers_path,
    cli,
    conditions_of,
    configmap,
    create,
    delete,
    phases,
    pod,
    states,
    status_of,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

TEAM = "team"
IMPERSONATE = ("--set", f"watchNamespaces=[{TEAM}]", "--set", "impersonate.serviceAccount=runner")
RUNNER = f"system:serviceaccount:{TEAM}:runner"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A control plane with one node of 4 cpu."""
    control_plane.add_node("node-1", cpu="4", memory="16Gi")
    return control_plane


def grant(plane: ControlPlane, account: str, *settings: str) -> Path:
    """A fresh account with the rights that these settings ask for, and no others."""
    token = plane.service_account(NAMESPACE, account)
    plane.apply(printed("rbac", "--namespace", NAMESPACE, "--service-account", account, *settings))
    return plane.kubeconfig_for_token(token, account)


# -- impersonation ---------------------------------------------------------------------------


def make_runner(plane: ControlPlane, *resources: str) -> None:
    """The account of the team, which may create these kinds of the core group."""
    plane.service_account(TEAM, "runner")
    name = {"name": "runner", "namespace": TEAM}
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": list(resources), "verbs": ["create"]}
    subject = {"kind": "ServiceAccount", **name}
    reference = {"apiGroup": group, "kind": "Role", "name": "runner"}
    common = {"apiVersion": f"{group}/v1", "metadata": name}
    plane.apply(
        [
            {**common, "kind": "Role", "rules": [rule]},
            {**common, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]},
        ]
    )


def created_as(plane: ControlPlane, since: int) -> set[tuple[str, str, str]]:
    """(resource, user, impersonated user) of every object created in the team's namespace."""
    with plane.audit_log.open("rb") as log:
        log.seek(since)
        events = [json.loads(line) for line in log.read().splitlines()]
    return {
        (one["objectRef"]["resource"], one["user"]["username"], _impersonated(one))
        for one in events
        if one["verb"] == "create"
        and one["objectRef"].get("namespace") == TEAM
        and one["user"]["username"] == USER
    }


def _impersonated(event: Json) -> str:
    name: str = event.get("impersonatedUser", {}).get("username", "")
    return name


def can(plane: ControlPlane, kubeconfig: Path, verb: str, what: str, namespace: str) -> bool:
    asked = ("auth", "can-i", verb, what, "--namespace", namespace)
    said = plane.kubectl(*asked, kubeconfig=kubeconfig, check=False).splitlines()
    return said[-1] == "yes"


def wait_until_held(plane: ControlPlane, name: str) -> str:
    """Until the AppWrapper says that it waits for a right; what it says."""

    def reason() -> bool:
        return conditions_of(plane, name, TEAM).get("Backoff", {}).get("reason") == "MissingRight"

    plane.wait_for(reason, 60, "it is held")
    message: str = conditions_of(plane, name, TEAM)["Backoff"]["message"]
    return message


def test_items_are_created_with_the_rights_of_the_teams_account(
    plane: ControlPlane, account: Path
) -> None:
    # The account of this module holds the rights of the defaults, which are not wanted here.
    plane.kubectl("delete", "clusterrole,clusterrolebinding", "mcad")
    make_runner(plane, "pods", "configmaps")
    grant(plane, ACCOUNT, *IMPERSONATE)
    assert not can(plane, account, "create", "pods", TEAM)
    assert can(plane, account, "delete", "pods", TEAM)
    assert can(plane, account, "impersonate", "serviceaccounts/runner", TEAM)
    assert not can(plane, account, "impersonate", "serviceaccounts/default", TEAM)
    assert not can(plane, account, "impersonate", "serviceaccounts/runner", "default")

    since = plane.audit_mark()
    with Dispatcher(plane, account, *IMPERSONATE):
        both = (pod("allowed"), configmap("allowed"))
        create(plane, appwrapper("allowed", *both, namespace=TEAM))
        plane.wait_for(lambda: states(plane, TEAM)["allowed"] == "Running", what="it runs")
        plane.wait_for(lambda: phases(plane, TEAM) == {"allowed": "Running"}, what="its pod runs")

        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "denied"}}
        create(plane, appwrapper("denied", configmap("denied"), secret, namespace=TEAM))
        held = wait_until_held(plane, "denied")
        assert f"{RUNNER} has no right to create secrets in namespace {TEAM}" in held
        assert f'User "{RUNNER}" cannot create resource "secrets"' in held
        assert "configmap/denied" not in plane.kubectl("get", "cm", "-n", TEAM, "-o", "name")
        delete(plane, namespace=TEAM)
    assert created_as(plane, since) == {
        ("pods", USER, RUNNER),
        ("configmaps", USER, RUNNER),
        ("secrets", USER, RUNNER),
        ("events", USER, ""),
    }


def test_a_missing_right_to_impersonate_is_told_on_the_appwrapper(
    plane: ControlPlane, account: Path
) -> None:
    """The setting was changed, the rights were not."""
    grant(plane, ACCOUNT, *IMPERSONATE)
    other = ("--set", f"watchNamespaces=[{TEAM}]", "--set", "impersonate.serviceAccount=other")
    with Dispatcher(plane, account, *other):
        create(plane, appwrapper("rightless", configmap("rightless"), namespace=TEAM))
        held = wait_until_held(plane, "rightless")
        assert '"other" is forbidden' in held
        assert "cannot impersonate resource" in held
        delete(plane, namespace=TEAM)


# -- the CRD ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare() -> Iterator[ControlPlane]:
    """A control plane with a node, the rights, and no CRD."""
    with controlplane_or_skip() as plane:
        plane.add_node("node-1")
        yield plane


def other_crd() -> Json:
    """Ours without a rule and a field."""
    crd = crds()[0]
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        del spec["properties"]["suspend"]
    return crd


def test_a_crd_that_comes_later_is_compared_first(bare: ControlPlane) -> None:
    dispatcher = Dispatcher(bare, grant(bare, ACCOUNT)).start(ready=False)
    bare.wait_for(lambda: "watch fails" in dispatcher.log(), what="it waits for its CRD")
    assert "AppWrappers are not installed" in dispatcher.log()
    since = bare.audit_mark()
    bare.apply(other_crd())
    process = bare.process("mcad")
    assert process.wait(timeout=30) == 1
    last = dispatcher.log().splitlines()[-1]
    assert f"the installed CRD appwrappers.{GROUP} is not the one of this version: " in last
    assert "version v1beta1: spec.suspend: is missing" in last
    assert "mcad crd | kubectl apply --server-side -f -" in last
    asked = {one.uri for one in bare.audit(since) if one.resource == "appwrappers"}
    assert asked <= {f"/apis/{GROUP}/v1beta2/appwrappers?limit=1"}


def test_another_crd_is_refused_and_the_remedy_works(bare: ControlPlane) -> None:
    account = grant(bare, ACCOUNT)
    bare.apply(other_crd())
    done = cli("run", "--http", "127.0.0.1:0", kubeconfig=account)
    assert done.returncode == 1
    assert "version v1beta1: spec.suspend: is missing" in done.stderr.splitlines()[-1]
    assert "msg=listening" not in done.stderr

    remedy = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    bare.kubectl(*remedy, stdin=printed("crd"))
    with Dispatcher(bare, account) as dispatcher:
        create(bare, appwrapper("served", pod("served")))
        bare.wait_for(lambda: states(bare)["served"] == "Running", 60, "it is dispatched")
        assert "warning" not in dispatcher.log().rpartition("starting")[2]
        delete(bare)


def test_what_mcad_stored_is_served_and_then_stored_anew(bare: ControlPlane) -> None:
    """The CRD of a cluster with MCAD's objects stores v1beta1, and then has both in etcd."""
    account = grant(bare, ACCOUNT)
    older = crds()[0]
    for version in older["spec"]["versions"]:
        version["storage"] = version["name"] == "v1beta1"
    remedy = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    bare.kubectl(*remedy, stdin=json.dumps(older))
    bare.wait_for_crd(f"appwrappers.{GROUP}")
    for number in range(3):
        create(bare, appwrapper(f"old-{number}", configmap(f"old-{number}")))
    with Dispatcher(bare, account):
        bare.wait_for(lambda: states(bare).get("old-0") == "Running", 60, "v1beta1 is stored")
    refusal = cli("migrate", "storage", kubeconfig=bare.admin_kubeconfig)
    assert refusal.returncode == 1
    assert "the installed CRD stores v1beta1: install the one of this version first" in (
        refusal.stderr
    )
    bare.kubectl(*remedy, stdin=printed("crd"))
    assert stored_versions(bare) == ["v1beta1", "v1beta2"]
    with Dispatcher(bare, account):
        create(bare, appwrapper("new", configmap("new")))
        bare.wait_for(lambda: states(bare).get("new") == "Running", 60, "both are stored")
        admin = bare.admin_kubeconfig
        assert mcad("migrate", "storage", "--dry-run", kubeconfig=admin) == (
            "4 AppWrappers would be rewritten; storedVersions v1beta1, v1beta2 -> v1beta2\n"
        )
        assert stored_versions(bare) == ["v1beta1", "v1beta2"]
        assert mcad("migrate", "storage", kubeconfig=admin) == (
            "4 AppWrappers rewritten; storedVersions v1beta1, v1beta2 -> v1beta2\n"
        )
        assert stored_versions(bare) == ["v1beta2"]
        assert "nothing to do" in mcad("migrate", "storage", kubeconfig=admin)
        assert set(states(bare).values()) == {"Running"}, "nothing else has changed"
        # The server refuses to drop a version that the list still names, and now it does not.
        newer = crds()[0]
        newer["spec"]["versions"] = newer["spec"]["versions"][1:]
        bare.kubectl(
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "-f",
            "-",
            stdin=json.dumps(newer),
        )
        delete(bare)


def stored_versions(plane: ControlPlane) -> list[str]:
    """What etcd may hold, as the CRD says."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/appwrappers.{GROUP}"
    found: list[str] = plane.request("GET", path)[1]["status"]["storedVersions"]
    return sorted(found)


def test_without_the_right_to_read_the_crd_there_is_a_warning(bare: ControlPlane) -> None:
    account = grant(bare, ACCOUNT)
    role = json.loads(bare.kubectl("get", "clusterrole", "mcad", "-o", "json"))
    rules = [one for one in role["rules"] if "customresourcedefinitions" not in one["resources"]]
    bare.apply({**role, "metadata": {"name": "mcad"}, "rules": rules})
    with Dispatcher(bare, account) as dispatcher:
        assert "the installed CRD cannot be compared" in dispatcher.log().rpartition("starting")[2]


def test_the_crd_may_come_later(bare: ControlPlane) -> None:
    """It leads, and is not ready as long as there is nothing that it could dispatch."""
    bare.kubectl("delete", "crd", f"appwrappers.{GROUP}")
    dispatcher = Dispatcher(bare, grant(bare, ACCOUNT)).start(ready=False)
    try:
        dispatcher.wait_until_it_listens()
        bare.wait_for(
            lambda: "AppWrappers are not installed" in dispatcher.get("/readyz")[1], what="it leads"
        )
        code, said = dispatcher.get("/readyz")
        assert code == 503
        assert "mcad crd | kubectl apply --server-side -f -" in said
        assert dispatcher.get("/healthz") == (200, "ok\n")
        assert "mcad crd | kubectl apply --server-side -f -" in dispatcher.log()
        bare.apply(printed("crd"))
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
    with Dispatcher(bare, grant(bare, "narrow", *setting), *setting):
        for namespace in ("team-c", "team-b", "team-a"):
            pair = (pod(f"{namespace}-{number}") for number in range(2))
            create(bare, appwrapper(f"pair-{namespace}", *pair, namespace=namespace))
        for namespace in ("team-a", "team-b"):
            bare.wait_for(
                lambda namespace=namespace: (
                    list(phases(bare, namespace).values()) == ["Running"] * 2
                ),
                60,
                f"two pods in {namespace}",
            )
    assert states(bare, "team-c") == {"pair-team-c": ""}
    assert phases(bare, "team-c") == {}
    user = f"system:serviceaccount:{NAMESPACE}:narrow"
    codes = {one.code for one in bare.audit(since) if one.user == user}
    assert codes
    assert 403 not in codes


# -- other controllers -----------------------------------------------------------------------

MERGE = "application/merge-patch+json"


def kueues_webhook(kind: str) -> Json:
    """What an installed Kueue has for AppWrappers, one way or the other."""
    verb = "mutate" if kind.startswith("Mutating") else "validate"
    service = {
        "namespace": "kueue-system",
        "name": "kueue-webhook-service",
        "path": f"/{verb}-workload-codeflare-dev-v1beta2-appwrapper",
    }
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["v1beta2"],
        "operations": ["CREATE"],
        "resources": ["appwrappers"],
    }
    hook = {
        "name": "appwrapper.kb.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "rules": [rule],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": f"kueue-{verb}"},
        "webhooks": [hook],
    }


def kueues_settings(*frameworks: str) -> Json:
    text = json.dumps({"integrations": {"frameworks": list(frameworks)}})
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": text},
    }


def refused(kubeconfig: Path) -> str:
    """The last line of a dispatcher that does not start."""
    done = cli("run", "--http", "127.0.0.1:0", kubeconfig=kubeconfig)
    assert done.returncode == 1, done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
def test_an_active_kueue_is_told_and_not_joined(
    plane: ControlPlane, account: Path, kind: str
) -> None:
    grant(plane, ACCOUNT)
    webhook = kueues_webhook(kind)
    name = webhook["metadata"]["name"]
    plane.create_namespace("kueue-system")
    plane.apply(webhook)
    try:
        told = refused(account)
        assert f"webhook configuration {name} (service kueue-system/kueue-webhook-service)" in told
        assert "--force-coexist" in told
        plane.apply(kueues_settings("batch/job", f"{GROUP}/appwrapper"))
        assert name in refused(account)
        with Dispatcher(plane, account, "--force-coexist") as dispatcher:
            line = dispatcher.log().rpartition("msg=starting")[2]
            assert name in line
            assert "going on because of --force-coexist" in line

        plane.apply(kueues_settings("batch/job"))  # its integration is switched off
        Dispatcher(plane, account).start().stop()
    finally:
        plane.kubectl("delete", kind, name)
        plane.kubectl("delete", "configmap", "kueue-manager-config", "-n", "kueue-system")
    Dispatcher(plane, account).start().stop()  # what is gone does not block


def test_a_controller_that_writes_status_is_told_and_nothing_is_done(
    plane: ControlPlane, account: Path
) -> None:
    grant(plane, ACCOUNT)
    create(plane, appwrapper("theirs", pod("theirs")))
    path = f"{appwrappers_path()}/theirs/status?fieldManager=manager"
    status = {"status": {"phase": "Running"}}
    assert plane.request("PATCH", path, status, content_type=MERGE)[0] == 200
    since = plane.audit_mark()
    told = refused(account)
    assert "another controller is at work: 'manager' has written to AppWrapper default/theirs" in (
        told
    )
    writes = [one for one in plane.audit(since) if one.user == USER and one.is_write]
    assert [one for one in writes if one.resource != "leases"] == []
    delete(plane, "theirs")


# -- what upstream left behind ---------------------------------------------------------------

FINALIZER = f"{GROUP}/finalizer"


def left_behind(name: str, *finalizers: str, **spec: Any) -> Json:
    obj = appwrapper(name, pod(name), **spec)
    obj["metadata"]["finalizers"] = list(finalizers)
    return obj


def finalizers_of(plane: ControlPlane, name: str) -> list[str] | None:
    """None once it is gone."""
    status, found = plane.request("GET", f"{appwrappers_path()}/{name}")
    return found["metadata"].get("finalizers", []) if status == 200 else None


def test_what_upstream_left_behind_can_be_deleted(plane: ControlPlane, account: Path) -> None:
    grant(plane, ACCOUNT)
    create(plane, left_behind("dying", FINALIZER))
    create(plane, left_behind("living", "example.com/other", FINALIZER))
    create(plane, left_behind("theirs", FINALIZER, managedBy="kueue.x-k8s.io/multikueue"))
    plane.request("DELETE", f"{appwrappers_path()}/dying")
    assert finalizers_of(plane, "dying") == [FINALIZER]
    with Dispatcher(plane, account) as dispatcher:
        plane.wait_for(lambda: finalizers_of(plane, "dying") is None, what="it is gone")
        plane.wait_for(lambda: states(plane)["living"] == "Running", what="it is dispatched")
        kept = ["example.com/other"]
        plane.wait_for(lambda: finalizers_of(plane, "living") == kept, what="one is taken away")
        assert finalizers_of(plane, "theirs") == [FINALIZER]
        told = [one for one in dispatcher.log().splitlines() if "finalizer removed" in one]
        assert sorted(one.rpartition("/")[2] for one in told[-2:]) == ["dying", "living"]
        events = plane.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}")
        assert "Adopted" in events.split()
    for name in ("living", "theirs"):
        patch = {"metadata": {"finalizers": None}}
        plane.request("PATCH", f"{appwrappers_path()}/{name}", patch, content_type=MERGE)
    delete(plane)


# -- priorities ------------------------------------------------------------------------------


def test_a_priority_above_the_ceiling_is_cut_and_said(plane: ControlPlane, account: Path) -> None:
    grant(plane, ACCOUNT)
    with Dispatcher(plane, account, "--set", "maxPriority.default=5") as dispatcher:
        create(plane, appwrapper("first", pod("first", cpu="100"), priority=5))
        plane.wait_for(lambda: conditions_of(plane, "first").get("Backoff"), what="it waits")
        create(plane, appwrapper("greedy", pod("greedy", cpu="100"), priority=1000))
        plane.wait_for(lambda: conditions_of(plane, "greedy").get("Backoff"), what="so does it")
        assert status_of(plane, "greedy")["systempriority"] == 5
        lines = cli("queue", "--server", dispatcher.url).stdout.splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["first", "greedy"]
        told = cli("describe", "greedy", "--server", dispatcher.url).stdout
        cut = "spec.priority: 1000 is above the maxPriority of namespace default; it queues with 5."
        assert f"Warning:      {cut}" in told
        assert (
            "ManifestWarning" in cli("describe", "greedy", kubeconfig=plane.admin_kubeconfig).stdout
        )
        delete(plane)
