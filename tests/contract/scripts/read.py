"""GET and LIST: what is not there, pages, selectors, versions."""

import base64
import json

from tests.contract.objects import appwrapper, config_map, pod
from tests.contract.script import METADATA_LIST, TABLE, Script, script


def ancient(token: str) -> str:
    """The same place in a list of long ago."""
    decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    assert decoded["rv"] > 1
    text = json.dumps(decoded | {"rv": 1})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def several(s: Script, number: int = 5) -> None:
    for index in range(number):
        labels = {"number": str(index), "parity": "odd" if index % 2 else "even"}
        s.post(f"make m{index}", "configmaps", config_map(f"m{index}", labels=labels))


@script
def read_missing(s: Script) -> None:
    s.get("no such name", "configmaps/nothing")
    s.get("no such name, custom", "appwrappers/nothing")
    s.get("no such name, group", "deployments/nothing")
    s.get("no such namespace", "/api/v1/namespaces/nowhere/configmaps/a")
    s.get("list of no such namespace", "/api/v1/namespaces/nowhere/configmaps")
    s.get("the namespace itself", "namespaces/nowhere")
    s.get("no such node", "nodes/nothing")
    s.get("no such kind", f"/api/v1/namespaces/{s.namespace}/nonsenses")
    s.get("no such kind, named", f"/api/v1/namespaces/{s.namespace}/nonsenses/a")
    s.get("no such group", f"/apis/example.com/v1/namespaces/{s.namespace}/things")
    s.get("no such version", f"/apis/apps/v7/namespaces/{s.namespace}/deployments")
    s.get(
        "no such custom kind",
        f"/apis/workload.codeflare.dev/v1beta2/namespaces/{s.namespace}/nonsenses",
    )
    s.get(
        "no such custom version",
        f"/apis/workload.codeflare.dev/v9/namespaces/{s.namespace}/appwrappers",
    )
    s.get("no such subresource", "configmaps/a/status")
    s.get("no such subresource, custom", "appwrappers/a/scale")
    s.get("no such path", "/nonsense")
    s.get("namespaced kind without a namespace", "/api/v1/configmaps/a")
    s.post("create by name", "configmaps/a", config_map("a"))
    s.put("update without a name", "configmaps", config_map("a"))
    s.patch("patch without a name", "configmaps", {})
    s.delete("delete of all kinds in all namespaces", "/api/v1/configmaps")
    s.post("no such kind to create", f"/api/v1/namespaces/{s.namespace}/nonsenses", {})
    s.delete("no such name to delete", "configmaps/nothing")
    s.put("no such name to update", "configmaps/nothing", config_map("nothing"))
    s.patch("no such name to patch", "configmaps/nothing", {})
    s.put(
        "no such name to update, custom",
        "appwrappers/nothing",
        {
            "apiVersion": "workload.codeflare.dev/v1beta2",
            "kind": "AppWrapper",
            "metadata": {"name": "nothing", "resourceVersion": "1"},
            "spec": {"components": []},
        },
    )
    s.post("create on a node path", "/api/v1/nodes/x/status", {})


@script
def read_pages(s: Script) -> None:
    maps = s.on("configmaps")
    several(s)
    first = maps.get("first page", limit=2)
    token = first.at("metadata", "continue")
    second = maps.get("second page", limit=2, **{"continue": token})
    s.delete("change in between", "configmaps/m4")
    maps.post("another in between", config_map("m5"))
    maps.get("third page", limit=2, **{"continue": second.at("metadata", "continue")})
    maps.get("second page again, larger", limit=10, **{"continue": token})
    maps.get("second page without a limit", **{"continue": token})
    maps.get("page with a selector", limit=1, labelSelector="parity=even")
    maps.get("token with a selector", limit=1, labelSelector="parity=even", **{"continue": token})
    maps.get("token with a version", resourceVersion="1", **{"continue": token})
    maps.get("token with version 0", resourceVersion="0", **{"continue": token})
    s.get(
        "token of another namespace", "/api/v1/namespaces/default/configmaps", **{"continue": token}
    )
    maps.get("nonsense for a token", **{"continue": "nonsense"})
    maps.get("limit 0", limit=0)
    maps.get("limit below 0", limit=-1)
    maps.get("limit that is no number", limit="x")
    maps.get("just as many", limit=5)
    maps.get("one page of version 0", limit=2, resourceVersion="0")
    maps.get("pages of a table", limit=2, accept=TABLE)
    maps.get("pages of metadata", limit=2, accept=METADATA_LIST)
    s.get("empty", "secrets")
    s.get("empty with a limit", "secrets", limit=3)
    s.get("unknown parameters", "secrets", nonsense="x")
    s.get("pretty", "secrets", pretty="true")


@script
def read_selectors(s: Script) -> None:
    several(s, 4)
    for text in (
        "number=1",
        "number==1",
        "number!=1",
        "number in (1,2)",
        "number notin (1,2)",
        "number",
        "!number",
        "missing!=x",
        "number>1",
        "number<2",
        "parity=even,number=0",
        "number in ()",
        "number in (1",
        "=1",
        "a b",
        "-x=1",
        "x=a b",
        "number>x",
        ",",
        "!",
        "x in 1",
        "UPPER=x",
        "a/b/c=1",
        "x=1,,y=2",
        "number in (1,1)",
    ):
        s.get(f"labels {text}", "configmaps", labelSelector=text)
    for text in (
        "metadata.name=m1",
        "metadata.name!=m1",
        "metadata.name==m1",
        "metadata.name",
        f"metadata.namespace={s.namespace}",
        "metadata.namespace=default",
        "metadata.name=m1,metadata.name=m2",
        "spec.x=1",
        "metadata.labels=x",
        "data.a=1",
        "metadata.name=",
        "=",
        "metadata.name=m1\\,x",
        "metadata.name=Not A Name",
        "metadata.namespace=a/b",
        ",",
        "metadata.name=m1,",
    ):
        s.get(f"fields {text}", "configmaps", fieldSelector=text)
    s.post("a pod", "pods", pod("p"))
    for text in (
        "status.phase=Pending",
        "status.phase!=Pending",
        "spec.nodeName=",
        "spec.nodeName=n",
        "spec.restartPolicy=Always",
        "status.podIP=",
        "spec.schedulerName=default-scheduler",
        "spec.serviceAccountName=default",
        "status.nominatedNodeName=",
        "spec.hostNetwork=false",
        "spec.hostNetwork=true",
        "status.qosClass=BestEffort",
        "spec.nodeName=,status.phase=Pending",
    ):
        s.get(f"pods by {text}", "pods", fieldSelector=text)
    s.get("custom by name", "appwrappers", fieldSelector="metadata.name=x")
    s.get("custom by something", "appwrappers", fieldSelector="spec.priority=1")
    s.get("deployments by something", "deployments", fieldSelector="spec.replicas=1")
    s.get("jobs by status", "jobs", fieldSelector="status.successful=1")
    s.get(
        "events by object",
        "events",
        fieldSelector="involvedObject.kind=Pod,involvedObject.name=p,type!=Normal",
    )
    s.get("events by nothing known", "events", fieldSelector="message=x")
    s.get(
        "namespaces by phase",
        "namespaces",
        labelSelector=f"kubernetes.io/metadata.name={s.namespace}",
        fieldSelector="status.phase=Active",
    )
    s.get("both", "configmaps", labelSelector="parity=even", fieldSelector="metadata.name=m2")
    s.get("a name with a selector", "configmaps/m1", labelSelector="number=2")


@script
def read_versions(s: Script) -> None:
    m1 = s.on("configmaps/m1")
    maps = s.on("configmaps")
    several(s, 2)
    made = m1.get("m1")
    maps.post("later", config_map("later"))
    maps.get("version unset")
    maps.get("version 0", resourceVersion="0")
    maps.get("not older than", resourceVersion=made.version)
    maps.get(
        "not older than, explicitly",
        resourceVersion=made.version,
        resourceVersionMatch="NotOlderThan",
    )
    maps.get("exactly", resourceVersion=made.version, resourceVersionMatch="Exact")
    maps.get("at least 0", resourceVersion="0", resourceVersionMatch="NotOlderThan")
    maps.get("no number", resourceVersion="x")
    maps.get("below 0", resourceVersion="-1")
    maps.get("too large", resourceVersion="99999999")
    maps.get("too large, exactly", resourceVersion="99999999", resourceVersionMatch="Exact")
    maps.get("page from a version", resourceVersion=made.version, limit=1)
    maps.get("page exactly", resourceVersion=made.version, limit=1, resourceVersionMatch="Exact")
    m1.get("object at version 0", resourceVersion="0")
    m1.get("object at a version", resourceVersion=made.version)
    m1.get("object too new", resourceVersion="99999999")
    m1.get("object at nonsense", resourceVersion="x")


@script
def read_compacted(s: Script) -> None:
    maps = s.on("configmaps")
    several(s, 4)
    s.post("custom", "appwrappers", appwrapper("w"))
    first = maps.get("first page", limit=2)
    token = first.at("metadata", "continue")
    maps.post("one more", config_map("m9"))
    s.patch("one changed", "configmaps/m3", {"data": {"b": "2"}})
    s.compact()
    maps.post("after the compaction", config_map("n"))
    # kube-apiserver keeps versions of its own for a while, so the token has to be an old one.
    again = maps.get("token too old", limit=2, **{"continue": token.changed(ancient)})
    rest = {"continue": again.at("metadata", "continue")}
    maps.get("go on anyway", limit=2, **rest)
    maps.get("go on without a limit", **rest)
    maps.get("exactly an ancient one", resourceVersion="1", resourceVersionMatch="Exact")
    # What is watched comes out of a cache, which is younger than that only for a kind of a CRD.
    s.watch("from an ancient one", "appwrappers", resourceVersion="1")
    s.watch("table from an ancient one", "appwrappers", resourceVersion="1", accept=TABLE)
