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
        s.get(f"one as {accept}", "configmaps/a", accept=accept)
        s.get(f"list as {accept}", "configmaps", accept=accept)
    s.get("what is not there as a table", "configmaps/b", accept=TABLE)
    s.get("what is not there as html", "configmaps/b", accept="text/html")
    s.post("created as a table", "configmaps", config_map("t"), accept=TABLE)
    s.post("created as metadata", "configmaps", config_map("m"), accept=METADATA)
    s.put(
        "updated as metadata", "configmaps/m", config_map("m", labels={"y": "1"}), accept=METADATA
    )
    s.patch("patched as a table", "configmaps/m", {"data": {"b": "2"}}, accept=TABLE)
    s.delete("deleted as a table", "configmaps/m", accept=TABLE)
    s.delete("deleted as metadata", "configmaps/t", accept=METADATA)


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
            s.get(f"{kind} including {include}", kind, accept=TABLE, **given)
        s.get(f"{kind} as metadata", kind, accept=METADATA_LIST)
        s.get(f"nothing of {kind}", kind, accept=TABLE, labelSelector="no=no")
    old = "/apis/workload.codeflare.dev/v1beta1/namespaces/" + s.namespace + "/appwrappers"
    s.get("customs in the old version", old, accept=TABLE)
    s.get("one custom in the old version", f"{old}/w")
    s.get("customs in the old version, whole", old)
    s.get("the status as a table", "appwrappers/w/status", accept=TABLE)
    s.get("a scale as a table", "deployments/d/scale", accept=TABLE)
