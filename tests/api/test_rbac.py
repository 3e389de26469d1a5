"""The rights: exactly what the configuration asks for."""

from __future__ import annotations

from typing import Any

import yaml

from mcad.api.config import Config
from mcad.api.rbac import NAME, WATCH, rbac_yaml, rules
from mcad.api.sources import load

ONLY_JOBS = ["wrappedResources=[{apiGroup: batch, resources: [jobs]}]"]


def granted(objects: list[dict[str, Any]], kind: str) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of all roles of a kind."""
    return {
        (group, resource, verb)
        for one in objects
        if one["kind"] == kind
        for rule in one["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_all_rights_of_a_dispatcher_of_jobs() -> None:
    read = ("get", "list", "watch")
    appwrapper = "workload.codeflare.dev"
    assert granted(rules(load(sets=ONLY_JOBS)), "ClusterRole") == {
        *((appwrapper, "appwrappers", verb) for verb in read),
        (appwrapper, "appwrappers", "patch"),
        (appwrapper, "appwrappers/status", "patch"),
        (appwrapper, "appwrappers/status", "update"),
        (appwrapper, "appwrappers/finalizers", "update"),
        *(("batch", "jobs", verb) for verb in (*read, "create", "delete")),
        *(("", resource, verb) for verb in WATCH for resource in ("nodes", "pods", "limitranges")),
        ("", "pods", "delete"),
        *(("node.k8s.io", "runtimeclasses", verb) for verb in WATCH),
        *(("scheduling.k8s.io", "priorityclasses", verb) for verb in WATCH),
        *(("kueue.x-k8s.io", "workloadpriorityclasses", verb) for verb in WATCH),
        ("events.k8s.io", "events", "create"),
        ("", "events", "list"),
        *(("apiextensions.k8s.io", "customresourcedefinitions", verb) for verb in read),
        ("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "list"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "list"),
        *((appwrapper, "dispatchpauses", verb) for verb in read),  # get: of all users
    }


def test_the_rights_to_ask_an_autoscaler_are_granted_only_if_it_is_asked() -> None:
    group, own = "autoscaling.x-k8s.io", ("create", "delete", "get", "list")
    without = granted(rules(load(sets=ONLY_JOBS)), "ClusterRole")
    templates = {("", "podtemplates", verb) for verb in own}
    requests = {(group, "provisioningrequests", verb) for verb in (*own, "watch")}
    buffers = {(group, "capacitybuffers", verb) for verb in (*own, "watch")}
    more = {
        "off": set(),
        "auto": templates | requests | buffers,
        "ProvisioningRequest": templates | requests,
        "CapacityBuffer": templates | buffers,
        "PlaceholderPods": {("", "pods", verb) for verb in ("create", "get")},
    }
    for via, added in more.items():
        objects = rules(load(sets=[*ONLY_JOBS, f"scaleUp.via={via}"]))
        assert granted(objects, "ClusterRole") - without == added, via
        classes = [one for one in objects if one["kind"] == "PriorityClass"]
        assert [one["value"] for one in classes] == ([-10] if via == "PlaceholderPods" else [])


def test_nothing_is_granted_by_a_pattern_and_nothing_wrapped_is_changed() -> None:
    config = Config()
    everything = granted(rules(config), "ClusterRole")
    assert not [one for one in everything if "*" in one]
    changing = {one[:2] for one in everything if one[2] in ("update", "patch")}
    assert not changing & config.allowed


def test_what_stands_between_a_wrapped_object_and_its_pods_is_read() -> None:
    only = load(sets=["wrappedResources=[{apiGroup: ray.io, resources: [rayjobs]}]"])
    rights = granted(rules(only), "ClusterRole")
    between = (("ray.io", "rayclusters"), ("batch", "jobs"))
    assert {one for one in rights if one[:2] in between} == {(*pair, "get") for pair in between}


def test_only_our_own_crd_is_read_by_name_and_which_there_are_is_watched() -> None:
    role, viewer = [one for one in rules(Config()) if one["kind"] == "ClusterRole"]
    assert [one["resources"] for one in viewer["rules"]] == [["dispatchpauses"]]
    found = [one for one in role["rules"] if "customresourcedefinitions" in one["resources"]]
    own, all_of_them = found
    assert own["resourceNames"] == ["appwrappers.workload.codeflare.dev"]
    assert all_of_them["verbs"] == ["list", "watch"]


def test_watched_namespaces_get_roles_of_their_own() -> None:
    objects = rules(load(sets=[*ONLY_JOBS, "watchNamespaces=[a, b]"]), "ops", "robot")
    assert [(one["kind"], one["metadata"].get("namespace")) for one in objects] == [
        ("ServiceAccount", "ops"),
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("Role", "a"),
        ("RoleBinding", "a"),
        ("Role", "b"),
        ("RoleBinding", "b"),
        ("Role", "kube-system"),
        ("RoleBinding", "kube-system"),
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("Role", "kube-system"),
        ("RoleBinding", "kube-system"),
    ]
    assert ("batch", "jobs", "create") in granted(objects, "Role")
    assert ("batch", "jobs", "create") not in granted(objects, "ClusterRole")
    *ours, viewers, everyone = [
        one["subjects"] for one in objects if one["kind"].endswith("Binding")
    ]
    robot = {"kind": "ServiceAccount", "name": "robot", "namespace": "ops"}
    assert all(one == [robot] for one in ours)
    assert [one["name"] for one in (*viewers, *everyone)] == ["system:authenticated"] * 2


def test_the_lease_is_written_by_the_dispatcher_and_read_by_all_users() -> None:
    sets = ["leaderElection.namespace=ops", "leaderElection.name=ours"]
    leader, viewer = [one for one in rules(load(sets=sets)) if one["kind"] == "Role"]
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    ours = lease | {"resourceNames": ["ours"]}
    assert [one["metadata"]["namespace"] for one in (leader, viewer)] == ["ops", "ops"]
    assert leader["rules"] == [ours | {"verbs": ["get", "patch"]}, lease | {"verbs": ["create"]}]
    assert viewer["rules"] == [ours | {"verbs": ["get"]}]


def test_with_impersonation_nothing_is_created_but_as_that_account() -> None:
    sets = [*ONLY_JOBS, "watchNamespaces=[a, b]", "impersonate.serviceAccount=runner"]
    objects = rules(load(sets=sets))
    here = granted(objects, "Role")
    assert ("batch", "jobs", "delete") in here
    assert not [one for one in here if one[2] == "create" and one[1] not in ("events", "leases")]
    assert ("workload.codeflare.dev", "appwrappers/finalizers", "update") not in here
    assert "impersonate" not in {one[2] for one in granted(objects, "ClusterRole")}
    roles = [one for one in objects if one["kind"] == "Role" and one["metadata"]["name"] == NAME]
    assert [one["metadata"]["namespace"] for one in roles] == ["a", "b"]
    for role in roles:
        (rule,) = [one for one in role["rules"] if "impersonate" in one["verbs"]]
        assert rule == {
            "apiGroups": [""],
            "resources": ["serviceaccounts"],
            "verbs": ["impersonate"],
            "resourceNames": ["runner"],
        }


def test_the_text_holds_the_same_objects() -> None:
    text = rbac_yaml(Config(), "ops", "robot")
    assert list(yaml.safe_load_all(text)) == rules(Config(), "ops", "robot")
