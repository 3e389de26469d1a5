"""The forms of answers: whole, metadata only, Table, and unknown ones."""

from tests.contract.objects import appwrapper, config_map, deployment, pod
from tests.contract.script import METADATA, METADATA_LIST, TABLE, Script, script


@script
def forms_accepted(s: Script) -> None:
    s.post("made", "configmaps", config_map("a", labels={"x": "1"}))
    for accept in (
        "application/json",
        "*/*",
        "application/*",
        "text/html",
        "text/html, */*",
        "application/yaml;q=0.1, application/json",
        TABLE,
        METADATA,
        METADATA_LIST,
        f"{TABLE},application/json",
        f"{METADATA_LIST},application/json",
        "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        f"application/json;as=Table;v=v1beta1;g=meta.k8s.io,{TABLE}",
        "application/json;as=Nonsense;v=v1;g=meta.k8s.io",
        "application/json;as=Nonsense;v=v1;g=meta.k8s.io, application/json",
        "application/json;as=Table;v=v1;g=example.com",
        "application/json;q=0.9",
        "application/json; charset=utf-8",
        "nonsense",
        "",
    ):
        s.get(f"one as {accept}", "configmaps/a", headers={"Accept": accept})
        s.get(f"list as {accept}", "configmaps", headers={"Accept": accept})
    s.get("what is not there as a table", "configmaps/b", headers={"Accept": TABLE})
    s.get("what is not there as html", "configmaps/b", headers={"Accept": "text/html"})
    s.post("created as a table", "configmaps", config_map("t"), headers={"Accept": TABLE})
    s.post("created as metadata", "configmaps", config_map("m"), headers={"Accept": METADATA})
    s.put(
        "updated as metadata",
        "configmaps/m",
        config_map("m", labels={"y": "1"}),
        headers={"Accept": METADATA},
    )
    s.patch("patched as a table", "configmaps/m", {"data": {"b": "2"}}, headers={"Accept": TABLE})
    s.delete("deleted as a table", "configmaps/m", headers={"Accept": TABLE})
    s.delete("deleted as metadata", "configmaps/t", headers={"Accept": METADATA})


@script
def forms_tables(s: Script) -> None:
    s.post("config map", "configmaps", config_map("a"))
    s.post("pod", "pods", pod("p"))
    s.post("deployment", "deployments", deployment("d"))
    s.post("custom", "appwrappers", appwrapper("w"))
    s.patch("custom's state", "appwrappers/w/status", {"status": {"state": "Running"}})
    for kind in ("configmaps", "pods", "deployments", "appwrappers", "serviceaccounts"):
        for include in ("", "Metadata", "Object", "None", "Nonsense"):
            given = {"includeObject": include} if include else {}
            s.get(f"{kind} including {include}", kind, headers={"Accept": TABLE}, **given)
        s.get(f"{kind} as metadata", kind, headers={"Accept": METADATA_LIST})
        s.get(f"nothing of {kind}", kind, headers={"Accept": TABLE}, labelSelector="no=no")
    old = "/apis/workload.codeflare.dev/v1beta1/namespaces/" + s.namespace + "/appwrappers"
    s.get("customs in the old version", old, headers={"Accept": TABLE})
    s.get("one custom in the old version", f"{old}/w")
    s.get("customs in the old version, whole", old)
    s.get("the status as a table", "appwrappers/w/status", headers={"Accept": TABLE})
    s.get("a scale as a table", "deployments/d/scale", headers={"Accept": TABLE})
