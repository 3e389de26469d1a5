"""Built-in kinds as people write them: what is filled in, and what they get wrong."""

from __future__ import annotations

from typing import Any

from tests.contract.objects import deployment, short_deployment, short_job, short_pod
from tests.contract.script import Script, merge, script

Json = dict[str, Any]


def container(**changes: Any) -> Json:
    return {"name": "main", "image": "busybox"} | changes


def spec(*containers: Json, **more: Any) -> Json:
    return {"containers": list(containers or (container(),))} | more


@script
def workload_defaults(s: Script) -> None:
    """Whole answers; the defaults of fields are in tests/sim/golden."""
    s.post("pod", "pods", short_pod("short"))
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    s.post(
        "pod with a warning", "pods", short_pod("w", spec={"topologySpreadConstraints": [spread]})
    )
    s.post("deployment", "deployments", short_deployment("d"))
    s.post(
        "deployment that recreates",
        "deployments",
        short_deployment("r", strategy={"type": "Recreate"}, replicas=0),
    )
    s.post("replica set", "replicasets", short_deployment("r") | {"kind": "ReplicaSet"})
    s.post("secret", "secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
    s.post("account", "serviceaccounts", {"metadata": {"name": "a"}})
    lease = {"holderIdentity": "me", "renewTime": "2001-01-01T00:00:00.000000Z"}
    s.post("lease", "leases", {"metadata": {"name": "l"}, "spec": lease})
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    s.post("role", "roles", {"metadata": {"name": "r"}, "rules": [rule]})
    s.post(
        "quota",
        "resourcequotas",
        {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "100"}}},
    )


@script
def workload_jobs(s: Script) -> None:
    jobs = s.on("jobs")
    job_p = s.on("jobs/p")
    jobs.post("job", short_job("j"))
    jobs.post("parallel job", short_job("p", parallelism=3, completions=5))
    jobs.post("work queue", short_job("w", parallelism=3))
    jobs.post("indexed", short_job("i", completionMode="Indexed", completions=2))
    jobs.post("indexed without completions", short_job("x", completionMode="Indexed"))
    jobs.post(
        "suspended",
        short_job(
            "s", suspend=True, backoffLimit=1, activeDeadlineSeconds=60, ttlSecondsAfterFinished=5
        ),
    )
    jobs.post(
        "that restarts always", short_job("a", template={"spec": spec(restartPolicy="Always")})
    )
    jobs.post("without a restart policy", short_job("b", template={"spec": spec()}))
    jobs.post("with a selector", short_job("c", selector={"matchLabels": {"a": "b"}}))
    jobs.post("below 0", short_job("d", parallelism=-1, completions=-1, backoffLimit=-1))
    jobs.post(
        "without a template",
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "e"}, "spec": {}},
    )
    job_p.patch("parallelism", {"spec": {"parallelism": 1}})
    job_p.patch("completions", {"spec": {"completions": 1}})
    job_p.patch("template", {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}})
    job_p.delete("without a policy its pods stay")
    job_p.get("it waits for them")
    s.delete("in the background", "jobs/w", {"propagationPolicy": "Background"})
    s.get("it is gone", "jobs/w")


@script
def workload_bad_pods(s: Script) -> None:
    def post(label: str, wrong: Json, **params: Any) -> None:
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": wrong}
        s.post(label, "pods", body, **params)

    s.post("no spec", "pods", {"metadata": {"name": "x"}})
    post("no containers", {})
    post("bad restart policy", spec(restartPolicy="Sometimes"))
    post("command a text", spec(container(command="true")))
    post("cpu that is none", spec(container(resources={"requests": {"cpu": "many"}})))
    post(
        "more requested than allowed",
        spec(container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})),
    )
    post("no such priority class", spec(priorityClassName="nothing"))
    post("two faults", spec({"name": "B@d"}, restartPolicy="x"))
    post("misspelt, strict", spec(container(imagePullpolicy="Always")), fieldValidation="Strict")
    post("misspelt, warned", spec(container(imagePullpolicy="Always")), dryRun="All")
    s.post("made", "pods", short_pod("made"))
    s.patch("another image", "pods/made", {"spec": spec(container(image="other"))})
    s.patch("other metadata", "pods/made", {"metadata": {"annotations": {"a": "b"}}})
    s.patch(
        "name of the container", "pods/made", {"spec": spec(container(name="other"))}, dryRun="All"
    )


@script
def workload_bad_deployments(s: Script) -> None:
    def post(label: str, **wrong: Any) -> None:
        s.post(label, "deployments", short_deployment("x", **wrong))

    post("no selector", selector=None)
    post("selector of something else", selector={"matchLabels": {"a": "b"}})
    post("no template", template=None)
    post("replicas a text", replicas="two")
    s.post(
        "old version",
        "/apis/extensions/v1beta1/namespaces/default/deployments",
        short_deployment("x"),
    )
    s.post("group of another", "deployments", short_deployment("x") | {"apiVersion": "v1"})
    s.post(
        "no spec",
        "deployments",
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}},
    )
    s.post("made", "deployments", short_deployment("made"))
    s.patch(
        "selector changed",
        "deployments/made",
        {
            "spec": {
                "selector": {"matchLabels": {"app": "other"}},
                "template": {"metadata": {"labels": {"app": "other"}}},
            }
        },
    )
    s.post(
        "secret that is no base64",
        "secrets",
        {"metadata": {"name": "c"}, "data": {"a": "not base64!"}},
    )


@script
def workload_unconditional(s: Script) -> None:
    """PUT without a resourceVersion: some kinds need one."""
    bodies: dict[str, Json] = {
        "secrets": {"metadata": {"name": "x"}, "type": "Opaque"},
        "serviceaccounts": {"metadata": {"name": "x"}},
        "leases": {"metadata": {"name": "x"}, "spec": {}},
        "deployments": deployment("x"),
        "roles": {"metadata": {"name": "x"}, "rules": []},
    }
    for kind, body in bodies.items():
        s.post(f"{kind}: made", kind, body)
        changed = merge(body, {"metadata": {"labels": {"a": "b"}}})
        s.put(f"{kind}: put", f"{kind}/x", changed)
        s.put(f"{kind}: nothing there", f"{kind}/y", merge(changed, {"metadata": {"name": "y"}}))
        s.delete(f"{kind}: deleted", f"{kind}/x")
