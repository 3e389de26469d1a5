"""What the controllers of a cluster do behind the API: owners, namespaces."""

from __future__ import annotations

from typing import Any

from tests.contract.objects import appwrapper, config_map, short_job
from tests.contract.script import Later, Script, lively

GONE_UID = "00000000-0000-0000-0000-000000000001"


def is_gone(status: int, body: Any) -> bool:
    return status == 404


def is_going(status: int, body: Any) -> bool:
    return "deletionTimestamp" in body["metadata"]


def has_no_owners(status: int, body: Any) -> bool:
    return status == 404 or not body["metadata"].get("ownerReferences")


def of(name: str, uid: Any, kind: str = "ConfigMap", version: str = "v1", **more: Any) -> Any:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid} | more


def owned(name: str, *owners: Later, **more: Any) -> Any:
    references = [of(one.at("metadata", "name"), one.uid, **more) for one in owners]
    return config_map(name, ownerReferences=references)


@lively
def gc_policies(s: Script) -> None:
    for policy in ("Background", "Foreground", "Orphan"):
        name = policy.lower()
        owner = s.post(f"{policy}: owner", "configmaps", config_map(name))
        s.post(f"{policy}: child", "configmaps", owned(f"{name}-child", owner))
        if policy == "Orphan":  # several children are orphaned in any order
            s.delete("Orphan: deleted", "configmaps/orphan", {"propagationPolicy": policy})
            s.get("Orphan: owner is gone", "configmaps/orphan", until=is_gone)
            s.get("Orphan: its child stays", "configmaps/orphan-child", until=has_no_owners)
            continue
        s.post(
            f"{policy}: blocking child",
            "configmaps",
            owned(f"{name}-blocking", owner, blockOwnerDeletion=True, controller=True),
        )
        s.delete(f"{policy}: deleted", f"configmaps/{name}", {"propagationPolicy": policy})
        s.get(f"{policy}: owner is gone", f"configmaps/{name}", until=is_gone)
        s.get(f"{policy}: what becomes of the child", f"configmaps/{name}-child", until=is_gone)
        s.get(f"{policy}: and of the blocking one", f"configmaps/{name}-blocking", until=is_gone)


@lively
def gc_kept_children(s: Script) -> None:
    owner = s.post("owner", "configmaps", config_map("owner"))
    kept = owned("kept", owner, blockOwnerDeletion=True)
    kept["metadata"]["finalizers"] = ["example.com/x"]
    s.post("child that is kept", "configmaps", kept)
    s.delete("owner deleted", "configmaps/owner", {"propagationPolicy": "Foreground"})
    s.get("child is going", "configmaps/kept", until=is_going)
    s.get("owner waits", "configmaps/owner")
    s.patch("child released", "configmaps/kept", {"metadata": {"finalizers": None}})
    s.get("owner gone", "configmaps/owner", until=is_gone)
    s.get("child gone", "configmaps/kept", until=is_gone)


@lively
def gc_owners(s: Script) -> None:
    maps = s.on("configmaps")
    first = maps.post("first owner", config_map("first"))
    second = maps.post("second owner", config_map("second"))
    maps.post("child of both", owned("both", first, second))
    s.delete("first deleted", "configmaps/first")
    s.get(
        "child is the second one's",
        "configmaps/both",
        until=lambda status, body: len(body["metadata"].get("ownerReferences") or ()) < 2,
    )
    s.delete("second deleted", "configmaps/second")
    s.get("child gone", "configmaps/both", until=is_gone)
    maps.post("dangling", config_map("dangling", ownerReferences=[of("never", GONE_UID)]))
    s.get("dangling gone", "configmaps/dangling", until=is_gone)
    other = maps.post("third owner", config_map("third"))
    maps.post(
        "right name and wrong uid", config_map("stranger", ownerReferences=[of("third", GONE_UID)])
    )
    s.get("stranger gone", "configmaps/stranger", until=is_gone)
    maps.post("grandchild's parent", owned("parent", other))
    custom = s.post("custom owner", "appwrappers", appwrapper("w"))
    wrapper = of("w", custom.uid, "AppWrapper", "workload.codeflare.dev/v1beta2")
    maps.post("child of a custom one", config_map("of-custom", ownerReferences=[wrapper]))
    s.delete("custom deleted", "appwrappers/w")
    s.get("its child gone", "configmaps/of-custom", until=is_gone)
    s.delete("third deleted", "configmaps/third")
    s.get("parent gone", "configmaps/parent", until=is_gone)


@lively
def namespace_life(s: Script) -> None:
    name = f"{s.namespace}-inner"
    maps = f"/api/v1/namespaces/{name}/configmaps"
    s.post("made", "namespaces", {"metadata": {"name": name}})
    s.get(
        "its account",
        f"/api/v1/namespaces/{name}/serviceaccounts/default",
        until=lambda status, body: status == 200,
    )
    s.post("content", maps, config_map("a"))
    kept = config_map("kept", finalizers=["example.com/x"])
    s.post("content that is kept", maps, kept)
    s.delete("deleted", f"namespaces/{name}")
    s.get("content gone", f"{maps}/a", until=is_gone)
    s.get("what is kept", f"{maps}/kept", until=is_going)
    s.post("nothing new", maps, config_map("b"))
    s.patch("released", f"{maps}/kept", {"metadata": {"finalizers": None}})
    s.get("namespace gone", f"namespaces/{name}", until=is_gone)
    s.get("nothing left", maps)


@lively
def gc_odd_owners(s: Script) -> None:
    other = f"/api/v1/namespaces/{s.namespace}-other"
    s.post("another namespace", "namespaces", {"metadata": {"name": f"{s.namespace}-other"}})
    owner = s.post("owner", "configmaps", config_map("owner"))
    s.post("child in another namespace", f"{other}/configmaps", owned("child", owner))
    s.get("is collected", f"{other}/configmaps/child", until=is_gone)
    role = s.post(
        "owner without a namespace",
        "clusterroles",
        {"metadata": {"name": s.namespace}, "rules": []},
    )
    owning = of(s.namespace, role.uid, "ClusterRole", "rbac.authorization.k8s.io/v1")
    s.post("its child", "configmaps", config_map("of-role", ownerReferences=[owning]))
    s.delete("owner without a namespace deleted", f"clusterroles/{s.namespace}")
    s.get("its child is gone", "configmaps/of-role", until=is_gone)
    loose = owned("loose", owner)
    loose["metadata"]["finalizers"] = ["example.com/x"]
    s.post("loose child that is kept", "configmaps", loose)
    s.delete("owner deleted", "configmaps/owner", {"propagationPolicy": "Foreground"})
    s.get("a child that does not block is not waited for", "configmaps/owner", until=is_gone)
    s.get("but goes, too", "configmaps/loose", until=is_going)
    s.patch("released", "configmaps/loose", {"metadata": {"finalizers": None}})
    s.get("gone", "configmaps/loose", until=is_gone)
    s.delete("tidied up", f"namespaces/{s.namespace}-other")


@lively
def job_life(s: Script) -> None:
    """A Job that orphans its pods by default, with the real job controller beside it."""
    s.post("suspended job", "jobs", short_job("j", suspend=True))
    s.get(
        "it says so",
        "jobs/j",
        until=lambda status, body: any(
            one["type"] == "Suspended" for one in body.get("status", {}).get("conditions") or ()
        ),
    )
    s.delete("deleted without a policy", "jobs/j")
    s.get("the collector has let it go", "jobs/j", until=is_gone)
