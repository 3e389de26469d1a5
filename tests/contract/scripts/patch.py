"""PATCH in three media types, and in those that are not spoken."""

from tests.contract.objects import appwrapper, config_map, deployment, pod, pod_spec
from tests.contract.script import STRATEGIC, Script, script


@script
def patch_merge(s: Script) -> None:
    a = s.on("configmaps/a")
    wrapper_w = s.on("appwrappers/w")
    made = s.post("made", "configmaps", config_map("a", {"a": "1", "b": "2"}))
    a.patch("change and remove", {"data": {"a": None, "c": "3"}})
    a.patch("no change", {"data": {"c": "3"}})
    a.patch("empty", {})
    a.patch(
        "fresh fence", {"metadata": {"resourceVersion": a.get("now").version}, "data": {"d": "4"}}
    )
    a.patch("stale fence", {"metadata": {"resourceVersion": made.version}, "data": {"d": "5"}})
    a.patch("uid that fits", {"metadata": {"uid": made.uid}, "data": {"f": "1"}})
    a.patch("uid that does not", {"metadata": {"uid": "x"}, "data": {"f": "2"}})
    a.patch("name", {"metadata": {"name": "b"}})
    a.patch("kind", {"kind": "Secret"})
    a.patch("apiVersion", {"apiVersion": "v2"})
    a.patch("all metadata removed", {"metadata": None})
    a.patch("data a text", {"data": "x"})
    a.patch("no JSON", b"{x")
    a.patch("no body", None)
    a.patch("label of a number", {"metadata": {"labels": {"x": 1}}})
    s.patch("custom", "appwrappers/nothing", {})
    s.post("a custom one", "appwrappers", appwrapper("w"))
    wrapper_w.patch("its name", {"metadata": {"name": "b"}})
    wrapper_w.patch("its kind", {"kind": "Secret"})
    wrapper_w.patch("its apiVersion", {"apiVersion": "workload.codeflare.dev/v1beta1"})
    wrapper_w.patch("its spec removed", {"spec": None})
    wrapper_w.patch("all of its metadata removed", {"metadata": None})
    a.get("at the end")
    s.watch("all of it", "configmaps", resourceVersion=made.version)


@script
def patch_types(s: Script) -> None:
    s.post("made", "configmaps", config_map("a"))
    s.post("custom", "appwrappers", appwrapper("a"))
    for path in ("configmaps/a", "appwrappers/a"):
        for kind in (
            "application/json",
            "text/plain",
            "application/apply-patch+cbor",
            STRATEGIC,
            "application/merge-patch+json; charset=utf-8",
            "application/yaml",
        ):
            s.patch(f"{path} {kind}", path, {"metadata": {"labels": {"x": "1"}}}, kind)


@script
def patch_strategic(s: Script) -> None:
    s.post("deployment", "deployments", deployment("d"))

    def patch(label: str, body: object, path: str = "deployments/d") -> None:
        s.patch(label, path, body, STRATEGIC)

    def template(**changes: object) -> object:
        return {"spec": {"template": {"spec": changes}}}

    patch("image", template(containers=[{"name": "main", "image": "busybox:1.37"}]))
    side = pod_spec()["containers"][0] | {"name": "side", "image": "x:1"}
    patch("second container", template(containers=[side]))
    patch("variable", template(containers=[{"name": "main", "env": [{"name": "A", "value": "1"}]}]))
    patch(
        "another variable",
        template(containers=[{"name": "main", "env": [{"name": "B", "value": "2"}]}]),
    )
    patch("delete one", template(containers=[{"name": "side", "$patch": "delete"}]))
    patch(
        "order",
        template(
            containers=[{"name": "main", "env": [{"name": "C", "value": "3"}]}],
            **{"$setElementOrder/containers": [{"name": "main"}]},
        ),
    )
    patch(
        "replace a list",
        template(
            containers=[
                {"name": "main", "env": [{"name": "D", "value": "4"}, {"$patch": "replace"}]}
            ]
        ),
    )
    patch("null", template(containers=[{"name": "main", "env": None}]))
    patch("strategy", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})
    patch("stale", {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 5}})
    patch("name", {"metadata": {"name": "e"}})
    patch("a list for a map", {"spec": []})
    s.get("at the end", "deployments/d")
    s.post("config map", "configmaps", config_map("a", finalizers=["example.com/a"]))
    both = {"metadata": {"finalizers": ["example.com/b", "example.com/a"]}}
    patch("one finalizer more, and one again", both, "configmaps/a")
    patch(
        "remove a finalizer",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
        "configmaps/a",
    )
    s.post("pod", "pods", pod("p"))
    times = {"lastTransitionTime": None, "lastProbeTime": None}
    for label, kind, status in (
        ("a condition", "Ready", "False"),
        ("another condition", "Initialized", "True"),
    ):
        condition = {"type": kind, "status": status} | times
        patch(label, {"status": {"conditions": [condition]}}, "pods/p/status")
    patch(
        "the first again",
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        "pods/p/status",
    )
