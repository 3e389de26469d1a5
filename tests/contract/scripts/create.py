"""POST: names, types, namespaces, dry run."""

from tests.contract.objects import appwrapper, config_map, pod
from tests.contract.script import Script, script


@script
def create_names(s: Script) -> None:
    maps = s.on("configmaps")
    maps.post("by name", config_map("a"))
    maps.post("taken", config_map("a"))
    maps.post("by generateName", config_map(generateName="gen-"))
    maps.post("name wins over generateName", config_map("b", generateName="gen-"))
    maps.post("neither", config_map())
    maps.post("empty name", config_map() | {"metadata": {"name": ""}})
    maps.post("no metadata", {"apiVersion": "v1", "kind": "ConfigMap"})
    maps.post("underscore", config_map("under_score"))
    maps.post("slash", config_map("a/b"))
    maps.post("too long", config_map("x" * 254))
    maps.post("generateName that is invalid", config_map(generateName="Gen_"))
    s.post("a pod's name", "pods", pod("Not A Name"))
    maps.get("what is there")


@script
def create_metadata(s: Script) -> None:
    maps = s.on("configmaps")
    maps.post("label key", config_map("a", labels={"-x": "1"}))
    maps.post("label value", config_map("a", labels={"x": "a b"}))
    maps.post("annotation key", config_map("a", annotations={"x y": "1"}))
    maps.post("finalizer without a domain", config_map("a", finalizers=["plain"]))
    maps.post("finalizer", config_map("b", finalizers=["example.com/x"]))
    maps.post("label that is no text", config_map("c", labels={"x": 1}))
    maps.post("labels that are a list", config_map("c", labels=["x"]))
    maps.post("labels null", config_map("d", labels=None, annotations={}))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b"}
    maps.post("owner without uid", config_map("e", ownerReferences=[owner]))
    dangler = {"uid": "00000000-0000-0000-0000-000000000001", "controller": True}
    dangling = config_map("f", ownerReferences=[owner | dangler | {"blockOwnerDeletion": False}])
    maps.post("dangling owner", dangling)
    maps.post(
        "server-owned fields",
        config_map(
            "g",
            uid="00000000-0000-0000-0000-000000000002",
            generation=7,
            selfLink="/x",
            creationTimestamp="2001-01-01T00:00:00Z",
            deletionTimestamp="2001-01-01T00:00:00Z",
            deletionGracePeriodSeconds=5,
        ),
    )
    maps.post("resourceVersion set", config_map("h", resourceVersion="5"))
    maps.post("resourceVersion 0", config_map("h", resourceVersion="0"))
    maps.post("name that is no text", config_map("k") | {"metadata": {"name": 5}})
    maps.get("what is there")


@script
def create_types(s: Script) -> None:
    maps = s.on("configmaps")
    maps.post("without type", {"metadata": {"name": "a"}})
    maps.post("another kind", config_map("b") | {"kind": "Secret"})
    maps.post("bad apiVersion", config_map("b") | {"apiVersion": "a/b/c"})
    s.post("custom: without type", "appwrappers", {"metadata": {"name": "a"}})
    s.post("custom: another kind", "appwrappers", config_map("b"))
    maps.post("a kind that decodes", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}})
    maps.post("no body")
    maps.post("empty body", b"")
    maps.post("no JSON", b"{nonsense")
    maps.post("data of numbers", config_map("e", {"a": 1}))
    maps.post("another media type", config_map("f"), content_type="text/plain")
    maps.post("YAML", b"metadata: {name: yaml}\ndata: {a: '1'}", content_type="application/yaml")
    maps.post("no media type", config_map("g"), content_type="")
    maps.get("what is there")


@script
def create_namespaces(s: Script) -> None:
    other = "/api/v1/namespaces/nowhere/configmaps"
    s.post("missing namespace", other, config_map("a"))
    s.post("missing namespace, pod", "/api/v1/namespaces/nowhere/pods", pod("a"))
    s.post(
        "missing namespace, custom",
        "/apis/workload.codeflare.dev/v1beta2/namespaces/nowhere/appwrappers",
        appwrapper("a"),
    )
    s.post("missing namespace, no name", other, config_map())
    s.post("body says another one", "configmaps", config_map("a", namespace="default"))
    s.post("body says the same", "configmaps", config_map("a", namespace=s.namespace))
    s.post("all namespaces", "/api/v1/configmaps", config_map("b"))
    s.post("all namespaces, named", "/api/v1/configmaps", config_map("b", namespace=s.namespace))
    s.post(
        "namespace with a namespace",
        "namespaces",
        {"metadata": {"name": f"{s.namespace}-odd", "namespace": "default"}},
    )
    made = {"metadata": {"name": f"{s.namespace}-closing", "finalizers": ["example.com/x"]}}
    s.post("a namespace", "namespaces", made)
    s.post("a namespace again", "namespaces", made)
    s.post("a namespace with a dot", "namespaces", {"metadata": {"name": "a.b"}})
    s.delete("going", f"namespaces/{s.namespace}-closing")
    s.delete("going again", f"namespaces/{s.namespace}-closing")
    s.post(
        "in one that goes", f"/api/v1/namespaces/{s.namespace}-closing/configmaps", config_map("a")
    )
    s.post("pod in one that goes", f"/api/v1/namespaces/{s.namespace}-closing/pods", pod("a"))
    s.post(
        "custom in one that goes",
        f"/apis/workload.codeflare.dev/v1beta2/namespaces/{s.namespace}-closing/appwrappers",
        appwrapper("a"),
    )
    s.get("it is there", f"namespaces/{s.namespace}-closing")
    s.delete("one of the immortal ones", "/api/v1/namespaces/default")
    s.delete("all namespaces at once", "/api/v1/namespaces")


@script
def create_dry_run(s: Script) -> None:
    maps = s.on("configmaps")
    a = s.on("configmaps/a")
    maps.post("dry", config_map("a"), dryRun="All")
    a.get("nothing there")
    maps.post("dry generateName", config_map(generateName="x-"), dryRun="All")
    maps.post("wet", config_map("a"))
    maps.post("dry, taken", config_map("a"), dryRun="All")
    maps.post("another word", config_map("b"), dryRun="Some")
    maps.post("empty word", config_map("c"), dryRun="")
    a.patch("dry patch", {"data": {"b": "2"}}, dryRun="All")
    a.delete("dry delete", dryRun="All")
    a.delete("dry delete in the body", {"dryRun": ["All"]})
    a.delete("dry delete with another word", {"dryRun": ["Some"]})
    a.get("still the same")
    maps.delete("dry delete of all", dryRun="All")
    maps.get("all there")
    s.post("dry pod", "pods", pod("a"), dryRun="All")


@script
def create_field_validation(s: Script) -> None:
    maps = s.on("configmaps")
    unknown = config_map("a") | {"extra": 1}
    maps.post("strict", unknown, fieldValidation="Strict")
    maps.post("warn", unknown, fieldValidation="Warn")
    maps.post("ignore", unknown | {"metadata": {"name": "b"}}, fieldValidation="Ignore")
    maps.post("default", unknown | {"metadata": {"name": "c"}})
    maps.post("another word", unknown | {"metadata": {"name": "d"}}, fieldValidation="Sometimes")
    maps.post("unknown in metadata", config_map("e", extra=1), fieldValidation="Strict")
    maps.post("warn about metadata", config_map("e", extra=1), fieldValidation="Warn")
    s.put("strict update", "configmaps/a", unknown, fieldValidation="Strict")
    s.patch("strict patch", "configmaps/a", {"extra": 1}, fieldValidation="Strict")
    s.patch("warn patch", "configmaps/a", {"extra": 1})
    maps.get("what is there")


@script
def create_keys_twice(s: Script) -> None:
    twice = b'{"metadata":{"name":"f","name":"f"},"data":{"a":"1","a":"2"}}'
    s.post("strict", "configmaps", twice, fieldValidation="Strict", dryRun="All")
    s.post("warned", "configmaps", twice, fieldValidation="Warn")
