"""POST: names, types, namespaces, dry run."""

from tests.contract.objects import appwrapper, config_map, pod
from tests.contract.script import Script, script


@script
def create_names(s: Script) -> None:
    s.post("by name", "configmaps", config_map("a"))
    s.post("taken", "configmaps", config_map("a"))
    s.post("by generateName", "configmaps", config_map(generateName="gen-"))
    s.post("name wins over generateName", "configmaps", config_map("b", generateName="gen-"))
    s.post("neither", "configmaps", config_map())
    s.post("empty name", "configmaps", config_map() | {"metadata": {"name": ""}})
    s.post("no metadata", "configmaps", {"apiVersion": "v1", "kind": "ConfigMap"})
    s.post("underscore", "configmaps", config_map("under_score"))
    s.post("slash", "configmaps", config_map("a/b"))
    s.post("too long", "configmaps", config_map("x" * 254))
    s.post("generateName that is invalid", "configmaps", config_map(generateName="Gen_"))
    s.post("a pod's name", "pods", pod("Not A Name"))
    s.get("what is there", "configmaps")


@script
def create_metadata(s: Script) -> None:
    s.post("label key", "configmaps", config_map("a", labels={"-x": "1"}))
    s.post("label value", "configmaps", config_map("a", labels={"x": "a b"}))
    s.post("annotation key", "configmaps", config_map("a", annotations={"x y": "1"}))
    s.post("finalizer without a domain", "configmaps", config_map("a", finalizers=["plain"]))
    s.post("finalizer", "configmaps", config_map("b", finalizers=["example.com/x"]))
    s.post("label that is no text", "configmaps", config_map("c", labels={"x": 1}))
    s.post("labels that are a list", "configmaps", config_map("c", labels=["x"]))
    s.post("labels null", "configmaps", config_map("d", labels=None, annotations={}))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b"}
    s.post("owner without uid", "configmaps", config_map("e", ownerReferences=[owner]))
    dangler = {"uid": "00000000-0000-0000-0000-000000000001", "controller": True}
    dangling = config_map("f", ownerReferences=[owner | dangler | {"blockOwnerDeletion": False}])
    s.post("dangling owner", "configmaps", dangling)
    s.post(
        "server-owned fields",
        "configmaps",
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
    s.post("resourceVersion set", "configmaps", config_map("h", resourceVersion="5"))
    s.post("resourceVersion 0", "configmaps", config_map("h", resourceVersion="0"))
    s.post("name that is no text", "configmaps", config_map("k") | {"metadata": {"name": 5}})
    s.get("what is there", "configmaps")


@script
def create_types(s: Script) -> None:
    s.post("without type", "configmaps", {"metadata": {"name": "a"}})
    s.post("another kind", "configmaps", config_map("b") | {"kind": "Secret"})
    s.post("bad apiVersion", "configmaps", config_map("b") | {"apiVersion": "a/b/c"})
    s.post("custom: without type", "appwrappers", {"metadata": {"name": "a"}})
    s.post("custom: another kind", "appwrappers", config_map("b"))
    s.post(
        "a kind that decodes",
        "configmaps",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}},
    )
    s.post("no body", "configmaps")
    s.post("empty body", "configmaps", b"")
    s.post("no JSON", "configmaps", b"{nonsense")
    s.post("data of numbers", "configmaps", config_map("e", {"a": 1}))
    s.post("another media type", "configmaps", config_map("f"), content_type="text/plain")
    s.post(
        "YAML",
        "configmaps",
        b"metadata: {name: yaml}\ndata: {a: '1'}",
        content_type="application/yaml",
    )
    s.post("no media type", "configmaps", config_map("g"), content_type="")
    s.get("what is there", "configmaps")


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
    s.post("dry", "configmaps", config_map("a"), dryRun="All")
    s.get("nothing there", "configmaps/a")
    s.post("dry generateName", "configmaps", config_map(generateName="x-"), dryRun="All")
    s.post("wet", "configmaps", config_map("a"))
    s.post("dry, taken", "configmaps", config_map("a"), dryRun="All")
    s.post("another word", "configmaps", config_map("b"), dryRun="Some")
    s.post("empty word", "configmaps", config_map("c"), dryRun="")
    s.patch("dry patch", "configmaps/a", {"data": {"b": "2"}}, dryRun="All")
    s.delete("dry delete", "configmaps/a", dryRun="All")
    s.delete("dry delete in the body", "configmaps/a", {"dryRun": ["All"]})
    s.delete("dry delete with another word", "configmaps/a", {"dryRun": ["Some"]})
    s.get("still the same", "configmaps/a")
    s.delete("dry delete of all", "configmaps", dryRun="All")
    s.get("all there", "configmaps")
    s.post("dry pod", "pods", pod("a"), dryRun="All")


@script
def create_field_validation(s: Script) -> None:
    unknown = config_map("a") | {"extra": 1}
    s.post("strict", "configmaps", unknown, fieldValidation="Strict")
    s.post("warn", "configmaps", unknown, fieldValidation="Warn")
    s.post("ignore", "configmaps", unknown | {"metadata": {"name": "b"}}, fieldValidation="Ignore")
    s.post("default", "configmaps", unknown | {"metadata": {"name": "c"}})
    s.post(
        "another word",
        "configmaps",
        unknown | {"metadata": {"name": "d"}},
        fieldValidation="Sometimes",
    )
    s.post("unknown in metadata", "configmaps", config_map("e", extra=1), fieldValidation="Strict")
    s.post("warn about metadata", "configmaps", config_map("e", extra=1), fieldValidation="Warn")
    s.put("strict update", "configmaps/a", unknown, fieldValidation="Strict")
    s.patch("strict patch", "configmaps/a", {"extra": 1}, fieldValidation="Strict")
    s.patch("warn patch", "configmaps/a", {"extra": 1})
    s.get("what is there", "configmaps")


@script
def create_keys_twice(s: Script) -> None:
    twice = b'{"metadata":{"name":"f","name":"f"},"data":{"a":"1","a":"2"}}'
    s.post("strict", "configmaps", twice, fieldValidation="Strict", dryRun="All")
    s.post("warned", "configmaps", twice, fieldValidation="Warn")
