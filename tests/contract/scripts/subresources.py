"""Scale, and Events in both groups."""

from tests.contract.objects import config_map, deployment
from tests.contract.script import Script, script


@script
def sub_scale(s: Script) -> None:
    deployment_d_scale = s.on("deployments/d/scale")
    made = s.post("made", "deployments", deployment("d"))
    scale = deployment_d_scale.get("read")
    deployment_d_scale.put("write", scale.merged({"spec": {"replicas": 5}}))
    for label, name, replicas in (
        ("without a version", "d", 7),
        ("another name", "e", 7),
        ("below 0", "d", -1),
    ):
        body = {
            "metadata": {"name": name, "namespace": s.namespace},
            "spec": {"replicas": replicas},
        }
        deployment_d_scale.put(label, body)
    deployment_d_scale.put("another kind", config_map("d"))
    deployment_d_scale.patch("patch", {"spec": {"replicas": 4}})
    deployment_d_scale.patch("dry", {"spec": {"replicas": 9}}, dryRun="All")
    s.get("at the end", "deployments/d")
    s.get("of nothing", "deployments/e/scale")
    deployment_d_scale.delete("delete")
    deployment_d_scale.post("post", {})
    s.watch("all of it", "deployments", resourceVersion=made.version)


@script
def events_groups(s: Script) -> None:
    involved = {
        "kind": "Pod",
        "namespace": s.namespace,
        "name": "p",
        "uid": "u",
        "apiVersion": "v1",
        "resourceVersion": "7",
        "fieldPath": "spec",
    }
    new = "/apis/events.k8s.io/v1/namespaces/" + s.namespace + "/events"
    s.post(
        "core",
        "events",
        {
            "metadata": {"name": "core"},
            "involvedObject": involved,
            "reason": "Because",
            "message": "something happened",
            "type": "Normal",
            "count": 2,
            "source": {"component": "me", "host": "here"},
            "firstTimestamp": "2001-01-01T00:00:00Z",
            "lastTimestamp": "2001-01-01T00:00:01Z",
        },
    )
    s.get("core in the new group", f"{new}/core")
    s.post(
        "new",
        new,
        {
            "metadata": {"name": "new"},
            "regarding": involved,
            "reason": "Because",
            "note": "something else",
            "type": "Warning",
            "action": "Binding",
            "eventTime": "2001-01-01T00:00:00.000001Z",
            "reportingController": "example.com/me",
            "reportingInstance": "me-1",
            "series": {"count": 3, "lastObservedTime": "2001-01-01T00:00:02.000001Z"},
            "related": {"kind": "Node", "name": "n"},
        },
    )
    s.get("new in the core group", "events/new")
    s.get("all in the core group", "events")
    s.get("all in the new group", new)
    s.get("by object", "events", fieldSelector="involvedObject.name=p,type=Warning")
    s.get("by object in the new group", new, fieldSelector="regarding.name=p")
    s.patch("count", "events/core", {"count": 3, "message": "again"})
    s.delete("deleted", "events/core", {"propagationPolicy": "Foreground"})
    s.get("gone", f"{new}/core")
    s.watch("from the beginning", "events", resourceVersion="0")
