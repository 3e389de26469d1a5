"""GET with watch=true, until the time is over; what happened before is in the history."""

from tests.contract.objects import appwrapper, config_map, pod
from tests.contract.script import METADATA, TABLE, Script, script


def story(s: Script) -> None:
    """Changes of three objects, in an order that counts."""
    s.post("a", "configmaps", config_map("a", labels={"app": "x"}))
    s.post("b", "configmaps", config_map("b", labels={"app": "y"}))
    s.patch("a enters y", "configmaps/a", {"metadata": {"labels": {"app": "y"}}})
    s.patch("a changes", "configmaps/a", {"data": {"b": "2"}})
    s.patch("b leaves y", "configmaps/b", {"metadata": {"labels": {"app": "x"}}})
    s.patch("no change", "configmaps/b", {"metadata": {"labels": {"app": "x"}}})
    s.post("c", "configmaps", config_map("c", finalizers=["example.com/x"]))
    s.delete("a goes", "configmaps/a")
    s.delete("c begins to go", "configmaps/c")
    s.patch("c goes", "configmaps/c", {"metadata": {"finalizers": None}})
    s.post("a again", "configmaps", config_map("a", labels={"app": "y"}))


@script
def watch_history(s: Script) -> None:
    maps = s.on("configmaps")
    first = maps.post("first", config_map("first"))
    story(s)
    since = {"resourceVersion": first.version}
    maps.watch("all", **since)
    maps.watch("by label", labelSelector="app=y", **since)
    maps.watch("by another label", labelSelector="app!=y", **since)
    maps.watch("by name", fieldSelector="metadata.name=a", **since)
    s.watch("by path", "configmaps/a", **since)
    s.watch("by path and another name", "configmaps/a", fieldSelector="metadata.name=b", **since)
    maps.watch("as metadata", accept=METADATA, **since)
    maps.watch("as a table", accept=TABLE, **since)
    maps.watch("as a table with objects", accept=TABLE, includeObject="Object", **since)
    maps.watch("as a table without objects", accept=TABLE, includeObject="None", **since)
    maps.watch("as a table or whole", accept=f"{TABLE},application/json", **since)
    maps.watch("with a limit", limit=1, **since)


@script
def watch_beginnings(s: Script) -> None:
    maps = s.on("configmaps")
    story(s)
    maps.get("list")
    maps.watch("without a version")
    maps.watch("at version 0", resourceVersion="0")
    maps.watch("at version 0 by label", resourceVersion="0", labelSelector="app=y")
    s.watch("of nothing", "secrets")
    initial = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    maps.watch("initial events", **initial)
    maps.watch("initial events at 0", resourceVersion="0", **initial)
    maps.watch("initial events as a table", accept=TABLE, **initial)
    maps.watch("initial events as metadata", accept=METADATA, **initial)
    s.watch("initial events of customs", "appwrappers", **initial)
    maps.watch("no initial events", **(initial | {"sendInitialEvents": "false"}))
    maps.watch("initial events without bookmarks", **(initial | {"allowWatchBookmarks": "false"}))
    maps.watch("initial events by label", labelSelector="app=y", **initial)


@script
def watch_refused(s: Script) -> None:
    maps = s.on("configmaps")
    maps.watch("no number", resourceVersion="x")
    maps.watch("wrong label", labelSelector="=x")
    maps.watch("wrong field", fieldSelector="spec.x=1")
    s.watch("wrong field of pods", "pods", fieldSelector="spec.x=1")
    maps.watch("wrong name", fieldSelector="metadata.name=A B")
    s.watch("no such kind", f"/api/v1/namespaces/{s.namespace}/nonsenses")
    s.watch("no such group", f"/apis/example.com/v1/namespaces/{s.namespace}/things")
    maps.watch("no form that is spoken", accept="text/html")
    maps.watch("timeout that is no number", timeoutSeconds="x")
    maps.watch("watch that is no boolean", watch="maybe", resourceVersion="0")


@script
def watch_objects(s: Script) -> None:
    pods = s.on("pods")
    made = pods.post("made", pod("p", {"nodeName": "n"}))
    s.patch("it runs", "pods/p/status", {"status": {"phase": "Running"}})
    s.patch("it is labelled", "pods/p", {"metadata": {"labels": {"x": "1"}}})
    s.delete("it ends", "pods/p")
    s.delete("it is over", "pods/p", {"gracePeriodSeconds": 0})
    since = {"resourceVersion": made.version}
    pods.watch("pods", **since)
    pods.watch("running ones", fieldSelector="status.phase=Running", **since)
    pods.watch("pending ones", fieldSelector="status.phase=Pending", **since)
    pods.watch("those of a node", fieldSelector="spec.nodeName=n", **since)
    pods.watch("pods as a table", accept=TABLE, **since)
    custom = s.post("custom", "appwrappers", appwrapper("w"))
    s.patch("its state", "appwrappers/w/status", {"status": {"state": "Running"}})
    s.delete("its end", "appwrappers/w")
    old = "/apis/workload.codeflare.dev/v1beta1/namespaces/" + s.namespace + "/appwrappers"
    s.watch("customs", "appwrappers", resourceVersion=custom.version)
    s.watch("customs in the old version", old, resourceVersion=custom.version)
    s.watch("customs as a table", "appwrappers", accept=TABLE, resourceVersion=custom.version)
