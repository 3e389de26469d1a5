"""DELETE: preconditions, policies, grace, finalizers, collections."""

from tests.contract.objects import appwrapper, config_map, deployment, pod
from tests.contract.script import Script, script

OTHER_UID = "00000000-0000-0000-0000-000000000009"


@script
def delete_preconditions(s: Script) -> None:
    made = s.post("made", "configmaps", config_map("a"))
    s.delete("another uid", "configmaps/a", {"preconditions": {"uid": OTHER_UID}})
    s.delete("another version", "configmaps/a", {"preconditions": {"resourceVersion": "1"}})
    s.delete(
        "both wrong", "configmaps/a", {"preconditions": {"uid": OTHER_UID, "resourceVersion": "1"}}
    )
    s.patch("change", "configmaps/a", {"data": {"b": "2"}})
    s.delete(
        "stale version",
        "configmaps/a",
        {"preconditions": {"uid": made.uid, "resourceVersion": made.version}},
    )
    s.delete("uid", "configmaps/a", {"preconditions": {"uid": made.uid}})
    s.delete("again", "configmaps/a")
    s.delete("again with a uid", "configmaps/a", {"preconditions": {"uid": made.uid}})
    again = s.post("made again", "configmaps", config_map("a"))
    s.delete(
        "typed options",
        "configmaps/a",
        {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"resourceVersion": again.version},
        },
    )
    s.post("once more", "configmaps", config_map("a"))
    s.delete("options of another kind", "configmaps/a", {"apiVersion": "v1", "kind": "Pod"})
    s.delete("unknown option", "configmaps/a", {"nonsense": 1})
    s.delete("no JSON", "configmaps/a", b"{x")
    s.watch("all of it", "configmaps", resourceVersion=made.version)


@script
def delete_policies(s: Script) -> None:
    first = s.post("first", "configmaps", config_map("first"))
    for policy in ("Background", "Foreground", "Orphan"):
        name = policy.lower()
        s.post(f"{policy}: made", "configmaps", config_map(name))
        s.delete(f"{policy}: deleted", f"configmaps/{name}", {"propagationPolicy": policy})
        s.get(f"{policy}: left", f"configmaps/{name}")
        s.delete(f"{policy}: again", f"configmaps/{name}", {"propagationPolicy": policy})
        s.delete(
            f"{policy}: Background after it",
            f"configmaps/{name}",
            {"propagationPolicy": "Background"},
        )
        s.delete(
            f"{policy}: Orphan after it", f"configmaps/{name}", {"propagationPolicy": "Orphan"}
        )
        s.delete(f"{policy}: without a policy after it", f"configmaps/{name}")
    s.post("b", "configmaps", config_map("b"))
    s.delete("by parameter", "configmaps/b", propagationPolicy="Foreground")
    s.post("c", "configmaps", config_map("c"))
    s.delete("unknown policy", "configmaps/c", {"propagationPolicy": "Sometimes"})
    s.delete("the old way", "configmaps/c", {"orphanDependents": True})
    s.post("d", "configmaps", config_map("d"))
    s.post("deployment", "deployments", deployment("d"))
    s.delete("deployment deleted", "deployments/d", {"propagationPolicy": "Foreground"})
    s.post("deployment e", "deployments", deployment("e"))
    s.delete("deployment e deleted", "deployments/e")
    s.post("custom", "appwrappers", appwrapper("a"))
    s.delete("custom deleted", "appwrappers/a", {"propagationPolicy": "Foreground"})
    s.post("custom b", "appwrappers", appwrapper("b"))
    s.delete("custom b deleted", "appwrappers/b")
    s.watch("all of it", "configmaps", resourceVersion=first.version)


@script
def delete_finalizers(s: Script) -> None:
    made = s.post("made", "configmaps", config_map("a", finalizers=["example.com/x"]))
    s.delete("deleted", "configmaps/a")
    s.delete("again", "configmaps/a")
    s.delete("with a grace", "configmaps/a", {"gracePeriodSeconds": 9})
    s.delete("with none", "configmaps/a", {"gracePeriodSeconds": 0})
    s.delete("with a wrong uid", "configmaps/a", {"preconditions": {"uid": OTHER_UID}})
    s.patch(
        "another finalizer",
        "configmaps/a",
        {"metadata": {"finalizers": ["example.com/x", "example.com/y"]}},
    )
    s.patch("one less", "configmaps/a", {"metadata": {"finalizers": ["example.com/x"]}})
    s.patch("another one instead", "configmaps/a", {"metadata": {"finalizers": ["example.com/y"]}})
    s.patch("gone", "configmaps/a", {"metadata": {"finalizers": None}})
    s.patch("too late", "configmaps/a", {"metadata": {"finalizers": None}})
    custom = appwrapper("w")
    custom["metadata"]["finalizers"] = ["example.com/x"]
    s.post("custom", "appwrappers", custom)
    s.delete("custom deleted", "appwrappers/w")
    s.patch("custom gone by status", "appwrappers/w/status", {"metadata": {"finalizers": None}})
    s.patch("custom gone", "appwrappers/w", {"metadata": {"finalizers": []}})
    s.watch("all of it", "configmaps", resourceVersion=made.version)


@script
def delete_pods(s: Script) -> None:
    made = s.post("unbound", "pods", pod("a"))
    s.delete("unbound goes at once", "pods/a")
    s.get("gone", "pods/a")
    bound = {"nodeName": "no-such-node"}
    for name, options in (
        ("by-default", {}),
        ("ten", {"gracePeriodSeconds": 10}),
        ("zero", {"gracePeriodSeconds": 0}),
        ("below", {"gracePeriodSeconds": -1}),
        ("long", {"gracePeriodSeconds": 100}),
    ):
        s.post(f"{name}: made", "pods", pod(name, bound))
        s.delete(f"{name}: deleted", f"pods/{name}", options)
        s.get(f"{name}: left", f"pods/{name}")
        s.delete(f"{name}: again", f"pods/{name}")
        s.delete(f"{name}: five", f"pods/{name}", {"gracePeriodSeconds": 5})
        s.delete(f"{name}: longer", f"pods/{name}", {"gracePeriodSeconds": 50})
        s.patch(f"{name}: a label", f"pods/{name}", {"metadata": {"labels": {"x": "1"}}})
        s.delete(f"{name}: now", f"pods/{name}", {"gracePeriodSeconds": 0})
    s.post("done", "pods", pod("done", bound))
    s.patch("it succeeded", "pods/done/status", {"status": {"phase": "Succeeded"}})
    s.delete("done goes at once", "pods/done")
    s.post("own grace", "pods", pod("own", bound | {"terminationGracePeriodSeconds": 60}))
    s.delete("own grace deleted", "pods/own")
    s.post("kept", "pods", pod("kept", bound, finalizers=["example.com/x"]))
    s.delete("kept deleted", "pods/kept")
    s.patch("kept released", "pods/kept", {"metadata": {"finalizers": None}})
    s.delete("kept killed", "pods/kept", {"gracePeriodSeconds": 0})
    s.post("kept unbound", "pods", pod("kept2", finalizers=["example.com/x"]))
    s.delete("kept unbound deleted", "pods/kept2")
    s.patch("kept unbound released", "pods/kept2", {"metadata": {"finalizers": None}})
    s.post("foreground", "pods", pod("fg", bound))
    s.delete("foreground deleted", "pods/fg", {"propagationPolicy": "Foreground"})
    s.delete("foreground killed", "pods/fg", {"gracePeriodSeconds": 0})
    s.post("by parameter", "pods", pod("par", bound))
    s.delete("by parameter deleted", "pods/par", gracePeriodSeconds="7")
    s.delete("grace that is no number", "pods/par", gracePeriodSeconds="x")
    s.watch("all of it", "pods", resourceVersion=made.version)


@script
def delete_collections(s: Script) -> None:
    first = s.post("a", "configmaps", config_map("a", labels={"x": "1"}))
    s.post("b", "configmaps", config_map("b", labels={"x": "1"}, finalizers=["example.com/x"]))
    s.post("c", "configmaps", config_map("c"))
    s.delete("with a wrong policy", "configmaps", {"propagationPolicy": "Sometimes"})
    s.delete("by label", "configmaps", labelSelector="x=1")
    s.get("left", "configmaps")
    s.delete("by field", "configmaps", fieldSelector="metadata.name=c")
    s.delete("the rest", "configmaps")
    s.patch("released", "configmaps/b", {"metadata": {"finalizers": None}})
    s.delete("of nothing", "configmaps")
    for number in range(4):
        s.post(f"p{number}", "pods", pod(f"p{number}", {"nodeName": "n"} if number < 2 else None))
    s.delete("pods", "pods")
    s.delete("pods at once", "pods", {"gracePeriodSeconds": 0})
    s.get("pods left", "pods")
    s.post("custom", "appwrappers", appwrapper("a"))
    s.delete("customs", "appwrappers", {"propagationPolicy": "Foreground"})
    s.get("customs left", "appwrappers")
    s.delete(
        "as a table",
        "appwrappers",
        headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    )
    s.watch("all of it", "configmaps", resourceVersion=first.version)
