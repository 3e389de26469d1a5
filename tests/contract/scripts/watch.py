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
    first = s.post("first", "configmaps", config_map("first"))
    story(s)
    since = {"resourceVersion": first.version}
    s.watch("all", "configmaps", **since)
    s.watch("by label", "configmaps", labelSelector="app=y", **since)
    s.watch("by another label", "configmaps", labelSelector="app!=y", **since)
    s.watch("by name", "configmaps", fieldSelector="metadata.name=a", **since)
    s.watch("by path", "configmaps/a", **since)
    s.watch("by path and another name", "configmaps/a", fieldSelector="metadata.name=b", **since)
    s.watch("as metadata", "configmaps", headers={"Accept": METADATA}, **since)
    s.watch("as a table", "configmaps", headers={"Accept": TABLE}, **since)
    s.watch(
        "as a table with objects",
        "configmaps",
        headers={"Accept": TABLE},
        includeObject="Object",
        **since,
    )
    s.watch(
        "as a table without objects",
        "configmaps",
        headers={"Accept": TABLE},
        includeObject="None",
        **since,
    )
    s.watch(
        "as a table or whole",
        "configmaps",
        headers={"Accept": f"{TABLE},application/json"},
        **since,
    )
    s.watch("with a limit", "configmaps", limit=1, **since)


@script
def watch_beginnings(s: Script) -> None:
    story(s)
    s.get("list", "configmaps")
    s.watch("without a version", "configmaps")
    s.watch("at version 0", "configmaps", resourceVersion="0")
    s.watch("at version 0 by label", "configmaps", resourceVersion="0", labelSelector="app=y")
    s.watch("of nothing", "secrets")
    initial = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    s.watch("initial events", "configmaps", **initial)
    s.watch("initial events at 0", "configmaps", resourceVersion="0", **initial)
    s.watch("initial events as a table", "configmaps", headers={"Accept": TABLE}, **initial)
    s.watch("initial events as metadata", "configmaps", headers={"Accept": METADATA}, **initial)
    s.watch("initial events of customs", "appwrappers", **initial)
    s.watch("no initial events", "configmaps", **(initial | {"sendInitialEvents": "false"}))
    s.watch(
        "initial events without bookmarks",
        "configmaps",
        **(initial | {"allowWatchBookmarks": "false"}),
    )
    s.watch("initial events by label", "configmaps", labelSelector="app=y", **initial)


@script
def watch_refused(s: Script) -> None:
    s.watch("no number", "configmaps", resourceVersion="x")
    s.watch("wrong label", "configmaps", labelSelector="=x")
    s.watch("wrong field", "configmaps", fieldSelector="spec.x=1")
    s.watch("wrong field of pods", "pods", fieldSelector="spec.x=1")
    s.watch("wrong name", "configmaps", fieldSelector="metadata.name=A B")
    s.watch("no such kind", f"/api/v1/namespaces/{s.namespace}/nonsenses")
    s.watch("no such group", f"/apis/example.com/v1/namespaces/{s.namespace}/things")
    s.watch("no form that is spoken", "configmaps", headers={"Accept": "text/html"})
    s.watch("timeout that is no number", "configmaps", timeoutSeconds="x")
    s.watch("watch that is no boolean", "configmaps", watch="maybe", resourceVersion="0")


@script
def watch_objects(s: Script) -> None:
    made = s.post("made", "pods", pod("p", {"nodeName": "n"}))
    s.patch("it runs", "pods/p/status", {"status": {"phase": "Running"}})
    s.patch("it is labelled", "pods/p", {"metadata": {"labels": {"x": "1"}}})
    s.delete("it ends", "pods/p")
    s.delete("it is over", "pods/p", {"gracePeriodSeconds": 0})
    since = {"resourceVersion": made.version}
    s.watch("pods", "pods", **since)
    s.watch("running ones", "pods", fieldSelector="status.phase=Running", **since)
    s.watch("pending ones", "pods", fieldSelector="status.phase=Pending", **since)
    s.watch("those of a node", "pods", fieldSelector="spec.nodeName=n", **since)
    s.watch("pods as a table", "pods", headers={"Accept": TABLE}, **since)
    custom = s.post("custom", "appwrappers", appwrapper("w"))
    s.patch("its state", "appwrappers/w/status", {"status": {"state": "Running"}})
    s.delete("its end", "appwrappers/w")
    old = "/apis/workload.codeflare.dev/v1beta1/namespaces/" + s.namespace + "/appwrappers"
    s.watch("customs", "appwrappers", resourceVersion=custom.version)
    s.watch("customs in the old version", old, resourceVersion=custom.version)
    s.watch(
        "customs as a table",
        "appwrappers",
        headers={"Accept": TABLE},
        resourceVersion=custom.version,
    )
