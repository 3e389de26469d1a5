"""PUT and its fences."""

from tests.contract.objects import appwrapper, config_map, deployment, pod
from tests.contract.script import Script, script

OTHER_UID = "00000000-0000-0000-0000-000000000009"


@script
def update_versions(s: Script) -> None:
    made = s.post("made", "configmaps", config_map("a"))
    changed = s.put("fresh", "configmaps/a", made.merged({"data": {"b": "2"}}))
    s.put("stale", "configmaps/a", made.merged({"data": {"c": "3"}}))
    s.put("without a version", "configmaps/a", config_map("a", {"d": "4"}))
    s.put("without a version again", "configmaps/a", config_map("a", {"d": "4"}))
    s.put("with nonsense", "configmaps/a", config_map("a", {"e": "5"}, resourceVersion="x"))
    s.put("no change", "configmaps/a", s.get("now", "configmaps/a"))
    s.put("dry", "configmaps/a", config_map("a", {"f": "6"}), dryRun="All")
    s.put("stale and dry", "configmaps/a", changed, dryRun="All")
    s.get("at the end", "configmaps/a")
    s.watch("all of it", "configmaps", resourceVersion=made.version)


@script
def update_metadata(s: Script) -> None:
    made = s.post("made", "configmaps", config_map("a", labels={"x": "1"}))
    s.put("another uid", "configmaps/a", made.merged({"metadata": {"uid": OTHER_UID}}))
    s.put("another name", "configmaps/a", made.merged({"metadata": {"name": "b"}}))
    s.put("no name", "configmaps/a", made.merged({"metadata": {"name": None}}))
    s.put("another namespace", "configmaps/a", made.merged({"metadata": {"namespace": "default"}}))
    s.put("no namespace", "configmaps/a", made.merged({"metadata": {"namespace": None}}))
    s.put("another kind", "configmaps/a", made.merged({"kind": "Secret"}))
    s.put(
        "times, generation and so on",
        "configmaps/a",
        made.merged(
            {
                "metadata": {
                    "resourceVersion": None,
                    "creationTimestamp": "2001-01-01T00:00:00Z",
                    "deletionTimestamp": "2001-01-01T00:00:00Z",
                    "deletionGracePeriodSeconds": 3,
                    "generation": 9,
                    "selfLink": "/x",
                }
            }
        ),
    )
    s.put("labels gone", "configmaps/a", config_map("a"))
    s.put("finalizer added", "configmaps/a", config_map("a", finalizers=["example.com/x"]))
    s.get("at the end", "configmaps/a")
    s.delete("begin deletion", "configmaps/a")


@script
def update_going(s: Script) -> None:
    s.post("made", "configmaps", config_map("a", finalizers=["example.com/x", "example.com/y"]))
    going = s.delete("delete", "configmaps/a")
    s.put("data can change", "configmaps/a", going.merged({"data": {"b": "2"}}))
    s.put("no way back", "configmaps/a", config_map("a", finalizers=["example.com/x"]))
    s.put(
        "finalizer added",
        "configmaps/a",
        config_map("a", finalizers=["example.com/x", "example.com/z"]),
    )
    s.post("name is taken", "configmaps", config_map("a"))
    s.put("dry end", "configmaps/a", config_map("a"), dryRun="All")
    s.get("still there", "configmaps/a")
    s.put("last finalizer gone", "configmaps/a", config_map("a", {"last": "words"}))
    s.get("gone", "configmaps/a")
    s.post("another one", "configmaps", config_map("a"))
    s.watch("all of it", "configmaps", resourceVersion=going.version)


@script
def update_generation(s: Script) -> None:
    one = s.post("deployment", "deployments", deployment("d"))
    s.put("no change", "deployments/d", one)
    s.patch("label", "deployments/d", {"metadata": {"labels": {"x": "1"}}})
    s.patch("annotation", "deployments/d", {"metadata": {"annotations": {"x": "1"}}})
    s.patch("replicas", "deployments/d", {"spec": {"replicas": 3}})
    s.patch("status by the wrong way", "deployments/d", {"status": {"replicas": 9}})
    s.patch("status", "deployments/d/status", {"status": {"replicas": 3, "observedGeneration": 2}})
    s.patch("spec by the wrong way", "deployments/d/status", {"spec": {"replicas": 9}})
    s.patch("scale", "deployments/d/scale", {"spec": {"replicas": 4}})
    s.get("deployment at the end", "deployments/d")
    made = s.post("custom", "appwrappers", appwrapper("a"))
    s.put("custom, no change", "appwrappers/a", made)
    s.patch("custom, label", "appwrappers/a", {"metadata": {"labels": {"x": "1"}}})
    s.patch("custom, spec", "appwrappers/a", {"spec": {"priority": 3}})
    s.patch("custom, status by the wrong way", "appwrappers/a", {"status": {"state": "Running"}})
    s.patch("custom, status", "appwrappers/a/status", {"status": {"state": "Running"}})
    s.patch("custom, spec by the wrong way", "appwrappers/a/status", {"spec": {"priority": 9}})
    s.patch(
        "custom, labels by status",
        "appwrappers/a/status",
        {"metadata": {"labels": {"y": "1"}}, "status": {"state": "Running"}},
    )
    s.delete("custom, deleted", "appwrappers/a", {"propagationPolicy": "Foreground"})
    s.post("config map", "configmaps", config_map("m"))
    s.patch("config map, data", "configmaps/m", {"data": {"b": "2"}})
    s.post("pod", "pods", pod("p"))
    s.patch("pod, label", "pods/p", {"metadata": {"labels": {"x": "1"}}})
    s.patch("pod, deadline", "pods/p", {"spec": {"activeDeadlineSeconds": 100}})
    s.patch("pod, status", "pods/p/status", {"status": {"phase": "Running"}})
    s.patch("pod, status by the wrong way", "pods/p", {"status": {"phase": "Failed"}})
    s.patch("pod, label by status", "pods/p/status", {"metadata": {"labels": {"z": "1"}}})
    s.get("pod at the end", "pods/p")


@script
def update_status(s: Script) -> None:
    made = s.post("custom", "appwrappers", appwrapper("a") | {"status": {"state": "Running"}})
    s.get("status", "appwrappers/a/status")
    written = s.put(
        "put",
        "appwrappers/a/status",
        made.merged({"status": {"state": "Running"}, "spec": {"priority": 7}}),
    )
    s.put("stale", "appwrappers/a/status", made.merged({"status": {"state": "Failed"}}))
    s.put("no status", "appwrappers/a/status", written.merged({"status": None}))
    s.put(
        "without a version",
        "appwrappers/a/status",
        appwrapper("a") | {"status": {"state": "Failed"}},
    )
    s.put(
        "another uid",
        "appwrappers/a/status",
        made.merged({"metadata": {"uid": "x"}, "status": {"state": "Failed"}}),
    )
    s.put("same again", "appwrappers/a/status", s.get("now", "appwrappers/a"))
    s.put(
        "main keeps the status",
        "appwrappers/a",
        s.get("now again", "appwrappers/a").merged({"status": {"state": "Pending"}}),
    )
    s.delete("no delete of a status", "appwrappers/a/status")
    s.post("no create of a status", "appwrappers/a/status", appwrapper("a"))
    s.get("status of nothing", "appwrappers/b/status")
    s.patch("status of nothing", "appwrappers/b/status", {})
    pod_made = s.post("pod", "pods", pod("p") | {"status": {"phase": "Running"}})
    s.put(
        "pod status",
        "pods/p/status",
        pod_made.merged(
            {
                "metadata": {"labels": {"x": "1"}},
                "spec": {"nodeName": "n"},
                "status": {"phase": "Failed", "reason": "Evicted", "message": "because"},
            }
        ),
    )
    s.get("namespace status", f"/api/v1/namespaces/{s.namespace}/status")
    s.get("deployment status", "deployments/x/status")
    s.patch("job without a status yet", "jobs/x/status", {"status": {"active": 1}})
    s.watch("all of it", "appwrappers", resourceVersion=made.version)


@script
def update_immutable(s: Script) -> None:
    s.post("deployment", "deployments", deployment("d"))
    s.patch("its selector", "deployments/d", {"spec": {"selector": {"matchLabels": {"x": "1"}}}})
    s.post("pod", "pods", pod("p"))
    s.patch("its command", "pods/p", {"spec": {"restartPolicy": "Never"}})
    bound = s.post("bound pod", "pods", pod("b", {"nodeName": "n"}))
    s.put("its node", "pods/b", bound.merged({"spec": {"nodeName": None}}))
