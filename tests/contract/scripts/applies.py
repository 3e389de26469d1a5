"""Server-side apply, as ``kubectl apply --server-side`` sends it."""

from __future__ import annotations

from typing import Any

from tests.contract.objects import appwrapper, config_map, short_deployment
from tests.contract.script import Later, Script, merge, script

Json = dict[str, Any]
APPLY = "application/apply-patch+yaml"


def apply(s: Script, label: str, path: str, body: Json, manager: str, **params: Any) -> Later:
    return s.patch(label, path, body, APPLY, fieldManager=manager, **params)


@script
def apply_maps(s: Script) -> None:
    path = "configmaps/a"
    apply(s, "made", path, config_map("a", {"a": "1", "b": "2"}), "me")
    apply(s, "the same", path, config_map("a", {"a": "1", "b": "2"}), "me")
    apply(s, "one less, one more", path, config_map("a", {"a": "1", "c": "3"}), "me")
    apply(s, "by another", path, config_map("a", {"d": "4"}, labels={"x": "y"}), "you")
    apply(s, "in conflict", path, config_map("a", {"a": "9"}), "you")
    apply(s, "by force", path, config_map("a", {"a": "9", "d": "4"}), "you", force="true")
    apply(s, "the first again", path, config_map("a", {"a": "1"}), "me")
    apply(s, "the first without it", path, config_map("a", {}), "me")
    apply(s, "dry", path, config_map("a", {"z": "1"}), "me", dryRun="All")
    s.get("at the end", path)
    apply(s, "another name", path, config_map("b"), "me")
    apply(s, "no name", path, config_map(), "me")
    apply(s, "another kind", path, config_map("a") | {"kind": "Secret"}, "me")
    apply(s, "no type", path, {"metadata": {"name": "a"}}, "me")
    apply(s, "stale", path, config_map("a", resourceVersion="1"), "me")
    apply(s, "a new one, dry", "configmaps/n", config_map("n"), "me", dryRun="All")
    apply(s, "in no namespace", "/api/v1/namespaces/nowhere/configmaps/a", config_map("a"), "me")
    s.patch("no manager", path, config_map("a"), APPLY)
    apply(s, "manager with a long name", path, config_map("a"), "m" * 200)


@script
def apply_lists(s: Script) -> None:
    path = "deployments/d"
    one = short_deployment("d")
    apply(s, "made", path, one, "me")
    side = {"name": "side", "image": "x:1"}
    two = merge(one, {})
    two["spec"]["template"]["spec"]["containers"] = [{"name": "main", "image": "busybox"}, side]
    apply(s, "two containers", path, two, "me")
    apply(s, "one again", path, one, "me")
    variable = merge(one, {})
    variable["spec"]["template"]["spec"]["containers"] = [
        {"name": "main", "image": "busybox", "env": [{"name": "A", "value": "1"}]}
    ]
    apply(s, "a variable", path, variable, "me")
    other = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]}
            }
        },
    }
    apply(s, "a variable by another", path, other, "you")
    apply(s, "replicas by another", path, merge(other, {"spec": {"replicas": 3}}), "you")
    apply(s, "replicas in conflict", path, merge(variable, {"spec": {"replicas": 4}}), "me")
    s.get("at the end", path)
    apply(s, "custom", "appwrappers/w", appwrapper("w", priority=3), "me")
    apply(s, "custom, priority gone", "appwrappers/w", appwrapper("w"), "me")
    apply(s, "custom, in conflict", "appwrappers/w", appwrapper("w", priority=4), "you")
    apply(s, "custom, in conflict indeed", "appwrappers/w", appwrapper("w", priority=5), "me")
