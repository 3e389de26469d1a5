"""DELETE: preconditions, policies, grace, finalizers, collections."""

from tests.contract.objects import appwrapper, config_map, deployment, pod
from tests.contract.script import Script, script

OTHER_UID = "00000000-0000-0000-0000-000000000009"


@script
def delete_preconditions(s: Script) -> None:
    a = s.on("configmaps/a")
    made = s.post("made", "configmaps", config_map("a"))
    a.delete("another uid", {"preconditions": {"uid": OTHER_UID}})
    a.delete("another version", {"preconditions": {"resourceVersion": "1"}})
    a.delete("both wrong", {"preconditions": {"uid": OTHER_UID, "resourceVersion": "1"}})
    a.patch("change", {"data": {"b": "2"}})
    a.delete("stale version", {"preconditions": {"uid": made.uid, "resourceVersion": made.version}})
    a.delete("uid", {"preconditions": {"uid": made.uid}})
    a.delete("again")
    a.delete("again with a uid", {"preconditions": {"uid": made.uid}})
    again = s.post("made again", "configmaps", config_map("a"))
    a.delete(
        "typed options",
        {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"resourceVersion": again.version},
        },
    )
    s.post("once more", "configmaps", config_map("a"))
    a.delete("options of another kind", {"apiVersion": "v1", "kind": "Pod"})
    a.delete("unknown option", {"nonsense": 1})
    a.delete("no JSON", b"{x")
    s.watch("all of it", "configmaps", resourceVersion=made.version)


@script
def delete_policies(s: Script) -> None:
    maps = s.on("configmaps")
    first = maps.post("first", config_map("first"))
    for policy in ("Background", "Foreground", "Orphan"):
        name = policy.lower()
        maps.post(f"{policy}: made", config_map(name))
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
    maps.post("b", config_map("b"))
    s.delete("by parameter", "configmaps/b", propagationPolicy="Foreground")
    maps.post("c", config_map("c"))
    s.delete("unknown policy", "configmaps/c", {"propagationPolicy": "Sometimes"})
    s.delete("the old way", "configmaps/c", {"orphanDependents": True})
    maps.post("d", config_map("d"))
    s.post("deployment", "deployments", deployment("d"))
    s.delete("deployment deleted", "deployments/d", {"propagationPolicy": "Foreground"})
    s.post("deployment e", "deployments", deployment("e"))
    s.delete("deployment e deleted", "deployments/e")
    s.post("custom", "appwrappers", appwrapper("a"))
    s.delete("custom deleted", "appwrappers/a", {"propagationPolicy": "Foreground"})
    s.post("custom b", "appwrappers", appwrapper("b"))
    s.delete("custom b deleted", "appwrappers/b")
    maps.watch("all of it", resourceVersion=first.version)


@script
def delete_finalizers(s: Script) -> None:
    a = s.on("configmaps/a")
    made = s.post("made", "configmaps", config_map("a", finalizers=["example.com/x"]))
    a.delete("deleted")
    a.delete("again")
    a.delete("with a grace", {"gracePeriodSeconds": 9})
    a.delete("with none", {"gracePeriodSeconds": 0})
    a.delete("with a wrong uid", {"preconditions": {"uid": OTHER_UID}})
    a.patch("another finalizer", {"metadata": {"finalizers": ["example.com/x", "example.com/y"]}})
    a.patch("one less", {"metadata": {"finalizers": ["example.com/x"]}})
    a.patch("another one instead", {"metadata": {"finalizers": ["example.com/y"]}})
    a.patch("gone", {"metadata": {"finalizers": None}})
    a.patch("too late", {"metadata": {"finalizers": None}})
    custom = appwrapper("w")
    custom["metadata"]["finalizers"] = ["example.com/x"]
    s.post("custom", "appwrappers", custom)
    s.delete("custom deleted", "appwrappers/w")
    s.patch("custom gone by status", "appwrappers/w/status", {"metadata": {"finalizers": None}})
    s.patch("custom gone", "appwrappers/w", {"metadata": {"finalizers": []}})
    s.watch("all of it", "configmaps", resourceVersion=made.version)


@script
def delete_pods(s: Script) -> None:
    pods = s.on("pods")
    made = pods.post("unbound", pod("a"))
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
        pods.post(f"{name}: made", pod(name, bound))
        s.delete(f"{name}: deleted", f"pods/{name}", options)
        s.get(f"{name}: left", f"pods/{name}")
        s.delete(f"{name}: again", f"pods/{name}")
        s.delete(f"{name}: five", f"pods/{name}", {"gracePeriodSeconds": 5})
        s.delete(f"{name}: longer", f"pods/{name}", {"gracePeriodSeconds": 50})
        s.patch(f"{name}: a label", f"pods/{name}", {"metadata": {"labels": {"x": "1"}}})
        s.delete(f"{name}: now", f"pods/{name}", {"gracePeriodSeconds": 0})
    pods.post("done", pod("done", bound))
    s.patch("it succeeded", "pods/done/status", {"status": {"phase": "Succeeded"}})
    s.delete("done goes at once", "pods/done")
    pods.post("own grace", pod("own", bound | {"terminationGracePeriodSeconds": 60}))
    s.delete("own grace deleted", "pods/own")
    pods.post("kept", pod("kept", bound, finalizers=["example.com/x"]))
    s.delete("kept deleted", "pods/kept")
    s.patch("kept released", "pods/kept", {"metadata": {"finalizers": None}})
    s.delete("kept killed", "pods/kept", {"gracePeriodSeconds": 0})
    pods.post("kept unbound", pod("kept2", finalizers=["example.com/x"]))
    s.delete("kept unbound deleted", "pods/kept2")
    s.patch("kept unbound released", "pods/kept2", {"metadata": {"finalizers": None}})
    pods.post("foreground", pod("fg", bound))
    s.delete("foreground deleted", "pods/fg", {"propagationPolicy": "Foreground"})
    s.delete("foreground killed", "pods/fg", {"gracePeriodSeconds": 0})
    pods.post("by parameter", pod("par", bound))
    s.delete("by parameter deleted", "pods/par", gracePeriodSeconds="7")
    s.delete("grace that is no number", "pods/par", gracePeriodSeconds="x")
    pods.watch("all of it", resourceVersion=made.version)


@script
def delete_collections(s: Script) -> None:
    maps = s.on("configmaps")
    first = maps.post("a", config_map("a", labels={"x": "1"}))
    maps.post("b", config_map("b", labels={"x": "1"}, finalizers=["example.com/x"]))
    maps.post("c", config_map("c"))
    maps.delete("with a wrong policy", {"propagationPolicy": "Sometimes"})
    maps.delete("by label", labelSelector="x=1")
    maps.get("left")
    maps.delete("by field", fieldSelector="metadata.name=c")
    maps.delete("the rest")
    s.patch("released", "configmaps/b", {"metadata": {"finalizers": None}})
    maps.delete("of nothing")
    for number in range(4):
        s.post(f"p{number}", "pods", pod(f"p{number}", {"nodeName": "n"} if number < 2 else None))
    s.delete("pods", "pods")
    s.delete("pods at once", "pods", {"gracePeriodSeconds": 0})
    s.get("pods left", "pods")
    s.post("custom", "appwrappers", appwrapper("a"))
    s.delete("customs", "appwrappers", {"propagationPolicy": "Foreground"})
    s.get("customs left", "appwrappers")
    s.delete("as a table", "appwrappers", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    maps.watch("all of it", resourceVersion=first.version)
