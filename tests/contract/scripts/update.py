"""PUT and its fences."""

from tests.contract.objects import appwrapper, config_map, deployment, pod
from tests.contract.script import Script, script

OTHER_UID = "00000000-0000-0000-0000-000000000009"


@script
def update_versions(s: Script) -> None:
    a = s.on("configmaps/a")
    made = s.post("made", "configmaps", config_map("a"))
    changed = a.put("fresh", made.merged({"data": {"b": "2"}}))
    a.put("stale", made.merged({"data": {"c": "3"}}))
    a.put("without a version", config_map("a", {"d": "4"}))
    a.put("without a version again", config_map("a", {"d": "4"}))
    a.put("with nonsense", config_map("a", {"e": "5"}, resourceVersion="x"))
    a.put("no change", a.get("now"))
    a.put("dry", config_map("a", {"f": "6"}), dryRun="All")
    a.put("stale and dry", changed, dryRun="All")
    a.get("at the end")
    s.watch("all of it", "configmaps", resourceVersion=made.version)


@script
def update_metadata(s: Script) -> None:
    a = s.on("configmaps/a")
    made = s.post("made", "configmaps", config_map("a", labels={"x": "1"}))
    a.put("another uid", made.merged({"metadata": {"uid": OTHER_UID}}))
    a.put("another name", made.merged({"metadata": {"name": "b"}}))
    a.put("no name", made.merged({"metadata": {"name": None}}))
    a.put("another namespace", made.merged({"metadata": {"namespace": "default"}}))
    a.put("no namespace", made.merged({"metadata": {"namespace": None}}))
    a.put("another kind", made.merged({"kind": "Secret"}))
    a.put(
        "times, generation and so on",
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
    a.put("labels gone", config_map("a"))
    a.put("finalizer added", config_map("a", finalizers=["example.com/x"]))
    a.get("at the end")
    a.delete("begin deletion")


@script
def update_going(s: Script) -> None:
    a = s.on("configmaps/a")
    s.post("made", "configmaps", config_map("a", finalizers=["example.com/x", "example.com/y"]))
    going = a.delete("delete")
    a.put("data can change", going.merged({"data": {"b": "2"}}))
    a.put("no way back", config_map("a", finalizers=["example.com/x"]))
    a.put("finalizer added", config_map("a", finalizers=["example.com/x", "example.com/z"]))
    s.post("name is taken", "configmaps", config_map("a"))
    a.put("dry end", config_map("a"), dryRun="All")
    a.get("still there")
    a.put("last finalizer gone", config_map("a", {"last": "words"}))
    a.get("gone")
    s.post("another one", "configmaps", config_map("a"))
    s.watch("all of it", "configmaps", resourceVersion=going.version)


@script
def update_generation(s: Script) -> None:
    deployment_d = s.on("deployments/d")
    wrapper_a = s.on("appwrappers/a")
    one = s.post("deployment", "deployments", deployment("d"))
    deployment_d.put("no change", one)
    deployment_d.patch("label", {"metadata": {"labels": {"x": "1"}}})
    deployment_d.patch("annotation", {"metadata": {"annotations": {"x": "1"}}})
    deployment_d.patch("replicas", {"spec": {"replicas": 3}})
    deployment_d.patch("status by the wrong way", {"status": {"replicas": 9}})
    s.patch("status", "deployments/d/status", {"status": {"replicas": 3, "observedGeneration": 2}})
    s.patch("spec by the wrong way", "deployments/d/status", {"spec": {"replicas": 9}})
    s.patch("scale", "deployments/d/scale", {"spec": {"replicas": 4}})
    deployment_d.get("deployment at the end")
    made = s.post("custom", "appwrappers", appwrapper("a"))
    wrapper_a.put("custom, no change", made)
    wrapper_a.patch("custom, label", {"metadata": {"labels": {"x": "1"}}})
    wrapper_a.patch("custom, spec", {"spec": {"priority": 3}})
    wrapper_a.patch("custom, status by the wrong way", {"status": {"state": "Running"}})
    s.patch("custom, status", "appwrappers/a/status", {"status": {"state": "Running"}})
    s.patch("custom, spec by the wrong way", "appwrappers/a/status", {"spec": {"priority": 9}})
    s.patch(
        "custom, labels by status",
        "appwrappers/a/status",
        {"metadata": {"labels": {"y": "1"}}, "status": {"state": "Running"}},
    )
    wrapper_a.delete("custom, deleted", {"propagationPolicy": "Foreground"})
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
    wrapper_a_status = s.on("appwrappers/a/status")
    made = s.post("custom", "appwrappers", appwrapper("a") | {"status": {"state": "Running"}})
    wrapper_a_status.get("status")
    written = wrapper_a_status.put(
        "put", made.merged({"status": {"state": "Running"}, "spec": {"priority": 7}})
    )
    wrapper_a_status.put("stale", made.merged({"status": {"state": "Failed"}}))
    wrapper_a_status.put("no status", written.merged({"status": None}))
    wrapper_a_status.put("without a version", appwrapper("a") | {"status": {"state": "Failed"}})
    wrapper_a_status.put(
        "another uid", made.merged({"metadata": {"uid": "x"}, "status": {"state": "Failed"}})
    )
    wrapper_a_status.put("same again", s.get("now", "appwrappers/a"))
    s.put(
        "main keeps the status",
        "appwrappers/a",
        s.get("now again", "appwrappers/a").merged({"status": {"state": "Pending"}}),
    )
    wrapper_a_status.delete("no delete of a status")
    wrapper_a_status.post("no create of a status", appwrapper("a"))
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
