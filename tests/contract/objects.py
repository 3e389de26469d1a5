"""Objects for the scripts. The complete ones name every default, so that a script about something
else does not depend on defaulting; scripts about defaults write their own, short ones.
"""

from __future__ import annotations

from typing import Any

from tests.contract.script import merge

Json = dict[str, Any]


def config_map(name: str = "", data: Json | None = None, **metadata: Any) -> Json:
    named = {"name": name} if name else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": named | metadata,
        "data": {"a": "1"} if data is None else data,
    }


def pod_spec(**changes: Any) -> Json:
    container = {
        "name": "main",
        "image": "busybox:1.36",
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    return {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    } | changes


def pod(name: str = "p", spec: Json | None = None, **metadata: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name} | metadata,
        "spec": pod_spec(enableServiceLinks=True, **(spec or {})),
    }


def short_pod(name: str = "p", **changes: Any) -> Json:
    """As people write them: the rest is defaulted."""
    spec = {"containers": [{"name": "main", "image": "busybox"}]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    merged: Json = merge(made, changes)
    return merged


def deployment(name: str = "d", **spec: Any) -> Json:
    rolling = {"maxSurge": "25%", "maxUnavailable": "25%"}
    complete = {
        "replicas": 2,
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec()},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    return short_deployment(name, **(complete | spec))


def short_deployment(name: str = "d", **spec: Any) -> Json:
    labels = {"app": name}
    pod_of = {"containers": [{"name": "main", "image": "busybox"}]}
    template = {"metadata": {"labels": labels}, "spec": pod_of}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template} | spec,
    }


def short_job(name: str = "j", **spec: Any) -> Json:
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template} | spec,
    }


def appwrapper(name: str = "aw", **spec: Any) -> Json:
    """The v1beta2 dialect, with a ConfigMap inside."""
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-inner"}}
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": name},
        "spec": {"components": [{"template": template}]} | spec,
    }


def old_appwrapper(name: str = "aw", **spec: Any) -> Json:
    """The v1beta1 dialect."""
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-inner"}}
    item = {"replicas": 1, "generictemplate": template}
    return {
        "apiVersion": "workload.codeflare.dev/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name},
        "spec": {"resources": {"GenericItems": [item]}} | spec,
    }
